package mqttsn

import (
	"encoding/binary"
	"unicode/utf8"
)

// encapsulated is the message type of what forwarders wrap around messages
// (5.5).
const encapsulated = 0xfe

// The bits of the flags (5.3.4).
const (
	flagDup       = 1 << 7
	flagRetain    = 1 << 4
	flagWill      = 1 << 3
	flagClean     = 1 << 2
	maskTopicType = 3
)

// The types of topic IDs.
const (
	topicNormal     = 0
	topicPredefined = 1
	topicShort      = 2
)

// A place is where a field is. Offsets are from the datagram's first byte.
type place struct{ off, len int }

func (p place) of(b []byte) []byte { return b[p.off : p.off+p.len] }

// A front is what a message tells before its data.
type front struct {
	name    Name
	capsule int   // bytes of the capsule around the message, 0 without one
	flags   uint8 // 0 when there are none
	topic   int   // offset of the topic ID, 0 when there is none
	id      int   // offset of the message ID, 0 when there is none
	text    place // client ID or topic name
	body    int   // offset of the data; the datagram's end when there is none
}

// parseFront reads a datagram, which is one message, into f, which is zero. Where
// there is a fault, f.body is about where.
func parseFront(b []byte, f *front) fault {
	length, head, bad := lengths(b)
	if bad != ok {
		return bad
	}
	if b[head] == encapsulated { // the message comes behind the capsule
		if length < head+2 || length >= len(b) {
			return faultCapsule
		}
		f.capsule, f.body = length, length
		if length, head, bad = lengths(b[f.capsule:]); bad != ok {
			return bad
		}
	}
	at := f.capsule + head
	f.body = at + 1
	if f.capsule+length != len(b) {
		return faultLength
	}
	if b[at] == encapsulated {
		return faultCapsule
	}
	if int(b[at])+1 >= len(kinds) || kinds[b[at]+1].name == "" {
		return faultType
	}
	f.name = Name(b[at] + 1)
	return f.fields(b, at+1)
}

// fields reads what follows the message type.
func (f *front) fields(b []byte, at int) fault {
	k := &kinds[f.name]
	end := at + int(k.fixed)
	if end > len(b) || k.rest == nothing && end < len(b) {
		return faultSize
	}
	f.body = end
	if k.flags != none {
		f.flags = b[at]
	}
	if k.topic != none {
		f.topic = at + int(k.topic)
	}
	if k.id != none {
		f.id = at + int(k.id)
	}
	left := len(b) - end
	switch {
	case f.name == CONNECT && b[at+1] != 1:
		return faultProtocol
	case f.name == DISCONNECT && left != 0 && left != 2: // a duration, or none
		return faultSize
	case k.flags != none && f.flags&maskTopicType == maskTopicType:
		return faultTopicType
	}
	switch {
	case k.rest == text, k.rest == named && f.flags&maskTopicType != topicPredefined:
		if left == 0 {
			return faultSize
		}
		f.text = place{end, left}
	case k.rest == client:
		f.text = place{end, left}
	case k.rest == named:
		if left != 2 {
			return faultSize
		}
		f.topic = end
		f.body = len(b)
	}
	if f.text.len > 0 {
		if !utf8.Valid(f.text.of(b)) {
			return faultText
		}
		f.body = len(b)
	}
	return ok
}

// lengths reads the length of a message (5.2.1) and returns it with the offset of
// the message type, which is inside b.
func lengths(b []byte) (length, head int, bad fault) {
	if len(b) < 2 {
		return 0, 0, faultLength
	}
	length, head = int(b[0]), 1
	if length == 1 {
		if len(b) < 4 {
			return 0, 0, faultLength
		}
		length, head = int(binary.BigEndian.Uint16(b[1:])), 3
	}
	if length <= head || length > len(b) {
		return 0, 0, faultLength
	}
	return length, head, ok
}
