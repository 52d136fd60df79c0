package mqtt

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"sheaf/parsers"
)

// maxAliasScan is how many bytes of properties are searched for a topic alias.
const maxAliasScan = 64

// maxFront is more than parseFront ever asks for: a fixed header, the topic as
// far as it counts, a packet identifier, and properties.
const maxFront = 5 + 2 + parsers.MaxKeyEvent + 2 + 4 + maxAliasScan

// A front is what the beginning of a message tells. Offsets are from the
// message's first byte.
type front struct {
	name     Name
	flags    uint8
	version  uint8 // the version the message shows itself to be of, else 0
	fixed    int   // bytes of the fixed header
	size     int   // bytes of the whole message
	id       int   // offset of the packet identifier, 0 when there is none
	topicAt  int   // PUBLISH only
	topicLen int
	alias    uint16 // topic alias, 0 when there is none
	body     int    // offset of what follows the topic, identifier and properties
}

func (f *front) qos() uint8 { return f.flags >> 1 & 3 }

// firstByte says which first bytes a message can have (2.2, table 2.2). In 3.1 a
// PUBREL, SUBSCRIBE or UNSUBSCRIBE may be marked as a duplicate.
var firstByte = func() (ok [256]bool) {
	for i := range ok {
		name, flags := Name(i>>4), i&0x0f
		switch name {
		case 0:
		case PUBLISH:
			ok[i] = flags>>1&3 != 3 // [MQTT-3.3.1-4]
		case PUBREL, SUBSCRIBE, UNSUBSCRIBE:
			ok[i] = flags == 2 || flags == 10 // [MQTT-3.6.1-1], [MQTT-3.8.1-1], [MQTT-3.10.1-1]
		default:
			ok[i] = flags == 0 // [MQTT-2.2.2-1]
		}
	}
	return ok
}()

// parseFront reads the beginning of a message into f, which is zero. It returns
// short when it needs more bytes, of which maxFront are always enough and the
// whole message is too. What it says does not depend on the bytes after those it
// needs. version is the flow's, 0 when unknown.
func parseFront(b []byte, version uint8, f *front) fault {
	if len(b) == 0 {
		return short
	}
	if !firstByte[b[0]] {
		return faultFirstByte
	}
	f.name, f.flags = Name(b[0]>>4), b[0]&0x0f
	length, n := uvarint(b[1:])
	switch {
	case n == 0:
		return short
	case n < 0:
		return faultLength
	}
	f.fixed = 1 + n
	f.size = f.fixed + length
	f.body = f.fixed
	b = b[:min(len(b), f.size)]
	rest := b[f.fixed:]

	switch f.name {
	case PUBLISH:
		return f.publish(b, length, version)

	case CONNECT:
		return f.connect(rest, length)

	case CONNACK:
		if length < 2 {
			return faultTooShort
		}
		if len(rest) < 1 {
			return short
		}
		if rest[0] > 1 {
			return faultAckFlags
		}
		f.version = 4
		if length > 2 {
			f.version = 5
		}
		f.body += 2
		return ok

	case PUBACK, PUBREC, PUBREL, PUBCOMP:
		if bad := f.identifier(rest, length, 2); bad != ok || length == 2 {
			return bad
		}
		return f.reason(rest[2:], version)

	case SUBSCRIBE, UNSUBSCRIBE:
		return f.identifier(rest, length, 5)
	case SUBACK:
		return f.identifier(rest, length, 3)
	case UNSUBACK:
		if length > 2 {
			f.version = 5
		}
		return f.identifier(rest, length, 2)

	case PINGREQ, PINGRESP:
		if length != 0 {
			return faultTooLong
		}
		return ok

	case DISCONNECT:
		if length == 0 {
			return ok
		}
		return f.reason(rest, version)

	default: // AUTH, version 5 only
		if version != 0 && version != 5 {
			return faultVersion
		}
		f.version = 5
		if length == 0 {
			return ok
		}
		return f.reason(rest, version)
	}
}

// connect reads as far as the protocol level (3.1.2). A bridge may set the
// level's top bit.
func (f *front) connect(rest []byte, length int) fault {
	if length < 12 {
		return faultTooShort
	}
	if len(rest) < 2 {
		return short
	}
	nameLen := int(binary.BigEndian.Uint16(rest))
	if nameLen != len("MQTT") && nameLen != len("MQIsdp") {
		return faultProtocolName
	}
	if length < nameLen+8 {
		return faultTooShort
	}
	if len(rest) < 2+nameLen+1 {
		return short
	}
	level := rest[2+nameLen] & 0x7f
	switch string(rest[2 : 2+nameLen]) {
	case "MQTT":
		if level != 4 && level != 5 {
			return faultLevel
		}
	case "MQIsdp":
		if level != 3 {
			return faultLevel
		}
	default:
		return faultProtocolName
	}
	f.version = level
	f.body += 2 + nameLen + 4 // level, flags, keep alive
	return ok
}

