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
		New: func(id parsers.ProtocolID) parsers.Scanner {
			return parsers.NewCutter[framer](id, maxFront, 1)
		},
	}
}

// maxFront is as many bytes of a message as Front ever needs.
const maxFront = 2 + 1 + 4 + 1 + 255

// A framer tells a parsers.Cutter of Feed. It learns nothing from a flow.
type framer struct {
	parsers.ByValue
	parsers.Sized // messages begin with their size
}

// Front implements parsers.Framer.
func (framer) Front(b []byte, whole *parsers.Span) parsers.Outcome {
	if len(b) < 3 {
		return parsers.NeedMore
	}
	kind, size := Kind(b[2]), 2+int(binary.BigEndian.Uint16(b))
	if kind == 0 || kind > Ping {
		return parsers.Invalid
	}
	whole.Name = uint8(kind)
	whole.Class = classes[kind]
	whole.Len = size
	whole.Body = size
	var topic []byte
	switch inside := size - 3; kind {
	case Hello:
		if inside != 5 {
			return parsers.Invalid
		}
	case Subscribe:
		if inside < 1 || inside > 255 {
			return parsers.Invalid
		}
		if len(b) < size {
			return parsers.NeedMore
		}
		topic = b[3:size]
	case News:
		if inside < 5 {
			return parsers.Invalid
		}
		if len(b) < 8 {
			return parsers.NeedMore
		}
		if whole.Body = 8 + int(b[7]); whole.Body > size {
			return parsers.Invalid
		}
		if len(b) < whole.Body {
			return parsers.NeedMore
		}
		topic = b[8:whole.Body]
		whole.AddHole(3, 4, parsers.HoleBig, 0, 1)
	case Ack:
		if inside != 4 {
			return parsers.Invalid
		}
		whole.AddHole(3, 4, parsers.HoleBig, 0, 1)
	case Ping:
		if inside != 0 {
			return parsers.Invalid
		}
	}
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, topic, len(topic))
	if len(topic) > 0 {
		whole.Event = topic
	}
	return parsers.Complete
}

// Resync implements parsers.Framer: the next segment may begin with a message.
func (framer) Resync(p []byte, begin bool, budget int) (n, left int) {
	if begin && Probe(p) != parsers.None {
		return 0, budget
	}
	return len(p), budget
}

// Probe judges bytes by their content. A HELLO is like nothing else. Messages that
// end where the bytes do could be chance, so they are enough on the usual port only.
func Probe(b []byte) parsers.Confidence {
	if len(b) == 0 {
		return parsers.None
	}
	if len(b) >= 8 && string(b[:7]) == "\x00\x06\x01FEED" {
		return parsers.Strong
	}
	for len(b) > 0 {
		var m parsers.Span
		switch v := (framer{}).Front(b, &m); {
		case v == parsers.Invalid:
			return parsers.None
		case v == parsers.NeedMore || m.Len > len(b):
			return parsers.Weak
		}
		b = b[m.Len:]
	}
	return parsers.Weak
}
