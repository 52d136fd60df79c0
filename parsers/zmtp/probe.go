package zmtp

import (
	"bytes"

	"sheaf/parsers"
)

const (
	// maxGuess is the largest frame that a guess may begin with: a wrong one
	// takes that many bytes for its body.
	maxGuess = 1 << 20

	// maxChain is how many messages in a row are looked at before they are
	// believed to go on, and maxFrames how many frames of them.
	maxChain  = 16
	maxFrames = 64

	// resyncBudget bounds the frames that one call of Scan looks at to find a
	// boundary; a long topic counts for more, by costShift.
	resyncBudget = 512
	costShift    = 6

	// What a chain of messages must weigh to be believed where one is expected,
	// and in the middle of a segment.
	beginWeight  = 3
	insideWeight = 11

	commandWeight = 16 // of a known command
	nameWeight    = 3  // of a command with a name
	topicWeight   = 3  // and one for each of the first eight bytes of a topic that is text
)

// Probe judges whether bytes begin with ZMTP messages; see parsers.Protocol.
// Beyond doubt are a greeting, and the commands that only ZMTP has; messages are
// a few small numbers and whatever they carry.
func Probe(payload []byte) parsers.Confidence {
	budget := maxFrames
	c := weigh(payload, false, &budget)
	switch {
	case !c.good:
		return parsers.None
	case c.sure:
		return parsers.Strong
	case c.begins():
		return parsers.Weak
	}
	return parsers.None
}

// resync returns how many bytes of p come before the first message boundary in
// it, len(p) when there is none. begin says that p begins a segment, which is
// where messages mostly begin; elsewhere more is asked for.
func resync(p []byte, subscriber, begin bool, budget *int) int {
	for i := range p {
		if p[i] > flagCommand|flagLong && p[i] != 0xff {
			continue
		}
		if *budget <= 0 {
			break
		}
		c := weigh(p[i:], subscriber, budget)
		if c.good && (begin && i == 0 && c.begins() || c.sure || c.weight >= insideWeight && c.exact) {
			return i
		}
	}
	return len(p)
}

// A chain is what can be said of bytes as messages in a row.
type chain struct {
	good   bool // nothing speaks against it
	exact  bool // the last message ends where the bytes do
	sure   bool // the first message is one that nothing else looks like
	whole  int  // messages that are wholly there
	weight int  // what speaks for it
}

// begins says whether the chain is good enough where a message is expected.
func (c *chain) begins() bool { return c.exact || c.weight >= beginWeight }

func weigh(b []byte, subscriber bool, budget *int) (c chain) {
	for len(b) > 0 && c.whole < maxChain {
		if *budget <= 0 {
			c.good = c.whole > 0
			return c
		}
		*budget--
		var f front
		bad := parseFront(b, subscriber, &f)
		switch {
		case bad != ok && bad != short, f.size > maxGuess+maxHead:
			return chain{}
		case f.name == Greeting:
			c.greeting(b)
			return c
		case bad == short:
			if c.good = c.whole > 0; f.more && c.topic(b[f.event:]) {
				c.good = true
			}
			return c
		}
		*budget -= f.eventLen >> costShift
		if !c.first(b, &f) {
			return chain{}
		}
		n, bad := message(b, &f, budget)
		switch {
		case bad == short:
			c.good = true
			return c
		case bad != ok:
			return chain{}
		}
		c.whole++
		b = b[n:]
	}
	c.good = c.whole > 0
	c.exact = c.good && len(b) == 0
	return c
}

// first weighs the first frame of a message, and says whether it can be one.
func (c *chain) first(b []byte, f *front) bool {
	switch {
	case f.name > Command: // known by its name, or a subscription
		c.weight += commandWeight
		if c.whole == 0 {
			metadata := b[min(len(b), f.body):min(len(b), f.size, f.body+maxLook)]
			c.sure = b[0]&flagCommand != 0 && (f.name == Subscribe || f.name == Cancel ||
				f.name == Ready && bytes.HasPrefix(metadata, []byte("\x0bSocket-Type")))
		}
	case f.name == Command:
		c.weight += nameWeight
	case !f.more:
		return f.size > f.body // zeroes are not messages
	case f.eventLen > 0:
		c.topic(b[f.event:min(len(b), f.event+f.eventLen)])
	}
	return true
}

// topic weighs a topic, and says whether it is text.
func (c *chain) topic(b []byte) bool {
	if !text(b) {
		return false
	}
	c.weight += topicWeight + min(len(b), 8)
	return true
}

// greeting weighs a greeting. What libzmq sends between the signature's ends is
// a small number.
func (c *chain) greeting(b []byte) {
	c.weight = commandWeight
	c.good = len(b) > 1 && bytes.Count(b[1:min(len(b), 7)], []byte{0}) == min(len(b)-1, 6)
	c.sure = c.good && len(b) >= signatureSize
	c.exact = len(b) == greetingSize
}

// message returns the size of the message that b begins with, short when it is
// cut.
func message(b []byte, f *front, budget *int) (n int, bad fault) {
	n = f.size
	for more := f.more; more; {
		if n >= len(b) {
			return n, short
		}
		h, bad := parseFrame(b[n:])
		if bad != ok {
			return n, bad
		}
		if *budget--; *budget < 0 || h.size > maxGuess {
			return n, faultSize
		}
		n += h.head + h.size
		more = h.goesOn(false)
	}
	if n > len(b) {
		return n, short
	}
	return n, ok
}

// text says whether bytes look like text that people or programs make up.
func text(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return len(b) > 0
}
