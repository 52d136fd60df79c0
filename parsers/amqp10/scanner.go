package amqp10

import "sheaf/parsers"

// state is where a Scanner stands between two calls of Scan.
type state uint8

const (
	boundary state = iota // the next byte begins a frame
	inFront               // inside a frame whose front is in carry, not complete
	inFrame               // inside a frame whose front is known
	lost                  // anywhere
)

// A Scanner finds AMQP 1.0 frames in one flow. It implements parsers.Scanner and
// remembers, beside the frame it is in, at most maxFront bytes of a frame whose
// beginning was cut, and the addresses of links.
type Scanner struct {
	protocol parsers.ProtocolID
	state    state
	frozen   bool // leaves carry and links alone

	// The frame that the flow is in.
	name Name
	size int32 // of the whole frame, valid in inFrame
	seen int32 // bytes of it that were seen
	body int32 // offset of what follows the performative
	key  uint64

	carry []byte // owned: the bytes seen of a frame in inFront
	links *links
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
	return c.scan(dst, payload)
}

// Scan implements parsers.Scanner.
func (s *Scanner) Scan(dst []parsers.Span, payload []byte) []parsers.Span {
	if s.links != nil {
		s.links.turn++
	}
	return s.scan(dst, payload)
}

func (s *Scanner) scan(dst []parsers.Span, p []byte) []parsers.Span {
	budget := resyncBudget
	for all := len(p); len(p) > 0; {
		var n int
		switch s.state {
		case boundary:
			dst, n = s.first(dst, p)
		case inFront:
			dst, n = s.resume(dst, p)
		case inFrame:
			n = min(len(p), int(s.size-s.seen))
			dst = s.span(dst, n, nil, nil, nil)
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

// first scans a frame from its first byte. It takes no byte, and is lost, when
// there is no frame.
func (s *Scanner) first(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	var f front
	s.seen = 0
	switch parseFront(p, &f) {
	case ok:
		event := s.enter(p, &f)
		n := min(len(p), f.size)
		dst = s.span(dst, n, event, p, &f)
		s.pass(n)
		return dst, n
	case short:
		if !s.frozen {
			s.carry = append(s.carry[:0], p...)
		}
		return s.cut(dst, &f, p), len(p)
	}
	s.state = lost
	return dst, 0
}

// resume goes on with a frame whose front was cut.
func (s *Scanner) resume(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	s.carry = append(s.carry, p[:min(len(p), maxFront-len(s.carry))]...)
	var f front
	switch parseFront(s.carry, &f) {
	case ok:
		event := s.enter(s.carry, &f)
		if f.name == Attach {
			event = nil // it is in carry, which the next frame may take
		}
		n := min(len(p), f.size-int(s.seen))
		dst = s.span(dst, n, event, s.carry, &f)
		s.pass(n)
		return dst, n
	case short:
		return s.cut(dst, &f, p), len(p)
	}
	s.state = lost
	return dst, 0
}

// cut appends the span of bytes that end before their frame's front does. f is
// what little is known of it.
func (s *Scanner) cut(dst []parsers.Span, f *front, p []byte) []parsers.Span {
	s.state = inFront
	if s.name = f.name; s.name == 0 {
		s.name = Performative
	}
	s.key = parsers.MessageKey(s.protocol, uint8(s.name), nil, 0)
	s.body = s.seen + int32(len(p)) // not here
	dst = s.span(dst, len(p), nil, nil, nil)
	s.seen += int32(len(p))
	return dst
}

// enter makes a frame the one that the flow is in, and returns its event. b
// holds what was seen of it, from its first byte.
func (s *Scanner) enter(b []byte, f *front) (event []byte) {
	s.state = inFrame
	s.name = f.name
	s.size = int32(f.size)
	s.body = int32(f.body)
	if f.linked {
		return s.link(b, f)
	}
	if s.links != nil && !s.frozen {
		switch f.name {
		case End:
			s.links.end(f.channel)
		case Open:
			s.links.close()
		}
	}
	s.key = parsers.MessageKey(s.protocol, uint8(f.name), nil, 0)
	return nil
}

// link enters a frame that names a link, and returns the link's address.
func (s *Scanner) link(b []byte, f *front) (event []byte) {
	if f.name == Attach {
		event = f.address.of(b)
		if !s.frozen {
			if s.links == nil {
				s.links = &links{turn: 1}
			}
			s.links.attach(f.channel, f.handle, event)
		}
	} else if s.links != nil {
		turn := s.links.turn
		if s.frozen {
			turn++ // a Scan may follow while the event is still borrowed
		}
		event = s.links.address(f.channel, f.handle, turn)
		if f.name == Detach && !s.frozen {
			s.links.detach(f.channel, f.handle)
		}
	}
	if len(event) == 0 {
		if event = nil; f.handle < maxLinks {
			event = numbers[f.handle]
		} else {
			h := f.handle
			number := [5]byte{0, byte(h >> 24), byte(h >> 16), byte(h >> 8), byte(h)} // no address begins with 0
			s.key = parsers.MessageKey(s.protocol, uint8(f.name), number[:], len(number))
			return nil
		}
	}
	s.key = parsers.MessageKey(s.protocol, uint8(f.name), event, len(event))
	return event
}

// span appends the span of the next n bytes of the frame. f is the frame's front
// where it was completed by them, and b what was seen of the frame with them.
func (s *Scanner) span(dst []parsers.Span, n int, event, b []byte, f *front) []parsers.Span {
	dst = append(dst, parsers.Span{})
	sp := &dst[len(dst)-1] // written in place: a Span is large
	sp.Len = n
	sp.At = int(s.seen)
	sp.Protocol = s.protocol
	sp.Name = uint8(s.name)
	sp.Class = performatives[s.name].class
	sp.Event = event
	sp.Key = s.key
	sp.Body = min(max(int(s.body-s.seen), 0), n)
	if f != nil && f.name >= Open {
		s.holes(sp, b, f)
	}
	return dst
}

// holes notes those of the frame's fields that belong to the flow and lie in the
// span.
func (s *Scanner) holes(sp *parsers.Span, b []byte, f *front) {
	hole := func(p place, kind parsers.HoleKind, counter, step uint8) {
		if off := p.off - int(s.seen); p.len > 0 && off >= 0 && off+p.len <= sp.Len {
			sp.Holes[sp.NumHoles] = parsers.Hole{Off: off, Len: p.len, Kind: kind, Counter: counter, Step: step}
			sp.NumHoles++
		}
	}
	if !f.sasl {
		hole(place{6, 2}, parsers.HoleBig, counterChannel, 0)
	}
	switch f.name {
	case Transfer:
		hole(f.id, parsers.HoleBig, counterDelivery, 1)
		if f.tag.len > 0 {
			p, kind, step := tagHole(f.tag, f.tag.of(b))
			hole(p, kind, counterTag, step)
		}
	case Disposition:
		hole(f.first, parsers.HoleBig, counterAck, 1)
		hole(f.last, parsers.HoleBig, counterAck, 0) // mostly the first is the last
	}
}

// tagHole returns what of a delivery-tag is the hole. Tags are made by the
// sending library: decimal numbers (Qpid Proton for Python), numbers in network
// byte order (Qpid JMS, Artemis, Azure for Go) or in the processor's (Qpid
// Proton for C++), or something unique (Azure).
func tagHole(p place, tag []byte) (place, parsers.HoleKind, uint8) {
	switch {
	case isDecimal(tag):
		return p, parsers.HoleDecimal, 1
	case len(tag) > 8:
		return p, parsers.HoleText, 0
	case len(tag) >= 4 && tag[0] != 0 && tag[len(tag)-1] == 0:
		p.len = 1 // the low byte of a number turned round, which alone counts up
	}
	return p, parsers.HoleBig, 1
}

// isDecimal says whether a tag is what a HoleDecimal can hold.
func isDecimal(tag []byte) bool {
	if len(tag) > 19 || len(tag) > 1 && tag[0] == '0' {
		return false
	}
	for _, c := range tag {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// pass moves on by n bytes of the frame.
func (s *Scanner) pass(n int) {
	s.seen += int32(n)
	if s.seen == s.size {
		s.state = boundary
	}
}
