package zmtp

import (
	"math"

	"sheaf/parsers"
)

// state is where a Scanner stands between two calls of Scan.
type state uint8

const (
	boundary state = iota // the next byte begins a message
	inFront               // inside a message whose front is in carry, not complete
	inFrame               // inside a frame of a message whose front is known
	inHead                // inside the header of a later frame
	lost                  // anywhere
)

// nowhere is the offset of a body that is not known yet.
const nowhere = math.MaxInt

// A Scanner finds ZMTP messages in one flow. It implements parsers.Scanner and
// remembers, beside the message it is in, at most maxFront bytes of a message
// whose beginning was cut.
type Scanner struct {
	protocol   parsers.ProtocolID
	state      state
	subscriber bool // the sender's socket subscribes
	frozen     bool // leaves carry alone

	// The message that the flow is in.
	name Name
	more bool // frames follow the one that the flow is in
	have uint8
	head [maxHead]byte // the first have bytes of a later frame's header
	at   int           // bytes of the message that were seen
	rest int           // bytes of the frame still to come
	body int           // offset of the body
	key  uint64

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
		case inFrame, inHead:
			if n = s.pass(p); n > 0 {
				dst = s.span(dst, n, nil)
			}
		case lost:
			n = resync(p, s.subscriber, len(p) == all, &budget)
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
	var f front
	s.at = 0
	switch parseFront(p, s.subscriber, &f) {
	case ok:
		event := s.enter(p, &f)
		n := s.pass(p)
		return s.span(dst, n, event), n
	case short:
		if !s.frozen {
			s.carry = append(s.carry[:0], p...)
		}
		return s.cut(dst, p, &f), len(p)
	}
	s.state = lost
	return dst, 0
}

// resume goes on with a message whose front was cut.
func (s *Scanner) resume(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	s.carry = append(s.carry, p[:min(len(p), maxFront-len(s.carry))]...)
	var f front
	switch parseFront(s.carry, s.subscriber, &f) {
	case ok:
		s.enter(s.carry, &f)
		n := s.pass(p)
		return s.span(dst, n, nil), n
	case short:
		return s.cut(dst, p, &f), len(p)
	}
	s.state = lost
	return dst, 0
}

// cut appends the span of bytes that end before their message's front does. Of
// a header without a name it is taken for a message, or by its flags for a
// command.
func (s *Scanner) cut(dst []parsers.Span, p []byte, f *front) []parsers.Span {
	if s.at == 0 {
		s.name = f.name
		if s.name == 0 {
			s.name = Message
			if p[0]&flagCommand != 0 {
				s.name = Command
			}
		}
		s.key = parsers.MessageKey(s.protocol, uint8(s.name), nil, 0)
		s.body = nowhere
	}
	s.state = inFront
	return s.span(dst, len(p), nil)
}

// enter makes a message the one that the flow is in, and returns its event. b
// holds what was seen of it, from its first byte.
func (s *Scanner) enter(b []byte, f *front) []byte {
	s.state = inFrame
	s.name = f.name
	s.more = f.more
	s.rest = f.size - s.at
	s.body = f.body
	if f.more {
		s.body = nowhere // behind the next frame's header
	}
	switch f.name {
	case Greeting, Ready, Initiate:
		s.subscriber = f.subscriber
	}
	event := b[f.event : f.event+min(f.eventLen, parsers.MaxKeyEvent)]
	s.key = parsers.MessageKey(s.protocol, uint8(f.name), event, f.eventLen)
	if len(event) < f.eventLen || len(event) == 0 {
		return nil
	}
	return event
}

// pass goes over the message's next bytes as far as they are its, and returns
// how many they are. Where a later frame is none, it is lost.
func (s *Scanner) pass(p []byte) (n int) {
	for {
		if s.state == inFrame {
			take := min(s.rest, len(p)-n)
			n += take
			s.rest -= take
			switch {
			case s.rest > 0:
				return n
			case !s.more:
				s.state = boundary
				return n
			}
			s.state = inHead
			s.have = 0
		}
		// A header mostly lies whole before us.
		var h frame
		var bad fault
		took := 0
		if s.have == 0 {
			h, bad = parseFrame(p[n:])
			took = h.head
		} else {
			took = copy(s.head[s.have:], p[n:])
			h, bad = parseFrame(s.head[:int(s.have)+took])
			took = h.head - int(s.have)
		}
		switch bad {
		case ok:
			n += took
			s.state = inFrame
			s.rest = h.size
			s.more = h.goesOn(false)
			if s.body == nowhere && h.flags&flagCommand == 0 {
				s.body = s.at + n
			}
		case short:
			s.have += uint8(copy(s.head[s.have:], p[n:]))
			return len(p)
		default:
			s.state = lost
			return n
		}
	}
}

// span appends the span of the next n bytes of the message.
func (s *Scanner) span(dst []parsers.Span, n int, event []byte) []parsers.Span {
	dst = append(dst, parsers.Span{})
	sp := &dst[len(dst)-1] // written in place: a Span is large
	sp.Len = n
	sp.At = s.at
	sp.Protocol = s.protocol
	sp.Name = uint8(s.name)
	sp.Class = s.name.class()
	sp.Event = event
	sp.Key = s.key
	sp.Body = min(max(s.body-s.at, 0), n)
	s.at += n
	return dst
}
