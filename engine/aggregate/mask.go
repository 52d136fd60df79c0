package aggregate

import (
	"encoding/binary"

	"sheaf/parsers"
)

// unmask makes m.spans, which are those of the payload, such that can be trusted.
// It returns the payload as they describe it, with its masks taken off: bytes that
// are masked with another key each time have nothing in common.
func (m *Merger) unmask(payload []byte) []byte {
	plain := payload
	if masked(m.spans) {
		m.plain = appendPlain(m.plain[:0], m.spans, payload)
		plain = m.plain
	}
	m.spans = trust(m.spans, plain)
	if !masked(m.spans) {
		return payload
	}
	return plain
}

func masked(spans []parsers.Span) bool {
	for i := range spans {
		if maskOf(&spans[i]) != nil {
			return true
		}
	}
	return false
}

// maskOf returns the hole that says how a span is masked, nil where it is not.
func maskOf(s *parsers.Span) *parsers.Hole {
	if s.NumHoles > 0 && s.Holes[0].Kind == parsers.HoleMask {
		return &s.Holes[0]
	}
	return nil
}

// appendPlain appends the payload without the masks of its spans. Those that
// cannot be trusted stay on.
func appendPlain(dst []byte, spans []parsers.Span, payload []byte) []byte {
	at := len(dst)
	dst = append(dst, payload...)
	for i := range spans {
		s := &spans[i]
		if s.Len < 0 || s.Len > len(dst)-at {
			break
		}
		b := dst[at : at+s.Len]
		if h := maskOf(s); h != nil && trustMask(h, b) {
			parsers.MaskInPlace(b[h.Off+h.Len:], h.Key, h.Phase)
		}
		at += s.Len
	}
	return dst
}

// maskKeyLen is the length of a mask's key in bytes (RFC 6455 section 5.3).
const maskKeyLen = 4

// trustMask tells whether a hole describes the mask of a span's bytes so that it
// can be put on again.
func trustMask(h *parsers.Hole, b []byte) bool {
	if h.Off < 0 || h.Len != 0 && h.Len != maskKeyLen || h.Off > len(b)-h.Len {
		return false
	}
	if h.Len == 0 {
		return h.Phase < maskKeyLen
	}
	return h.Phase == 0 && binary.BigEndian.Uint32(b[h.Off:]) == h.Key
}
