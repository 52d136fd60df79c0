package kafka

import (
	"encoding/binary"

	"sheaf/parsers"
)

const (
	// maxGuess is the largest message that a guess may begin with: a wrong one
	// takes that many bytes for its body.
	maxGuess = 16 << 20

	// maxChain is how many messages in a row are looked at before they are
	// believed to go on.
	maxChain = 16

	// resyncBudget bounds the messages that one call of Scan looks at to find a
	// boundary.
	resyncBudget = 256

	// maxAhead is how far a correlation ID may have gone on behind a loss.
	maxAhead = 1000

	// What requests must weigh to be believed: in the middle of a segment, and on
	// any port. They weigh the bytes of their client ID and topic.
	insideWeight = 6
	strongWeight = 4
)

// Probe judges whether bytes begin with Kafka messages; see parsers.Protocol.
// Beyond doubt are requests with text in them that end where the bytes do.
// Responses are a size and a number, and whatever they hold.
func Probe(payload []byte) parsers.Confidence {
	budget := maxChain
	c := weigh(payload, unknown, &budget)
	switch {
	case !c.good:
		return parsers.None
	case c.side == requests && c.exact && c.weight >= strongWeight:
		return parsers.Strong
	case c.exact || c.side == requests && c.weight > 0:
		return parsers.Weak
	}
	return parsers.None
}

// resync returns how many bytes of p come before the first message boundary in
// it, len(p) when there is none. begin says that p begins a segment, which is
// where messages mostly begin. Elsewhere requests only are looked for. last is
// the correlation ID that was seen last.
func resync(p []byte, s side, last uint32, begin bool, budget *int) int {
	if begin {
		switch c := weigh(p, s, budget); {
		case !c.good:
		case c.exact, c.side == requests && c.weight > 0:
			return 0
		case s == responses && len(p) >= responseHead && binary.BigEndian.Uint32(p[headSize:])-last-1 < maxAhead:
			return 0
		}
	}
	if s == responses {
		return len(p)
	}
	for i := 1; i+requestHead <= len(p) && *budget > 0; i++ {
		// A request has these, or it is too large or of no API.
		if p[i] != 0 || p[i+4] != 0 || p[i+6] != 0 || p[i+5] > maxAPI || p[i+7] > maxVersion {
			continue
		}
		if c := weigh(p[i:], requests, budget); c.good && c.weight >= insideWeight {
			return i
		}
	}
	return len(p)
}

// A chain is what can be said of bytes as messages in a row.
type chain struct {
	good   bool // nothing speaks against it
	exact  bool // the last message ends where the bytes do
	side   side
	whole  int // messages that are wholly there
	weight int // what speaks for it
}

func weigh(b []byte, s side, budget *int) (c chain) {
	c.side = s
	for len(b) > 0 && c.whole < maxChain && *budget > 0 {
		*budget--
		var f front
		bad := parseFront(b, c.side, &f)
		switch {
		case bad != ok && bad != short, f.size > maxGuess:
			return chain{}
		case bad == short:
			c.good = c.whole > 0
			return c
		}
		c.side = f.side
		c.weight += f.client.len
		if f.version < topicNumbers {
			c.weight += f.topic.len
		}
		c.good = true
		if f.size > len(b) {
			return c
		}
		c.whole++
		b = b[f.size:]
	}
	c.exact = c.good && len(b) == 0
	return c
}
