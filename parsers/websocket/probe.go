package websocket

import (
	"unicode/utf8"

	"sheaf/parsers"
)

const (
	// maxChain is how many frames in a row are looked at before they are believed
	// to go on.
	maxChain = 8
	// maxLook is how many bytes of a frame are looked at.
	maxLook = 512

	// resyncBudget bounds the frames that one call of Scan looks at to find a
	// boundary.
	resyncBudget = 64

	// What a chain of frames must weigh to be believed: where a segment begins,
	// inside of one, and on any port.
	beginWeight  = 2
	insideWeight = 8
	strongWeight = 10

	exactWeight   = 4 // of ending where the segment does
	maxTextWeight = 8 // of two bytes of text each
)

// probe judges whether bytes are of WebSocket, with the inner protocol in it or,
// where that is nil, with anything; see parsers.Protocol.
func probe(payload []byte, inner *parsers.Protocol) parsers.Confidence {
	if len(payload) > 0 && (payload[0] == 'G' || payload[0] == 'H') {
		return probeUpgrade(payload, inner)
	}
	budget := maxChain
	var plain []byte
	c := weigh(payload, inner, &plain, &budget)
	switch {
	case c.holds(strongWeight):
		return parsers.Strong
	case c.begins() && c.weight > 0:
		return parsers.Weak
	}
	return parsers.None
}

// probeUpgrade judges an HTTP head. One that is cut is enough where it says that
// the inner protocol is meant; what it does not say may come behind.
func probeUpgrade(payload []byte, inner *parsers.Protocol) parsers.Confidence {
	var u upgrade
	bad := parseUpgrade(payload, &u)
	switch {
	case !u.websocket || inner == nil && bad != ok, inner != nil && !u.speaks(inner.Name):
		return parsers.None
	}
	return parsers.Strong
}

// resync returns how many bytes of p come before the first place in it where
// frames begin, len(p) when there is none. begin says that p begins a segment,
// which is where frames mostly begin; elsewhere more is asked for.
func (s *Scanner) resync(p []byte, begin bool, budget *int) int {
	if begin && (p[0] == 'G' || p[0] == 'H') {
		var u upgrade
		if bad := parseUpgrade(p, &u); bad == ok || bad == short && u.websocket {
			return 0
		}
	}
	for i := range p {
		if *budget <= 0 {
			break
		}
		var h head
		if firstByte(p[i], &h) != ok || i > 0 && !fits(p[i:]) {
			continue
		}
		c := weigh(p[i:], s.of, &s.plain, budget)
		if begin && i == 0 && c.begins() || c.holds(insideWeight) {
			return i
		}
	}
	return len(p)
}

// fits rejects, at the cost of two bytes, most places where no frame begins: one
// that does is whole, and ends before the bytes do or with them.
func fits(p []byte) bool {
	if len(p) < 2 {
		return false
	}
	n := int(p[1] &^ flagMasked)
	return n >= 126 || n <= len(p)-2
}

// A chain is what can be said of bytes as frames in a row.
type chain struct {
	good   bool // nothing speaks against it
	exact  bool // the last frame ends where the bytes do
	whole  int  // frames that are wholly there
	weight int  // what speaks for it
}

// begins says whether the chain is good enough where a frame is expected.
func (c *chain) begins() bool { return c.good && (c.exact || c.weight >= beginWeight) }

// holds says whether the chain is good enough where nothing is expected.
func (c *chain) holds(weight int) bool {
	return c.exact && c.weight+exactWeight >= weight || c.whole > 1 && c.good && c.weight >= weight
}

// weigh looks at bytes as frames. It unmasks behind what is in plain, and leaves
// that as it was.
func weigh(b []byte, inner *parsers.Protocol, plain *[]byte, budget *int) (c chain) {
	masked := false
	for len(b) > 0 && c.whole < maxChain {
		if *budget <= 0 {
			c.good = c.whole > 0
			return c
		}
		*budget--
		var h head
		switch parseHead(b, &h) {
		case ok:
		case short:
			c.good = c.whole > 0
			return c
		default:
			return chain{}
		}
		if c.whole > 0 && h.masked != masked { // one end masks, the other does not (5.1)
			return chain{}
		}
		masked = h.masked
		have := min(h.len, len(b)-h.size)
		look := b[h.size : h.size+min(have, maxLook)]
		from := len(*plain)
		if masked {
			*plain = parsers.Mask(*plain, look, h.key, 0)
			look = (*plain)[from:]
		}
		weight, fits := h.weigh(look, inner)
		*plain = (*plain)[:from]
		if !fits {
			return chain{}
		}
		c.weight += weight
		if have < h.len {
			c.good = true
			return c
		}
		c.whole++
		b = b[h.size+h.len:]
	}
	c.good = c.whole > 0
	c.exact = c.good
	return c
}

// weigh says what speaks for a frame, of which data is the beginning without its
// mask, and whether nothing speaks against it.
func (h *head) weigh(data []byte, inner *parsers.Protocol) (weight int, fits bool) {
	switch {
	case h.name == Close: // a code and text (5.5.1)
		return 1, len(data) == 0 || len(data) >= 2 && data[0]>>4 == 0 && data[0] >= 3
	case h.name.control():
		return 1, true
	case h.compressed || h.name == Continuation || len(data) == 0:
		return 0, true
	case inner != nil:
		switch inner.Probe(data) {
		case parsers.Strong:
			return strongWeight, true
		case parsers.Weak:
			return beginWeight, true
		}
		return 0, false
	case h.name == Text && h.fin:
		return min(len(data)/2, maxTextWeight), text(data, len(data) < h.len)
	}
	return 0, true
}

// text says whether bytes are text without control characters, or the beginning
// of such when they are cut.
func text(b []byte, cut bool) bool {
	for len(b) > 0 {
		c, n := utf8.DecodeRune(b)
		if c == utf8.RuneError && n == 1 {
			return cut && !utf8.FullRune(b)
		}
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
		b = b[n:]
	}
	return true
}
