package coap

import "encoding/binary"

// headSize is the fixed header:
//
//	 0                   1                   2                   3
//	+---+---+-------+---------------+-------------------------------+
//	|Ver| T |  TKL  |      Code     |          Message ID           |
//	+---+---+-------+---------------+-------------------------------+
const headSize = 4

const maxToken = 8

// payloadMarker ends the options where there is a payload.
const payloadMarker = 0xff

// A Type is how a message is sent (4.2, 4.3).
type Type uint8

// The types.
const (
	Confirmable Type = iota
	NonConfirmable
	Acknowledgement
	Reset
)

var types = [...]string{"CON", "NON", "ACK", "RST"}

// String returns the type's abbreviation.
func (t Type) String() string { return types[t&3] }

// A place is where a field is. Offsets are from the message's first byte.
type place struct{ off, len int }

func (p place) of(b []byte) []byte { return b[p.off : p.off+p.len] }

// A front is what a message tells before its payload.
type front struct {
	kind    Type
	code    uint8
	name    Name
	token   place
	options int   // offset of the first option
	observe place // value of the Observe option; off is 0 when there is none
	path    place // the first Uri-Path
	paths   int   // how many there are
	pathLen int   // bytes of all, with slashes in between
	body    int   // offset of the payload; the message's end when there is none
}

// request says whether the message asks for something.
func (f *front) request() bool { return f.code>>5 == 0 && f.code != 0 }

// parseFront reads a datagram into f, which is zero. Where there is a fault,
// f.body is about where.
func parseFront(b []byte, f *front) fault {
	if len(b) < headSize {
		return faultHeader
	}
	if b[0]>>6 != 1 {
		return faultVersion
	}
	f.kind = Type(b[0] >> 4 & 3)
	f.code = b[1]
	f.token = place{headSize, int(b[0] & 0x0f)}
	f.name = codes[f.code]
	f.options = headSize + f.token.len
	f.body = f.options
	switch {
	case f.token.len > maxToken:
		return faultTokenLength
	case f.code == 0:
		return f.empty(b)
	case f.name == 0:
		return faultCode
	case f.kind == Reset, f.kind == Acknowledgement && f.request(): // table 1
		return faultType
	case f.options > len(b):
		return faultToken
	}
	o := options{at: f.options}
	for o.next(b) {
		switch o.number {
		case optionObserve:
			if f.observe.off == 0 {
				f.observe = o.value
			}
		case optionURIPath:
			if f.paths == 0 {
				f.path = o.value
			} else {
				f.pathLen++
			}
			f.paths++
			f.pathLen += o.value.len
		}
	}
	f.body = o.at
	if f.observe.off != 0 && f.name == Content {
		f.name = Notification
	}
	return o.bad
}

// empty reads a message of code 0.00, which is four bytes (4.1).
func (f *front) empty(b []byte) fault {
	if len(b) != headSize || f.token.len != 0 {
		return faultEmpty
	}
	switch f.kind {
	case Confirmable:
		f.name = Ping
	case Acknowledgement:
		f.name = Ack
	case Reset:
		f.name = Rst
	default: // 4.3
		return faultType
	}
	return ok
}

// options walks over the options of a message (3.1).
type options struct {
	at     int // where the next one begins; behind the last, the payload
	number int
	value  place
	bad    fault
}

// next reads an option, and says whether there was one.
func (o *options) next(b []byte) bool {
	if o.at >= len(b) || o.bad != ok {
		return false
	}
	first := b[o.at]
	if first == payloadMarker {
		if o.at+1 == len(b) {
			o.bad = faultPayload
			return false
		}
		o.at++
		return false
	}
	at := o.at + 1
	delta, length := int(first>>4), int(first&0x0f)
	if delta > 12 {
		if delta, at, o.bad = extended(b, delta, at); o.bad != ok {
			return false
		}
	}
	if length > 12 {
		if length, at, o.bad = extended(b, length, at); o.bad != ok {
			return false
		}
	}
	o.number += delta
	switch {
	case o.number > maxOption:
		o.bad = faultOption
		return false
	case length > len(b)-at:
		o.bad = faultOptionLength
		return false
	}
	o.value = place{at, length}
	o.at = at + length
	return true
}

// extended reads a delta or length that goes on in the following bytes.
func extended(b []byte, n, at int) (value, next int, bad fault) {
	switch {
	case n == 15:
		return 0, at, faultOption
	case n == 13 && at < len(b):
		return int(b[at]) + 13, at + 1, ok
	case n == 14 && at+1 < len(b):
		return int(binary.BigEndian.Uint16(b[at:])) + 269, at + 2, ok
	}
	return 0, at, faultOptionLength
}
