package mqtt

import "sheaf/parsers"

// state is where a Scanner stands between two calls of Scan.
type state uint8

const (
	boundary state = iota // the next byte begins a message
	inFront               // inside a message whose front is in carry, not complete
	inBody                // inside a message whose front is known
	lost                  // anywhere
)

// A Scanner finds MQTT messages in one flow. It implements parsers.Scanner and
// remembers, beside the message it is in, at most maxFront bytes of a message
// whose beginning was cut, and topic aliases.
type Scanner struct {
	protocol parsers.ProtocolID
	state    state
	version  uint8 // 3, 4, 5, or 0 when unknown
	frozen   bool  // leaves carry and aliases alone

	// The message that the flow is in.
	name Name
	size int32 // of the whole message, valid in inBody
	at   int32 // bytes of it that were seen
	id   int32 // offset of the packet identifier, 0 when there is none
	body int32 // offset of the body
	key  uint64

	carry   []byte // owned: the bytes seen of a message in inFront
	aliases *aliases
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
	return c.scan(dst, payload)
}

// Scan implements parsers.Scanner.
func (s *Scanner) Scan(dst []parsers.Span, payload []byte) []parsers.Span {
	if s.aliases != nil {
		s.aliases.turn++
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
		case inBody:
			n = min(len(p), int(s.size-s.at))
			dst = s.span(dst, n, nil)
			s.pass(n)
		case lost:
			n = resync(p, s.version, len(p) == all, &budget)
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
	switch parseFront(p, s.version, &f) {
	case ok:
		event := s.enter(p, &f)
		n := min(len(p), f.size)
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

// resume goes on with a message whose front was cut.
func (s *Scanner) resume(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	s.carry = append(s.carry, p[:min(len(p), maxFront-len(s.carry))]...)
	var f front
	switch parseFront(s.carry, s.version, &f) {
	case ok:
		s.enter(s.carry, &f)
		n := min(len(p), f.size-int(s.at))
		dst = s.span(dst, n, nil)
		s.pass(n)
		return dst, n
	case short:
		return s.cut(dst, p), len(p)
	}
	s.state = lost
	return dst, 0
}

// cut appends the span of bytes that end before their message's front does.
func (s *Scanner) cut(dst []parsers.Span, p []byte) []parsers.Span {
	if s.at == 0 {
		s.name = Name(p[0] >> 4)
		s.key = parsers.MessageKey(s.protocol, uint8(s.name), nil, 0)
		s.id = 0
	}
	s.state = inFront
	s.body = s.at + int32(len(p)) // not here
	dst = s.span(dst, len(p), nil)
	s.at += int32(len(p))
	return dst
}

// enter makes a message the one that the flow is in, and returns its topic. b
// holds what was seen of it, from its first byte.
func (s *Scanner) enter(b []byte, f *front) (event []byte) {
	s.state = inBody
	s.name = f.name
	s.size = int32(f.size)
	s.id = int32(f.id)
	s.body = int32(f.body)
	if f.version != 0 {
		s.version = f.version
	}
	if f.name == PUBLISH {
		event = b[f.topicAt:min(f.topicAt+f.topicLen, len(b))]
		if f.alias != 0 {
			return s.alias(event, f)
		}
	} else if f.name == CONNECT {
		s.aliases = nil // they last as long as the connection [MQTT-3.3.2-7]
	}
	s.key = parsers.MessageKey(s.protocol, uint8(f.name), event, f.topicLen)
	if len(event) < f.topicLen {
		return nil
	}
	return event
}

// alias enters a PUBLISH that has a topic alias: the topic is given a number
// with it, or, when it is empty, had been.
func (s *Scanner) alias(event []byte, f *front) []byte {
	if f.topicLen > 0 {
		if !s.frozen {
			if s.aliases == nil {
				s.aliases = &aliases{turn: 1}
			}
			s.aliases.learn(f.alias, event)
		}
		s.key = parsers.MessageKey(s.protocol, uint8(PUBLISH), event, f.topicLen)
		return event
	}
	if s.aliases != nil {
		turn := s.aliases.turn
		if s.frozen {
			turn++ // a Scan may follow while the event is still borrowed
		}
		event = s.aliases.find(f.alias, turn)
	}
	if len(event) > 0 {
		s.key = parsers.MessageKey(s.protocol, uint8(PUBLISH), event, len(event))
		return event
	}
	number := [3]byte{0, byte(f.alias >> 8), byte(f.alias)} // no topic begins with 0
	s.key = parsers.MessageKey(s.protocol, uint8(PUBLISH), number[:], len(number))
	return nil
}

// span appends the span of the next n bytes of the message.
func (s *Scanner) span(dst []parsers.Span, n int, event []byte) []parsers.Span {
	dst = append(dst, parsers.Span{})
	sp := &dst[len(dst)-1] // written in place: a Span is large
	t := &traits[s.name&15]
	sp.Len = n
	sp.At = int(s.at)
	sp.Protocol = s.protocol
	sp.Name = uint8(s.name)
	sp.Class = t.class
	sp.Event = event
	sp.Key = s.key
	sp.Body = min(max(int(s.body-s.at), 0), n)
	if s.id >= max(s.at, 1) && s.id+2 <= s.at+int32(n) {
		sp.Holes[0] = parsers.Hole{Off: int(s.id - s.at), Len: 2, Kind: parsers.HoleBig, Counter: t.counter, Step: 1}
		sp.NumHoles = 1
	}
	return dst
}

// pass moves on by n bytes of the message.
func (s *Scanner) pass(n int) {
	s.at += int32(n)
	if s.at == s.size {
		s.state = boundary
	}
}
