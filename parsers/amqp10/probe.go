package amqp10

import (
	"bytes"

	"sheaf/parsers"
)

const (
	// maxGuess is the largest frame that a guess may begin with: a wrong one
	// takes that many bytes for its body.
	maxGuess = 1 << 20

	// maxChain is how many frames in a row are looked at before they are
	// believed to go on.
	maxChain = 16

	// resyncBudget bounds the frames that one call of Scan looks at to find a
	// boundary.
	resyncBudget = 512

	// minGuess is how many bytes of a frame are needed to say anything: its size,
	// data offset and type, or "AMQP", the protocol and a byte of the version.
	minGuess = 6
)

// mark is how the descriptors of performatives begin, behind a frame header
// without an extension.
var mark = []byte{codeDescribed, codeUlong8}

// Probe judges whether bytes begin with AMQP 1.0 frames; see parsers.Protocol.
func Probe(payload []byte) parsers.Confidence {
	budget := maxChain
	switch c := weigh(payload, &budget); {
	case !c.good:
		return parsers.None
	case c.sure:
		return parsers.Strong
	}
	return parsers.Weak
}

// resync returns how many bytes of p come before the first frame boundary in it,
// len(p) when there is none. begin says that p begins a segment, which is where
// frames mostly begin; elsewhere a performative is asked for.
func resync(p []byte, begin bool, budget *int) int {
	if begin {
		if c := weigh(p, budget); c.good {
			return 0
		}
	}
	for at := frameHead; *budget > 0; {
		i := bytes.Index(p[min(at, len(p)):], mark)
		if i < 0 {
			break
		}
		at += i + 1
		if b := p[at-1-frameHead:]; b[4] == frameHead/4 {
			if c := weigh(b, budget); c.good && c.sure {
				return at - 1 - frameHead
			}
		}
	}
	return len(p)
}

// A chain is what can be said of bytes as frames in a row.
type chain struct {
	good bool // nothing speaks against it
	sure bool // there is a frame that nothing else looks like
}

func weigh(b []byte, budget *int) (c chain) {
	for whole := 0; len(b) > 0 && whole < maxChain && *budget > 0; whole++ {
		*budget--
		var f front
		bad := parseFront(b, &f)
		switch {
		case bad != ok && bad != short, f.size > maxGuess:
			return chain{}
		case len(b) < minGuess:
			c.good = whole > 0 && (b[0] == 0 || f.preamble)
			return c
		case f.preamble:
			c.sure = c.sure || bad == ok
		case b[4] != frameHead/4 || b[5] > typeSASL:
			return chain{}
		case f.name >= Open:
			c.sure = true
		case f.name == Performative && bad == ok:
			return chain{} // it cannot be checked
		}
		c.good = true
		if bad == short || f.size > len(b) {
			return c
		}
		b = b[f.size:]
	}
	return c
}
