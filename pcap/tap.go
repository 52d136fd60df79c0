package pcap

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// stripPPI: version (1), flags (1), length of this header with its fields (2),
// link type of what follows (4), all little-endian.
func stripPPI(b []byte) ([]byte, SkipReason) {
	if len(b) < 8 {
		return nil, skipShort
	}
	if b[0] != 0 {
		return nil, SkipBadLinkLayer
	}
	length, link := headPPI(b)
	return stripWrapped(b, 8, length, link)
}

func headPPI(b []byte) (length, link uint32) {
	return uint32(binary.LittleEndian.Uint16(b[2:])), binary.LittleEndian.Uint32(b[4:])
}

// stripPKTAP takes off what macOS puts before a frame: length of this header (4),
// 1 for a packet (4), link type (4), name of the interface (24) and more, in the
// byte order of the machine that captured. Lengths are small numbers, so the order
// shows.
func stripPKTAP(b []byte) ([]byte, SkipReason) {
	const least, packet = 36, 1
	if len(b) < 12 {
		return nil, skipShort
	}
	length, kind, link := headPKTAP(b)
	if kind != packet {
		return nil, SkipNotIP
	}
	return stripWrapped(b, least, length, link)
}

func headPKTAP(b []byte) (length, kind, link uint32) {
	length, kind, link = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])
	if length > 0xffff {
		length, kind, link = bits.ReverseBytes32(length), bits.ReverseBytes32(kind), bits.ReverseBytes32(link)
	}
	return length, kind, link
}

// innerNote names the link type in a frame that was skipped because of it.
func innerNote(outer LinkType, b []byte) string {
	var link uint32
	switch outer {
	case LinkPPI:
		_, link = headPPI(b)
	default:
		_, _, link = headPKTAP(b)
	}
	if link > 0xffff {
		return fmt.Sprintf("link type %d", link)
	}
	return "link type " + LinkType(link).String()
}

// tapOf returns what a frame tells of where it was captured, at most 24 bytes,
// borrowed from it: the index of the interface, direction and sender, its name.
func tapOf(link LinkType, b []byte) []byte {
	switch {
	case link == LinkSLL2 && len(b) >= 20:
		return b[4:8]
	case link == LinkSLL && len(b) >= 16:
		return b[:14]
	case (link == LinkPKTAP || link == LinkUser2) && len(b) >= 36:
		return b[12:36]
	}
	return nil
}

// stripWrapped takes off a header of the given length, at least so many bytes, and
// what that says to be behind it. Such headers do not come within one another.
func stripWrapped(b []byte, least, length, link uint32) ([]byte, SkipReason) {
	switch {
	case length < least:
		return nil, SkipBadLinkLayer
	case uint64(len(b)) < uint64(length):
		return nil, skipShort
	case link > 0xffff || !LinkType(link).Supported():
		return nil, SkipUnsupportedLink
	}
	switch LinkType(link) {
	case LinkPPI, LinkPKTAP, LinkUser2:
		return nil, SkipBadLinkLayer
	}
	return stripLink(LinkType(link), b[length:])
}

// stripNFLOG takes off what Linux' netfilter puts before a packet: address family
// (1), version 0 (1), group (2), then attributes, each of a length that counts its
// head (2), a type (2), and a value, padded to four bytes.
func stripNFLOG(b []byte) ([]byte, SkipReason) {
	const (
		inet, inet6 = 2, 10
		attrHeader  = 1 // EtherType (2), hook (1), padding (1); network byte order
		attrPayload = 9
	)
	if len(b) < 8 {
		return nil, skipShort
	}
	if b[1] != 0 {
		return nil, SkipBadLinkLayer
	}
	// Heads are in the byte order of the machine that captured: types are small
	// numbers, so it shows in the first.
	order := binary.ByteOrder(binary.LittleEndian)
	if b[6] == 0 {
		order = binary.BigEndian
	}
	typ := uint16(0)
	if b[0] == inet || b[0] == inet6 {
		typ = etherIPv4 // either: the packet says which
	}
	for b = b[4:]; len(b) > 0; {
		if len(b) < 4 {
			return nil, skipShort
		}
		length := int(order.Uint16(b))
		switch {
		case length < 4:
			return nil, SkipBadLinkLayer
		case length > len(b):
			return nil, skipShort
		}
		switch value := b[4:length]; order.Uint16(b[2:]) {
		case attrHeader:
			if typ == 0 && len(value) >= 2 { // of a bridge: anything
				typ = binary.BigEndian.Uint16(value)
			}
		case attrPayload:
			if typ <= 1500 {
				return nil, SkipNotIP
			}
			return stripEtherType(typ, value)
		}
		b = b[min((length+3)&^3, len(b)):]
	}
	return nil, skipShort // the payload is missing
}
