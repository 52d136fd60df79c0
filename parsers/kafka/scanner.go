package kafka

import (
	"encoding/binary"

	"sheaf/parsers"
)

// state is where a Scanner stands between two calls of Scan.
type state uint8

const (
	boundary state = iota // the next byte begins a message
	inFront               // inside a message whose front is in carry, not complete
	inBody                // inside a message whose front is known
	lost                  // anywhere
)

// A Scanner finds Kafka messages in one flow. It implements parsers.Scanner and
// remembers, beside the message it is in, at most maxFront bytes of a message
// whose beginning was cut.
type Scanner struct {
	protocol parsers.ProtocolID
	state    state
	side     side
	frozen   bool   // leaves carry alone
	last     uint32 // correlation ID of the last message

	// The message that the flow is in.
	f   front
	at  int // bytes of it that were seen
	key uint64

	carry []byte // owned: the bytes seen of a message in inFront
}

// NewScanner returns a scanner at a message boundary.
func NewScanner(id parsers.ProtocolID) *Scanner { return &Scanner{protocol: id} }

// Lost implements parsers.Scanner.
func (s *Scanner) Lost() { s.state = lost }

// Rescan implements parsers.Scanner. What is scanned again was before the last
// message, mostly not by far.
func (s *Scanner) Rescan(dst []parsers.Span, payload []byte) []parsers.Span {
	c := *s
	c.state = lost
	c.frozen = true
	c.last -= maxAhead / 2
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
			n = min(len(p), s.f.size-s.at)
			dst = s.span(dst, n, nil)
		case lost:
			n = resync(p, s.side, s.last, len(p) == all, &budget)
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

// first scans a message from its first byte. It takes no byte, and is lost, when
// there is no message.
func (s *Scanner) first(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	s.at = 0
	switch parseFront(p, s.side, &s.f) {
	case ok:
		event := s.enter(p)
		n := min(len(p), s.f.size)
		return s.span(dst, n, event), n
	case short:
		if !s.frozen {
			s.carry = append(s.carry[:0], p...)
		}
		return s.cut(dst, p), len(p)
	}
	return dst, s.fail()
}

// resume goes on with a message whose front was cut.
func (s *Scanner) resume(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	s.carry = append(s.carry, p[:min(len(p), maxFront-len(s.carry))]...)
	switch parseFront(s.carry, s.side, &s.f) {
	case ok:
		s.enter(s.carry)
		n := min(len(p), s.f.size-s.at)
		return s.span(dst, n, nil), n
	case short:
		return s.cut(dst, p), len(p)
	}
	return dst, s.fail()
}

// fail gives up a flow that does not go on as it should. Was it of requests, it
// may have been taken for that by chance. It takes no byte.
func (s *Scanner) fail() int {
	s.state = lost
	if s.side == requests {
		s.side = unknown
	}
	return 0
}

// cut appends the span of bytes that end before their message's front does. Its
// holes are not known: the message may turn out to be of the other side.
func (s *Scanner) cut(dst []parsers.Span, p []byte) []parsers.Span {
	name := s.f.name
	if name == 0 {
		name = Request
		if s.side == responses {
			name = Response
		}
	}
	s.f = front{name: name, body: s.at + len(p)}
	s.key = parsers.MessageKey(s.protocol, uint8(name), nil, 0)
	s.state = inFront
	return s.span(dst, len(p), nil)
}

// enter makes a message the one that the flow is in, and returns its event. b
// holds what was seen of it, from its first byte.
func (s *Scanner) enter(b []byte) []byte {
	s.state = inBody
	s.side = s.f.side
	s.last = binary.BigEndian.Uint32(b[s.f.id:])
	event := s.f.topic.of(b)
	s.key = parsers.MessageKey(s.protocol, uint8(s.f.name), event, len(event))
	if len(event) == 0 {
		return nil
	}
	return event
}

// span appends the span of the next n bytes of the message, and moves on.
func (s *Scanner) span(dst []parsers.Span, n int, event []byte) []parsers.Span {
	dst = append(dst, parsers.Span{})
	sp := &dst[len(dst)-1] // written in place: a Span is large
	sp.Len = n
	sp.At = s.at
	sp.Protocol = s.protocol
	sp.Name = uint8(s.f.name)
	sp.Class = s.f.name.class()
	sp.Event = event
	sp.Key = s.key
	sp.Body = min(max(s.f.body-s.at, 0), n)
	if s.at < s.f.body {
		s.holes(sp)
	}
	s.at += n
	if s.state == inBody && s.at == s.f.size {
		s.state = boundary
	}
	return dst
}

// holes notes the fields of the flow that lie in the span.
func (s *Scanner) holes(sp *parsers.Span) {
	hole := func(off, n int, kind parsers.HoleKind, counter, step uint8) {
		if off -= s.at; off >= 0 && off+n <= sp.Len {
			sp.Holes[sp.NumHoles] = parsers.Hole{Off: off, Len: n, Kind: kind, Counter: counter, Step: step}
			sp.NumHoles++
		}
	}
	if s.f.id > 0 {
		hole(s.f.id, 4, parsers.HoleBig, counterCorrelation, 1)
	}
	if c := s.f.client; c.len > 0 && c.len <= parsers.MaxHoleText {
		hole(c.off, c.len, parsers.HoleText, counterClient, 0)
	}
	if at := s.f.session; at > 0 {
		hole(at, 4, parsers.HoleBig, counterSession, 0)
		hole(at+4, 4, parsers.HoleBig, counterEpoch, 1)
	}
}
