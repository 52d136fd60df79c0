package nats

import (
	"bytes"

	"sheaf/parsers"
)

// state is where a Scanner stands between two calls of Scan.
type state uint8

const (
	boundary state = iota // the next byte begins a message
	inFront               // inside a message whose control line is in carry, not complete
	inLine                // inside a message that ends with its line
	inBody                // inside a message whose size is known
	lost                  // anywhere
)

// A Scanner finds NATS messages in one flow. It implements parsers.Scanner and
// remembers, beside the message it is in, at most maxFront bytes of a message
// whose control line was cut.
type Scanner struct {
	protocol parsers.ProtocolID
	state    state
	frozen   bool // leaves carry alone
	side     side
	payload  bool // the message ends with a payload, and so with CR LF

	// The message that the flow is in.
	name  Name
	class parsers.Class
	size  int // of the whole message, valid in inBody
	at    int // bytes of it that were seen
	body  int // offset of the body
	key   uint64
	holes holes

	carry []byte // owned: the bytes seen of a message in inFront
}

// NewScanner returns a scanner at a message boundary.
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
		case inLine:
			if n = bytes.IndexByte(p, '\n') + 1; n > 0 {
				s.state = boundary
			} else {
				n = len(p)
			}
			dst = s.span(dst, n, nil)
			s.at += n
		case inBody:
			if n = min(len(p), s.size-s.at); s.payload && s.at+n == s.size && !ends(p[:n]) {
				s.state = lost
				continue
			}
			dst = s.span(dst, n, nil)
			s.pass(n)
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

// ends says whether p can be the end of a payload.
func ends(p []byte) bool {
	return p[len(p)-1] == '\n' && (len(p) < 2 || p[len(p)-2] == '\r')
}

// first scans a message from its first byte. It takes no byte, and is lost, when
// there is no message.
func (s *Scanner) first(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	var f front
	s.at = 0
	switch parseFront(p, &f) {
	case ok:
		event := s.enter(p, &f)
		n := len(p)
		if f.size > 0 {
			n = min(n, f.size)
		}
		dst = s.span(dst, n, event)
		s.pass(n)
		return dst, n
	case short:
		if !s.frozen {
			s.carry = append(s.carry[:0], p...)
		}
		return s.cut(dst, p), len(p)
	}
	s.state = lost
	return dst, 0
}

// resume goes on with a message whose control line was cut.
func (s *Scanner) resume(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	had := len(s.carry)
	s.carry = append(s.carry, p[:min(len(p), maxFront-had)]...)
	var f front
	switch parseFront(s.carry, &f) {
	case ok:
		s.enter(s.carry, &f)
		return dst, 0 // the rest is for the states of lines and bodies
	case short:
		return s.cut(dst, p), len(p)
	}
	s.state = lost
	return dst, 0
}

// cut appends the span of bytes that end before their message's control line
// does.
func (s *Scanner) cut(dst []parsers.Span, p []byte) []parsers.Span {
	if s.at == 0 {
		s.name, _, _ = verb(p)
		s.class = classes[s.name]
		s.key = parsers.MessageKey(s.protocol, uint8(s.name), nil, 0)
		s.holes.n = 0
	}
	s.state = inFront
	s.body = s.at + len(p) // not here
	dst = s.span(dst, len(p), nil)
	s.at += len(p)
	return dst
}

// enter makes a message the one that the flow is in, and returns its event. b
// holds what was seen of it, from its first byte.
func (s *Scanner) enter(b []byte, f *front) []byte {
	s.state = inBody
	if f.size == 0 {
		s.state = inLine
	}
	s.name = f.name
	s.class = f.class
	s.size = f.size
	s.payload = f.size > f.line
	s.body = f.body
	s.holes = f.holes
	if side := sides[f.name]; side != unknown {
		s.side = side
	}
	if s.side == keepAlive[f.name] {
		s.class = parsers.ClassAck
	}
	event := f.event.of(b)
	s.key = parsers.MessageKey(s.protocol, uint8(f.name), event, len(event))
	if len(event) == 0 {
		return nil
	}
	return event
}

// span appends the span of the next n bytes of the message.
func (s *Scanner) span(dst []parsers.Span, n int, event []byte) []parsers.Span {
	dst = append(dst, parsers.Span{})
	sp := &dst[len(dst)-1] // written in place: a Span is large
	sp.Len = n
	sp.At = s.at
	sp.Protocol = s.protocol
	sp.Name = uint8(s.name)
	sp.Class = s.class
	sp.Event = event
	sp.Key = s.key
	sp.Body = min(max(s.body-s.at, 0), n)
	for i := range s.holes.n {
		h := &s.holes.list[i]
		if off := int(h.off) - s.at; off >= 0 && off+int(h.len) <= n {
			sp.Holes[sp.NumHoles] = parsers.Hole{Off: off, Len: int(h.len), Kind: h.kind, Counter: h.counter, Step: h.step}
			sp.NumHoles++
		}
	}
	return dst
}

// pass moves on by n bytes of the message.
func (s *Scanner) pass(n int) {
	s.at += n
	if s.state == inBody && s.at == s.size {
		s.state = boundary
	}
}
