package amqp

import (
	"bytes"

	"sheaf/parsers"
)

const (
	// maxGuess is the largest frame that a guess may begin with: a wrong one
	// takes that many bytes for its body. Brokers allow 128 KiB by themselves.
	maxGuess = 256 << 10

	// maxGuessChannel is the largest channel number that a guess may begin with.
	maxGuessChannel = 4095

	// maxChain is how many frames in a row are looked at before they are
	// believed to go on.
	maxChain = 16

	// resyncBudget bounds the frames that one call of Scan looks at to find a
	// boundary.
	resyncBudget = 512
)

// Probe judges whether bytes begin with AMQP frames; see parsers.Protocol.
func Probe(payload []byte) parsers.Confidence {
	budget := maxChain
	c := weigh(payload, &budget)
	switch {
	case !c.good:
		return parsers.None
	case c.sure || c.exact:
		return parsers.Strong
	}
	return parsers.Weak
}

// resync returns how many bytes of p come before the first frame boundary in it,
// len(p) when there is none. begin says that p begins a segment, which is where
// frames mostly begin; elsewhere a frame comes behind another's end.
func resync(p []byte, begin bool, budget *int) int {
	for i := 0; i < len(p) && *budget > 0; {
		if i > 0 || begin {
			*budget--
			if c := weigh(p[i:], budget); c.good && (i == 0 || c.sure || c.whole > 0) {
				return i
			}
		}
		n := bytes.IndexByte(p[i:], frameEnd)
		if n < 0 {
			break
		}
		i += n + 1
	}
	return len(p)
}

// A chain is what can be said of bytes as frames in a row.
type chain struct {
	good  bool // nothing speaks against it
	sure  bool // the first frame is one that nothing else looks like
	exact bool // the last frame ends where the bytes do
	whole int  // frames that are wholly there
}

func weigh(b []byte, budget *int) (c chain) {
	for len(b) > 0 && c.whole < maxChain {
		if *budget < 0 {
			return c
		}
		*budget--
		var f front
		bad := parseFront(b, &f)
		switch {
		case bad != ok && bad != short, f.size > maxGuess+frameRest, f.channel > maxGuessChannel:
			return chain{}
		case bad == short && f.size == 0:
			// Not even the size is there. Of a preamble as much has to be as
			// tells it from those of other versions.
			c.good = c.whole > 0 || f.kind != typePreamble
			if f.kind != typePreamble && len(b) > 4 && (b[3] != 0 || b[4] > maxGuess>>16) {
				return chain{}
			}
			return c
		case f.name == Method && (bad == ok || len(b) >= methodHead):
			return chain{} // it cannot be checked
		case f.kind == typePreamble && bad == short:
			c.good = len(b) >= 6
			return c
		}
		if c.whole == 0 {
			c.sure = f.kind == typePreamble || f.kind == typeMethod && f.name != Method || f.kind == typeHeader && bad == ok
		}
		c.good = true
		if bad == short || f.size > len(b) {
			return c
		}
		if !f.ends(b) {
			return chain{}
		}
		c.whole++
		b = b[f.size:]
	}
	c.good = c.whole > 0
	c.exact = c.good && len(b) == 0
	return c
}

// ends says whether the frame, all of which is in b, ends as it should.
func (f *front) ends(b []byte) bool { return f.kind == typePreamble || b[f.size-1] == frameEnd }
