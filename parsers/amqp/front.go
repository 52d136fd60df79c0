package amqp

import "encoding/binary"

// The types of frames (4.2.3).
const (
	typeMethod    = 1
	typeHeader    = 2
	typeBody      = 3
	typeHeartbeat = 8
	typePreamble  = 'A'
)

const (
	// preamble is what a client begins with (4.2.2), and what a broker that
	// speaks no other version answers.
	preamble = "AMQP\x00\x00\x09\x01"

	frameHead = 7    // type, channel, size
	frameEnd  = 0xce // the octet after the payload
	frameRest = frameHead + 1

	methodHead = frameHead + 4  // and class and method
	headerHead = frameHead + 14 // and class, weight, body size, property flags

	// maxFrame is the largest frame that is believed, and maxPlain the largest
	// that is no content body. What clients and brokers agree on is mostly 128
	// KiB.
	maxFrame = 256 << 20
	maxPlain = 1 << 20

	// maxFront is more than parseFront ever asks for: a basic.deliver with three
	// short strings.
	maxFront = methodHead + 3*256 + 9
)

// A place is where a field is. Offsets are from the frame's first byte.
type place struct{ off, len int }

func (p place) of(b []byte) []byte { return b[p.off : p.off+p.len] }

// A front is what the beginning of a frame tells.
type front struct {
	kind    byte // one of the types
	name    Name
	channel uint16
	size    int // bytes of the whole frame

	consumer place // consumer tag with its length, zero when there is none
	delivery int   // offset of the delivery tag, 0 when there is none
	exchange place // of methods with content
	key      place // routing key, of methods with content
	content  int64 // of a content header: bytes of the content
}

// parseFront reads the beginning of a frame into f, which is zero. It returns short
// when it needs more bytes, of which maxFront are always enough and the whole frame
// is too. What it says does not depend on the bytes after those it needs; that the
// frame's last byte is right is for callers to see.
func parseFront(b []byte, f *front) fault {
	if len(b) == 0 {
		return short
	}
	f.kind = b[0]
	switch b[0] {
	case typeMethod, typeHeader, typeBody, typeHeartbeat:
	case typePreamble:
		f.name, f.size = ProtocolHeader, len(preamble)
		n := min(len(b), len(preamble))
		switch {
		case string(b[:n]) != preamble[:n]:
			return faultPreamble
		case n < len(preamble):
			return short
		}
		return ok
	default:
		return faultType
	}
	if len(b) < frameHead {
		return short
	}
	f.channel = binary.BigEndian.Uint16(b[1:])
	payload := binary.BigEndian.Uint32(b[3:])
	if payload > maxFrame || payload > maxPlain && f.kind != typeBody {
		return faultSize
	}
	f.size = int(payload) + frameRest
	b = b[:min(len(b), f.size-1)]
	if f.kind == typeMethod {
		return f.method(b)
	}
	if (f.kind == typeHeartbeat) != (f.channel == 0) { // 4.2.7, 4.2.6
		return faultChannel
	}
	switch f.kind {
	case typeHeader:
		return f.header(b)
	case typeBody:
		f.name = ContentBody
	default:
		f.name = Heartbeat
		if payload != 0 {
			return faultTooLong
		}
	}
	return ok
}

// header reads a content header as far as its property flags (4.2.6.1).
func (f *front) header(b []byte) fault {
	f.name = ContentHeader
	if f.size < headerHead+1 {
		return faultTooShort
	}
	if len(b) < headerHead {
		return short
	}
	if binary.BigEndian.Uint16(b[frameHead:]) != classBasic {
		return faultClass
	}
	if binary.BigEndian.Uint16(b[frameHead+2:]) != 0 {
		return faultWeight
	}
	size := binary.BigEndian.Uint64(b[frameHead+4:])
	if size >= 1<<62 {
		return faultSize
	}
	f.content = int64(size)
	if b[headerHead-1]&3 != 0 { // no property has the last bits
		return faultFlags
	}
	return ok
}

// method reads a method frame as far as its event and holes (4.2.4).
func (f *front) method(b []byte) fault {
	f.name = Method
	if f.size < methodHead+1 {
		return faultTooShort
	}
	if len(b) < methodHead {
		return short
	}
	class := binary.BigEndian.Uint16(b[frameHead:])
	f.name = methodName(class, binary.BigEndian.Uint16(b[frameHead+2:]))
	if f.name != Method && (class == classConnection) != (f.channel == 0) { // 4.2.3
		return faultChannel
	}
	at := methodHead
	switch f.name {
	case BasicAck, BasicNack, BasicReject:
		f.delivery = at
		if f.size < at+9+1 {
			return faultTooShort
		}
		return ok
	case BasicConsumeOK, BasicDeliver:
		if bad := f.shortString(b, at, &f.consumer); bad != ok {
			return bad
		}
		f.consumer.off--
		f.consumer.len++
		if f.name == BasicConsumeOK {
			return ok
		}
		f.delivery = at + f.consumer.len
		at = f.delivery + 9 // and whether it is delivered again
	case BasicGetOK:
		f.delivery = at
		at += 9
	case BasicPublish:
		at += 2 // a ticket of 0-9
	case BasicReturn:
		var text place
		if bad := f.shortString(b, at+2, &text); bad != ok {
			return bad
		}
		at = text.off + text.len
	default:
		return ok
	}
	if bad := f.shortString(b, at, &f.exchange); bad != ok {
		return bad
	}
	return f.shortString(b, f.exchange.off+f.exchange.len, &f.key)
}

// shortString reads a short string (4.2.5.3).
func (f *front) shortString(b []byte, at int, p *place) fault {
	if at+1 > f.size-1 {
		return faultString
	}
	if at >= len(b) {
		return short
	}
	n := int(b[at])
	if at+1+n > f.size-1 {
		return faultString
	}
	if at+1+n > len(b) {
		return short
	}
	*p = place{at + 1, n}
	return ok
}
