package resp

import "sheaf/parsers"

// state is where a Scanner stands between two calls of Scan.
type state uint8

const (
	boundary state = iota // the next byte begins a message
	inFront               // inside a message whose beginning is in carry, not enough of it
	inBody                // inside a message whose front is known
	lost                  // anywhere
)

// A Scanner finds RESP messages in one flow. It implements parsers.Scanner and
// remembers, beside the message it is in and who sends in the flow, at most
// maxFront bytes of a message whose beginning was cut.
type Scanner struct {
	protocol parsers.ProtocolID
	state    state
	side     side
	frozen   bool // leaves carry alone

	// The message that the flow is in.
	name   Name
	at     int // bytes of it that were seen
	body   int // offset of the body
	key    uint64
	hole   hole
	walker walker

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
		case inFront, inBody:
			dst, n = s.resume(dst, p)
		case lost:
			n = resync(p, s.side, len(p) == all, &budget)
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
	var f front
	bad := parseFront(p, s.side, &f)
	if bad != ok && bad != short {
		s.state = lost
		return dst, 0
	}
	n, done, worse := s.walker.start(p, &f)
	if worse != ok {
		s.state = lost
		return dst, 0
	}
	var event []byte
	if bad == ok {
		event = s.enter(p, &f)
	} else {
		s.unnamed(p[0])
		if !s.frozen {
			s.carry = append(s.carry[:0], p[:min(n, maxFront)]...)
		}
	}
	return s.span(dst, n, done, event), n
}

// resume goes on with a message.
func (s *Scanner) resume(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	n, done, bad := s.walker.walk(p)
	if bad == ok && s.state == inFront {
		s.carry = append(s.carry, p[:min(n, maxFront-len(s.carry))]...)
		var f front
		switch bad = parseFront(s.carry, s.side, &f); bad {
		case ok:
			s.enter(s.carry, &f)
		case short:
			s.body = s.at + n // not here
			bad = ok
		}
	}
	if bad != ok {
		s.state = lost
		return dst, 0
	}
	return s.span(dst, n, done, nil), n
}

// unnamed makes a message the one that the flow is in of which too little was
// seen.
func (s *Scanner) unnamed(first byte) {
	s.state = inFront
	s.name = plain(first)
	s.key = parsers.MessageKey(s.protocol, uint8(s.name), nil, 0)
	s.body = 1 << 30 // not here
	s.hole = hole{}
}

// enter makes a message the one that the flow is in, and returns its event. b
// holds what was seen of it, from its first byte.
func (s *Scanner) enter(b []byte, f *front) []byte {
	s.state = inBody
	s.name = f.name
	s.side = f.side
	s.body = f.body
	s.hole = f.hole
	event := b[f.event:min(f.event+f.eventLen, len(b))]
	s.key = parsers.MessageKey(s.protocol, uint8(f.name), event, f.eventLen)
	if len(event) < f.eventLen || len(event) == 0 || len(event) > parsers.MaxKeyEvent {
		return nil
	}
	return event
}

// span appends the span of the next n bytes of the message, the last when done.
func (s *Scanner) span(dst []parsers.Span, n int, done bool, event []byte) []parsers.Span {
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
	if h := &s.hole; h.len > 0 {
		if off := h.off - s.at; off >= 0 && off+int(h.len) <= n {
			sp.AddHole(off, int(h.len), h.kind, h.counter, h.step)
		}
	}
	s.at += n
	if done {
		s.state = boundary
	}
	return dst
}
