package mqtt

import "encoding/binary"

const (
	propSubscriptionID = 0x0b
	propTopicAlias     = 0x23
	propUser           = 0x26
)

// propertyKind is how a property's value is written (1.5).
type propertyKind uint8

const (
	kindNone propertyKind = iota
	kindByte
	kindUint16
	kindUint32
	kindVarint
	kindBinary
	kindText
	kindPair
)

// will stands for the will properties, which have a place of their own in 2.2.2.2.
const will = Name(0)

func in(places ...Name) (mask uint16) {
	for _, n := range places {
		mask |= 1 << n
	}
	return mask
}

// properties is table 2-4 of 2.2.2.2: how each is written, and where it may be.
var properties = [0x2b]struct {
	kind   propertyKind
	places uint16
}{
	0x01:               {kindByte, in(PUBLISH, will)},
	0x02:               {kindUint32, in(PUBLISH, will)},
	0x03:               {kindText, in(PUBLISH, will)},
	0x08:               {kindText, in(PUBLISH, will)},
	0x09:               {kindBinary, in(PUBLISH, will)},
	propSubscriptionID: {kindVarint, in(PUBLISH, SUBSCRIBE)},
	0x11:               {kindUint32, in(CONNECT, CONNACK, DISCONNECT)},
	0x12:               {kindText, in(CONNACK)},
	0x13:               {kindUint16, in(CONNACK)},
	0x15:               {kindText, in(CONNECT, CONNACK, AUTH)},
	0x16:               {kindBinary, in(CONNECT, CONNACK, AUTH)},
	0x17:               {kindByte, in(CONNECT)},
	0x18:               {kindUint32, in(will)},
	0x19:               {kindByte, in(CONNECT)},
	0x1a:               {kindText, in(CONNACK)},
	0x1c:               {kindText, in(CONNACK, DISCONNECT)},
	0x1f:               {kindText, in(CONNACK, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBACK, UNSUBACK, DISCONNECT, AUTH)},
	0x21:               {kindUint16, in(CONNECT, CONNACK)},
	0x22:               {kindUint16, in(CONNECT, CONNACK)},
	propTopicAlias:     {kindUint16, in(PUBLISH)},
	0x24:               {kindByte, in(CONNACK)},
	0x25:               {kindByte, in(CONNACK)},
	propUser: {kindPair, in(CONNECT, CONNACK, PUBLISH, will, PUBACK, PUBREC, PUBREL, PUBCOMP,
		SUBSCRIBE, SUBACK, UNSUBSCRIBE, UNSUBACK, DISCONNECT, AUTH)},
	0x27: {kindUint32, in(CONNECT, CONNACK)},
	0x28: {kindByte, in(CONNACK)},
	0x29: {kindByte, in(CONNACK)},
	0x2a: {kindByte, in(CONNACK)},
}

// propertySize returns the size of the property that b, which is not empty,
// begins with: its identifier, which is one byte for all there are, and value.
func propertySize(b []byte) (int, fault) {
	if int(b[0]) >= len(properties) {
		return 0, faultPropertyID
	}
	n := 1
	switch properties[b[0]].kind {
	case kindNone:
		return 0, faultPropertyID
	case kindByte:
		n += 1
	case kindUint16:
		n += 2
	case kindUint32:
		n += 4
	case kindVarint:
		_, size := uvarint(b[1:])
		if size <= 0 {
			return 0, faultPropertyLength
		}
		n += size
	case kindBinary, kindText:
		n = stringEnd(b, n)
	case kindPair:
		n = stringEnd(b, stringEnd(b, n))
	}
	if n > len(b) {
		return 0, faultPropertyLength
	}
	return n, ok
}

// stringEnd returns where the length-prefixed bytes at an offset end, which can
// be past the end of b.
func stringEnd(b []byte, at int) int {
	if at+2 > len(b) {
		return at + 2
	}
	return at + 2 + int(binary.BigEndian.Uint16(b[at:]))
}
