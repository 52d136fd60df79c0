// Package feed is how a protocol is added, on a made-up one. Feed sends news to
// subscribers over TCP. A message is
//
//	length(2) kind(1) what belongs to the kind
//
//	HELLO      "FEED" version(1)
//	SUBSCRIBE  topic
//	NEWS       serial(4) topic-length(1) topic body
//	ACK        serial(4)
//	PING
//
// where length counts the bytes behind it. Each subscriber gets serials of its own,
// which count up.
package feed

import (
	"encoding/binary"

	"sheaf/parsers"
)

// A Kind is a message's kind, its name in reports.
type Kind uint8

// The kinds.
const (
	Hello Kind = iota + 1
	Subscribe
	News
	Ack
	Ping
)

var names = [...]string{Hello: "HELLO", Subscribe: "SUBSCRIBE", News: "NEWS", Ack: "ACK", Ping: "PING"}

// classes say how long a kind may wait to be merged.
var classes = [...]parsers.Class{Hello: parsers.ClassUrgent, Ack: parsers.ClassAck, Ping: parsers.ClassUrgent}

// Protocol describes Feed to a Registry.
func Protocol() parsers.Protocol {
	return parsers.Protocol{
		Name:         "feed",
		Ports:        []uint16{7411},
		MessageNames: names[:],
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return &Scanner{id: id} },
	}
}

// A front is what the beginning of a message tells. Offsets are from its first byte.
type front struct {
	kind         Kind
	size         int // of the whole message
	serial       int // offset of the serial, 0 if there is none
	event, topic int // offset and length of the topic
	body         int // offset of the body
}

// A fit says whether bytes are the beginning of a message.
type fit uint8

const (
	no    fit = iota
	short     // perhaps: more are needed
	yes
)

// maxFront is as many bytes as parseFront ever needs.
const maxFront = 2 + 1 + 4 + 1 + 255

// parseFront reads the beginning of a message.
func parseFront(b []byte) (f front, _ fit) {
	if len(b) < 3 {
		return f, short
	}
	f.kind, f.size = Kind(b[2]), 2+int(binary.BigEndian.Uint16(b))
	f.body = f.size
	switch inside := f.size - 3; f.kind {
	case Hello:
		if inside != 5 {
			return f, no
		}
	case Subscribe:
		if inside < 1 || inside > 255 {
			return f, no
		}
		f.event, f.topic = 3, inside
	case News:
		if inside < 5 {
			return f, no
		}
		if len(b) < 8 {
			return f, short
		}
		f.serial, f.event, f.topic = 3, 8, int(b[7])
		if f.body = f.event + f.topic; f.body > f.size {
			return f, no
		}
	case Ack:
		if inside != 4 {
			return f, no
		}
		f.serial = 3
	default:
		if f.kind != Ping || inside != 0 {
			return f, no
		}
	}
	if len(b) < f.event+f.topic {
		return f, short
	}
	return f, yes
}

// Probe judges bytes by their content. A HELLO is like nothing else. Messages that
// end where the bytes do could be chance, so they are enough on the usual port only.
func Probe(b []byte) parsers.Confidence {
	if len(b) >= 8 && string(b[:7]) == "\x00\x06\x01FEED" {
		return parsers.Strong
	}
	for n := 0; n < len(b); {
		f, fit := parseFront(b[n:])
		if fit == no {
			return parsers.None
		}
		if n += f.size; fit == short || n > len(b) {
			return parsers.Weak
		}
	}
	if len(b) == 0 {
		return parsers.None
	}
	return parsers.Weak
}

// A Scanner finds the messages of one flow, in whatever pieces they come.
type Scanner struct {
	id    parsers.ProtocolID
	lost  bool
	carry [maxFront]byte // the first have bytes of a message whose front was cut
	have  int

	// The message that the flow is inside, once its front is known.
	kind Kind
	key  uint64
	at   int // bytes of it that were seen
	rest int // bytes still to come
	body int
}

// Lost implements parsers.Scanner.
func (s *Scanner) Lost() { s.lost, s.have, s.rest = true, 0, 0 }

// Rescan implements parsers.Scanner.
func (s *Scanner) Rescan(dst []parsers.Span, p []byte) []parsers.Span {
	c := *s // the bytes are of the past: a copy looks for a boundary of its own
	c.Lost()
	return c.Scan(dst, p)
}

// Scan implements parsers.Scanner.
func (s *Scanner) Scan(dst []parsers.Span, p []byte) []parsers.Span {
	for begin := true; len(p) > 0; begin = false {
		n := min(s.rest, len(p))
		switch {
		case n > 0:
			dst = append(dst, s.span(n))
			s.rest -= n
		case s.lost && !(begin && Probe(p) != parsers.None):
			return append(dst, parsers.OpaqueSpan(len(p))) // the next segment may begin with a message
		default:
			s.lost = false
			dst, n = s.begin(dst, p)
		}
		p = p[n:]
	}
	return dst
}

// begin scans a message whose first have bytes came before. It takes no bytes where
// there is none.
func (s *Scanner) begin(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	b := p
	if s.have > 0 { // mostly the front lies whole before us, and nothing is copied
		b = s.carry[:s.have+copy(s.carry[s.have:], p)]
	}
	f, fit := parseFront(b)
	if fit == no {
		s.Lost()
		return dst, 0
	}
	s.kind, s.at, s.body = f.kind, s.have, f.body
	n := len(p)
	if fit == short {
		s.have += copy(s.carry[s.have:], p)
		f.topic = 0
	} else {
		n = min(n, f.size-s.at)
		s.rest, s.have = f.size-s.at-n, 0
	}
	s.key = parsers.MessageKey(s.id, uint8(s.kind), b[min(f.event, len(b)):][:f.topic], f.topic)
	sp := s.span(n)
	if f.topic > 0 && sp.At == 0 { // the bytes in carry would not last until the next Scan
		sp.Event = p[f.event : f.event+f.topic]
	}
	if off := f.serial - (s.at - n); f.serial > 0 && off >= 0 && off+4 <= n {
		sp.Holes[0] = parsers.Hole{Off: off, Len: 4, Kind: parsers.HoleBig, Step: 1}
		sp.NumHoles = 1
	}
	return append(dst, sp), n
}

// span is the span of the next n bytes of the message.
func (s *Scanner) span(n int) parsers.Span {
	sp := parsers.Span{
		Len: n, At: s.at, Protocol: s.id, Name: uint8(s.kind), Key: s.key,
		Body: min(max(s.body-s.at, 0), n),
	}
	if int(s.kind) < len(classes) {
		sp.Class = classes[s.kind]
	}
	s.at += n
	return sp
}
