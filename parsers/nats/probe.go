package nats

import (
	"bytes"

	"sheaf/parsers"
)

const (
	// maxGuess is the largest message that a guess may begin with: a wrong one
	// takes that many bytes for its body.
	maxGuess = 1 << 20

	// maxChain is how many messages in a row are looked at before they are
	// believed to go on.
	maxChain = 16

	// resyncBudget bounds the messages that one call of Scan looks at to find a
	// boundary; a long control line counts for more, by costShift.
	resyncBudget = 256
	costShift    = 7

	// What a chain of messages must weigh to be believed: in the middle of a
	// segment, and on any port.
	insideWeight = 8
	strongWeight = 10

	exactWeight   = 4  // of ending where the segment does
	payloadWeight = 10 // of a payload that ends where its control line says
	helloWeight   = 16 // of an INFO or CONNECT with the fields of one
	fieldsWeight  = 5  // of a control line with a subject
	lightWeight   = 1  // of what other protocols have too, but once
)

// Probe judges whether bytes begin with NATS messages; see parsers.Protocol.
func Probe(payload []byte) parsers.Confidence {
	budget := maxChain
	c := weigh(payload, &budget)
	switch {
	case !c.good:
		return parsers.None
	case c.weight >= strongWeight && (c.exact || c.proven):
		return parsers.Strong
	case c.begins():
		return parsers.Weak
	}
	return parsers.None
}

// resync returns how many bytes of p come before the first message boundary in
// it, len(p) when there is none. begin says that p begins a segment, which is
// where messages mostly begin; elsewhere they follow the end of a line, and more
// is asked for.
func resync(p []byte, begin bool, budget *int) int {
	for i := 0; i < len(p); {
		if (i > 0 || begin) && likely(p[i:]) {
			if *budget <= 0 {
				break
			}
			c := weigh(p[i:], budget)
			if c.good && (i == 0 && c.begins() || c.weight >= insideWeight && (c.exact || c.proven)) {
				return i
			}
		}
		n := bytes.IndexByte(p[i:], '\n')
		if n < 0 {
			break
		}
		i += n + 1
	}
	return len(p)
}

// likely rejects, at the cost of a few bytes, most of what is no message.
func likely(p []byte) bool {
	_, _, bad := verb(p)
	return bad != faultVerb
}

// A chain is what can be said of bytes as messages in a row.
type chain struct {
	good   bool // nothing speaks against it
	exact  bool // the last message ends where the bytes do
	cut    bool // the bytes end before the last message's control line does
	proven bool // there is a message that few others could be
	whole  int  // messages that are wholly there
	weight int  // what speaks for it
}

// begins says whether the chain is good enough where a message is expected.
func (c *chain) begins() bool { return c.exact || c.cut || c.weight >= fieldsWeight }

func weigh(b []byte, budget *int) (c chain) {
	light := false
	for len(b) > 0 && c.whole < maxChain {
		if *budget <= 0 {
			c.good = c.whole > 0
			return c
		}
		*budget--
		var f front
		switch parseFront(b, &f) {
		case ok:
		case short:
			*budget -= len(b) >> costShift
			c.cut, c.good = true, true
			return c
		default:
			return chain{}
		}
		*budget -= f.line >> costShift
		if f.size > maxGuess {
			return chain{}
		}
		whole := f.size > 0 && f.size <= len(b)
		switch {
		case f.name == INFO || f.name == CONNECT:
			if hello(b[f.body:min(len(b), f.body+maxFront)]) {
				c.weight += helloWeight
				c.proven = true
			}
		case whole && f.size > f.line:
			c.weight += payloadWeight
			c.proven = true
		case f.subject > 0:
			c.weight += fieldsWeight
		case !light:
			c.weight += lightWeight
			light = true
		}
		if !whole {
			c.good = true
			return c
		}
		c.whole++
		b = b[f.size:]
	}
	c.good = c.whole > 0
	c.exact = c.good && len(b) == 0
	if c.exact {
		c.weight += exactWeight
	}
	return c
}

// hello says whether the beginning of an object is that of an INFO or CONNECT.
func hello(b []byte) bool {
	for _, field := range [...]string{`"server_id"`, `"verbose"`, `"pedantic"`, `"max_payload"`} {
		if bytes.Contains(b, []byte(field)) {
			return true
		}
	}
	return false
}