// publish reads a PUBLISH (3.3) as far as its topic, identifier and alias.
func (f *front) publish(b []byte, length int, version uint8) fault {
	if length < 2 {
		return faultTooShort
	}
	if len(b) < f.fixed+2 {
		return short
	}
	f.topicAt = f.fixed + 2
	f.topicLen = int(binary.BigEndian.Uint16(b[f.fixed:]))
	f.body = f.topicAt + f.topicLen
	if f.qos() > 0 {
		f.id = f.body
		f.body += 2
	}
	if f.body > f.size {
		return faultTopicLength
	}
	counts := min(f.topicLen, parsers.MaxKeyEvent)
	seen := min(counts, len(b)-f.topicAt)
	if !validText(b[f.topicAt:f.topicAt+seen], seen < f.topicLen) {
		return faultTopicText
	}
	if seen < counts {
		return short
	}
	if counts < f.topicLen {
		return ok // the rest is too far away to wait for
	}
	if f.id > 0 {
		if len(b) < f.id+2 {
			return short
		}
		if b[f.id] == 0 && b[f.id+1] == 0 {
			return faultZeroID
		}
	}
	if f.topicLen == 0 && version == 0 {
		version = 5 // only an alias can stand for a topic (3.3.2.3.4)
	}
	if version != 5 {
		return ok
	}
	f.version = 5
	properties, n := uvarint(b[f.body:])
	switch {
	case n < 0 || n == 0 && len(b) == f.size:
		return faultPropertyLength
	case n == 0:
		return short
	}
	at := f.body + n
	f.body = at + properties
	if f.body > f.size {
		return faultPropertyLength
	}
	if counts = min(properties, maxAliasScan); len(b)-at < counts {
		return short
	}
	f.alias = findAlias(b[at : at+counts])
	return ok
}

// identifier reads the packet identifier, which a message of at least least
// bytes begins with and which is not 0 [MQTT-2.2.1-3].
func (f *front) identifier(rest []byte, length, least int) fault {
	if length < least {
		return faultTooShort
	}
	if len(rest) < 2 {
		return short
	}
	if rest[0] == 0 && rest[1] == 0 {
		return faultZeroID
	}
	f.id = f.fixed
	f.body = f.fixed + 2
	return ok
}

// reason reads a reason code (2.4), which version 5 alone has outside CONNACK.
func (f *front) reason(rest []byte, version uint8) fault {
	if version != 0 && version != 5 {
		return faultTooLong
	}
	if len(rest) < 1 {
		return short
	}
	f.version = 5
	good := rest[0] == 0 || rest[0] >= 0x80
	switch f.name {
	case PUBACK, PUBREC:
		good = good || rest[0] == 0x10
	case PUBREL, PUBCOMP:
		good = rest[0] == 0 || rest[0] == 0x92
	case DISCONNECT:
		good = good || rest[0] == 0x04
	case AUTH:
		good = rest[0] == 0 || rest[0] == 0x18 || rest[0] == 0x19
	}
	if !good {
		return faultReason
	}
	return ok
}

// findAlias returns the topic alias among properties that may be cut, 0 when
// there is none.
func findAlias(b []byte) uint16 {
	for len(b) > 0 {
		if b[0] == propTopicAlias && len(b) >= 3 {
			return binary.BigEndian.Uint16(b[1:])
		}
		n, bad := propertySize(b)
		if bad != ok {
			return 0
		}
		b = b[n:]
	}
	return 0
}

// uvarint reads a variable byte integer (1.5.5). n is its size, 0 when b ends
// before it does, and -1 when it is longer than four bytes.
func uvarint(b []byte) (value, n int) {
	for i, c := range b {
		if i == 4 {
			break
		}
		value |= int(c&0x7f) << (7 * i)
		if c < 0x80 {
			return value, i + 1
		}
	}
	if len(b) >= 4 {
		return 0, -1
	}
	return 0, 0
}

// validText says whether b is a UTF-8 string without U+0000 [MQTT-1.5.4-1],
// [MQTT-1.5.4-2], or the beginning of one when it is cut.
func validText(b []byte, cut bool) bool {
	if cut {
		for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
			if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
				if !utf8.FullRune(tail) {
					b = b[:len(b)-i]
				}
				break
			}
		}
	}
	return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
}
