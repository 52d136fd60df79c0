package stomp

import (
	"bytes"

	"sheaf/parsers"
)

// state is where a Scanner stands between two calls of Scan.
type state uint8

const (
	boundary state = iota // the next byte begins a frame, or is a heart-beat
	inFront               // inside a frame whose headers are in carry, not complete
	inBody                // inside a frame whose headers are known
	lost                  // anywhere
)

// A Scanner finds STOMP frames in one flow. It implements parsers.Scanner and
// remembers, beside the frame it is in, at most maxFront bytes of a frame whose
// headers were cut.
type Scanner struct {
	protocol parsers.ProtocolID
	state    state
	frozen   bool // leaves carry alone

	// The frame that the flow is in.
	name  Name
	size  int // of the whole frame with its NUL, 0 when only the NUL tells
	at    int // bytes of it that were seen
	body  int // offset of the body
	key   uint64
	holes holes

	carry []byte // owned: the bytes seen of a frame in inFront
}

// NewScanner returns a scanner at a frame boundary.
func NewScanner(id parsers.ProtocolID) *Scanner { return &Scanner{protocol: id} }

// Lost implements parsers.Scanner.
func (s *Scanner) Lost() { s.state = lost }

// Rescan implements parsers.Scanner.
func (s *Scanner) Rescan(dst []parsers.Span, payload []byte) []parsers.Span {
	c := *s
	c.state = lost
	c.frozen = true
	return c.Scan(dst, payload)
}

// Scan implements parsers.Scanner.
func (s *Scanner) Scan(dst []parsers.Span, p []byte) []parsers.Span {
	budget := resyncBudget
	for all := len(p); len(p) > 0; {
		var n int
		switch s.state {
		case boundary:
			dst, n = s.first(dst, p)
		case inFront:
			dst, n = s.resume(dst, p)
		case inBody:
			dst, n = s.rest(dst, p, nil)
		case lost:
			n = resync(p, len(p) == all, &budget)
			if n > 0 {
				dst = append(dst, parsers.OpaqueSpan(n))
			}
			if n < len(p) {
				s.state = boundary
			}
		}
		p = p[n:]
	}
	return dst
}

// lineEnds returns how many line ends p begins with, in bytes.
func lineEnds(p []byte) (n int) {
	for n < len(p) && (p[n] == '\n' || p[n] == '\r') {
		n++
	}
	return n
}

// first scans a frame or heart-beats from their first byte. It takes no byte, and
// is lost, when there is neither.
func (s *Scanner) first(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	s.at = 0
	if n := lineEnds(p); n > 0 {
		s.name = HeartBeat
		s.key = parsers.MessageKey(s.protocol, uint8(HeartBeat), nil, 0)
		s.body = n
		s.holes.n = 0
		return s.span(dst, n, nil), n
	}
	var f front
	switch parseFront(p, &f) {
	case ok:
		return s.rest(dst, p, s.enter(p, &f))
	case short:
		if !s.frozen {
			s.carry = append(s.carry[:0], p...)
		}
		return s.cut(dst, p), len(p)
	}
	s.state = lost
	return dst, 0
}

// resume goes on with a frame whose headers were cut.
func (s *Scanner) resume(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	s.carry = append(s.carry, p[:min(len(p), maxFront-len(s.carry))]...)
	var f front
	switch parseFront(s.carry, &f) {
	case ok:
		s.enter(s.carry, &f)
		return dst, 0 // the rest finds the end
	case short:
		return s.cut(dst, p), len(p)
	}
	s.state = lost
	return dst, 0
}

// cut appends the span of bytes that end before their frame's headers do.
func (s *Scanner) cut(dst []parsers.Span, p []byte) []parsers.Span {
	if s.at == 0 {
		s.name, _, _, _ = command(p)
		s.key = parsers.MessageKey(s.protocol, uint8(s.name), nil, 0)
		s.holes.n = 0
	}
	s.state = inFront
	s.body = s.at + len(p) // not here
	return s.span(dst, len(p), nil)
}

// enter makes a frame the one that the flow is in, and returns its event. b
// holds what was seen of it, from its first byte.
func (s *Scanner) enter(b []byte, f *front) []byte {
	s.state = inBody
	s.name = f.name
	s.size = f.size()
	s.body = f.body
	s.holes = f.holes
	event := f.event.of(b)
	s.key = parsers.MessageKey(s.protocol, uint8(f.name), event, len(event))
	if len(event) == 0 {
		return nil
	}
	return event
}

// rest scans a frame whose headers are known up to its end, and the line ends
// behind it. It takes no byte, and is lost, where it does not end as it should.
func (s *Scanner) rest(dst []parsers.Span, p []byte, event []byte) ([]parsers.Span, int) {
	n := s.size - s.at
	if s.size == 0 {
		from := min(max(s.body-s.at, 0), len(p))
		n = from + bytes.IndexByte(p[from:], 0) + 1
		if n == from {
			return s.span(dst, len(p), event), len(p)
		}
	}
	if n > len(p) {
		return s.span(dst, len(p), event), len(p)
	}
	if p[n-1] != 0 {
		s.state = lost
		return dst, 0
	}
	s.state = boundary
	n += lineEnds(p[n:])
	return s.span(dst, n, event), n
}

// span appends the span of the next n bytes of the frame.
func (s *Scanner) span(dst []parsers.Span, n int, event []byte) []parsers.Span {
	dst = append(dst, parsers.Span{})
	sp := &dst[len(dst)-1] // written in place: a Span is large
	sp.Len = n
	sp.At = s.at
	sp.Protocol = s.protocol
	sp.Name = uint8(s.name)
	sp.Class = classes[s.name]
	sp.Event = event
	sp.Key = s.key
	sp.Body = min(max(s.body-s.at, 0), n)
	for i := range s.holes.n {
		h := &s.holes.list[i]
		if off := h.off - s.at; off >= 0 && off+int(h.len) <= n {
			sp.Holes[sp.NumHoles] = parsers.Hole{Off: off, Len: int(h.len), Kind: h.kind, Counter: h.counter, Step: h.step}
			sp.NumHoles++
		}
	}
	s.at += n
	return dst
}
