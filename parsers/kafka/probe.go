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
// Beyond doubt are requests with text in them that end where the bytes do, one of
// which is as its API demands: others too (RabbitMQ's streams) have a size, two
// small numbers, a counter and text. Responses are a size and a number, and whatever
// they hold.
func Probe(payload []byte) parsers.Confidence {
	budget := maxChain
	c := weigh(payload, unknown, &budget)
	switch {
	case !c.good:
		return parsers.None
	case c.side == requests && c.exact && c.typical && c.weight >= strongWeight:
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
	good    bool // nothing speaks against it
	exact   bool // the last message ends where the bytes do
	typical bool // there is a request that few others could be
	side    side
	whole   int // messages that are wholly there
	weight  int // what speaks for it
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
		c.typical = c.typical || c.side == requests && f.typical(b[:f.size])
		c.whole++
		b = b[f.size:]
	}
	c.exact = c.good && len(b) == 0
	return c
}

// typical says whether a whole request is one of those that there are most of, and
// as they have to be to its end or as far as a topic.
func (f *front) typical(b []byte) bool {
	r := reader{b: b, at: f.body, size: f.size}
	switch f.name {
	case Produce:
		return f.topic.len > 0
	case Fetch:
		return f.topic.len > 0 || f.session > 0
	case apiVersions:
		return r.software(f.version)
	case metadata:
		return r.topics(f.version)
	case joinGroup:
		times := 4
		if f.version >= 1 {
			times = 8
		}
		return r.member(f.version >= 6, times) && (f.version < 5 || r.instance(f.version >= 6)) && r.text(f.version >= 6)
	case heartbeat, syncGroup:
		return r.member(f.version >= 4, 4)
	}
	return false
}

// member says whether a group's name comes next, numbers of so many bytes that are
// not negative, and the identifier of a member, which a new one does not have.
func (r *reader) member(compact bool, numbers int) bool {
	if compact {
		r.tags()
	}
	if !r.text(compact) {
		return false
	}
	for range numbers / 4 {
		if r.u32() >= 1<<31 {
			return false
		}
	}
	return r.instance(compact)
}

// instance says whether a string comes next, which may be empty or missing.
func (r *reader) instance(compact bool) bool {
	_, bad := r.string(r.length(compact))
	return bad == ok
}

// text says whether a string comes next that is not empty.
func (r *reader) text(compact bool) bool {
	p, bad := r.string(r.length(compact))
	return bad == ok && p.len > 0
}

// software says whether the rest of the request is that of an ApiVersions: the
// client's program and its version, or nothing in old ones.
func (r *reader) software(version uint16) bool {
	if version >= 3 {
		r.tags()
		program, release := r.text(true), r.text(true)
		if !program || !release {
			return false
		}
		r.tags()
	}
	return r.bad == ok && r.at == r.size
}

// topics says whether the rest of the request is that of a Metadata: an array of
// topics, of which the first has a name, or of none and at most a few flags.
func (r *reader) topics(version uint16) bool {
	const (
		compactFrom, numberedFrom = 9, 10
		flags                     = 4 // at most, with the tags
	)
	compact := version >= compactFrom
	if compact {
		r.tags()
	}
	if r.count(compact) == 0 {
		return r.bad == ok && r.size-r.at <= flags
	}
	if version >= numberedFrom {
		r.skip(topicID)
	}
	_, bad := r.topic(compact)
	return bad == ok
}
