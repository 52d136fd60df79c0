package codec

import "sheaf/parsers"

// A Hole is where a body goes on behind a field that belongs to the flow.
type Hole struct {
	at      int // in the body without its holes
	kind    parsers.HoleKind
	width   uint8 // bytes, for HoleBig; of a HoleMask see withKey
	counter uint8
	step    uint8
}

// HoleOf returns the hole of a span, behind out bytes of holes before it.
func HoleOf(h *parsers.Hole, out int) Hole {
	r := Hole{at: h.Off - out, kind: h.Kind, counter: h.Counter, step: h.Step}
	switch {
	case h.Kind == parsers.HoleBig:
		r.width = uint8(h.Len)
	case h.Kind == parsers.HoleMask && h.Len > 0:
		r.width = withKey
	case h.Kind == parsers.HoleMask:
		r.width = h.Phase
	}
	return r
}

// withKey is the width of a HoleMask that is the key's own bytes. Less is the
// phase of a mask that goes on, whose key is the flow's.
const withKey = 4

// valid tells whether h can be the i-th hole of a span, wherever it is.
func (h Hole) valid(i int) bool {
	switch h.kind {
	case parsers.HoleBig:
		return h.width >= 1 && h.width <= 8
	case parsers.HoleMask:
		return i == 0 && h.width <= withKey
	}
	return true
}

// textValue stands for a text of n bytes at an offset in codec.texts.
func textValue(at, n int) uint64 { return uint64(at)<<8 | uint64(n) }

// text returns the text that a value stands for.
func text(v uint64, texts []byte) []byte { return texts[v>>8 : v>>8+v&0xff] }

// len returns the length of the field that fills h.
func (h Hole) len(v uint64) int {
	switch h.kind {
	case parsers.HoleBig:
		return int(h.width)
	case parsers.HoleMask:
		return int(h.width &^ (withKey - 1))
	case parsers.HoleText:
		return int(v & 0xff)
	}
	n := 1
	for ; v >= 10; v /= 10 {
		n++
	}
	return n
}

// append appends the field that fills h.
func (h Hole) append(dst []byte, v uint64, texts []byte) []byte {
	if h.kind == parsers.HoleText {
		return append(dst, text(v, texts)...)
	}
	n := h.len(v)
	dst = append(dst, make([]byte, n)...)
	b := dst[len(dst)-n:]
	for i := n - 1; i >= 0; i-- {
		if h.kind == parsers.HoleDecimal {
			b[i] = byte('0' + v%10)
			v /= 10
		} else {
			b[i] = byte(v)
			v >>= 8
		}
	}
	return dst
}

// wrap brings a number into what fits the hole.
func (h Hole) wrap(v uint64) uint64 {
	switch {
	case h.kind == parsers.HoleMask:
		v = uint64(uint32(v))
	case h.kind == parsers.HoleBig && h.width < 8:
		v &= 1<<(8*h.width) - 1
	}
	return v
}

// mask puts the mask of a span with holes on again, if it has one. b is the span
// with its holes filled, v what fills the first of them.
func (s *Span) mask(b []byte, v uint64) {
	h := s.Holes[0]
	if h.kind != parsers.HoleMask {
		return
	}
	phase := h.width
	if h.width == withKey {
		phase = 0
	}
	parsers.MaskInPlace(b[h.at+h.len(v):], uint32(v), phase)
}
