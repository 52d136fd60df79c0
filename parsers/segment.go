package parsers

import (
	"net/netip"

	"sheaf/parsers/ip"
)

// A FlowKey names one direction of a conversation. It is comparable and packed,
// since it is the key of the hottest map in the program.
type FlowKey struct {
	Src, Dst         [16]byte // IPv4 in the first four bytes, the rest zero
	SrcPort, DstPort uint16   // zero when the protocol has no ports
	Proto            uint8    // IP protocol number of the transport header
	Version          uint8    // 4 or 6
}

// KeyOf returns the key of the flow to which the packet with the header h belongs.
// Fragments make flows without ports: but the first have none.
func KeyOf(h *ip.Header) (k FlowKey) {
	k.set(h)
	return k
}

// set is KeyOf in place: what is written in small pieces is slow to copy at once.
func (k *FlowKey) set(h *ip.Header) {
	switch b := h.Packet; h.Version {
	case 4:
		copy(k.Src[:], b[12:16])
		copy(k.Dst[:], b[16:20])
	case 6:
		copy(k.Src[:], b[8:24])
		copy(k.Dst[:], b[24:40])
	}
	k.Version, k.Proto = h.Version, h.Proto
	if h.Fragment == ip.Whole {
		k.SrcPort, k.DstPort = h.Ports()
	}
}

// Reverse returns the key of the other direction.
func (k FlowKey) Reverse() FlowKey {
	k.Src, k.Dst = k.Dst, k.Src
	k.SrcPort, k.DstPort = k.DstPort, k.SrcPort
	return k
}

// SrcAddr returns the source address.
func (k FlowKey) SrcAddr() netip.Addr { return k.addr(k.Src) }

// DstAddr returns the destination address.
func (k FlowKey) DstAddr() netip.Addr { return k.addr(k.Dst) }

func (k FlowKey) addr(b [16]byte) netip.Addr {
	if k.Version == 6 {
		return netip.AddrFrom16(b)
	}
	return netip.AddrFrom4([4]byte(b[:4]))
}

// A Segment is one IP packet and where its parts begin. It owns nothing.
type Segment struct {
	Packet       []byte // the whole IP packet, borrowed from the caller of Decode
	Key          FlowKey
	Fragment     bool // an IPv4 or IPv6 fragment; HeaderLen is valid, the rest is not looked into
	HeaderLen    int  // IP header with options or extension headers, bytes
	TransportLen int  // TCP header with options, or 8 for UDP; 0 for any other protocol

	// TCP only.
	Seq, Ack uint32
	Flags    uint8 // FlagFIN and the others
}

// The flags of a TCP header that are looked at, of the byte at its offset 13 (RFC 9293
// section 3.1).
const (
	FlagFIN = 1 << iota
	FlagSYN
	FlagRST
	_ // PSH
	FlagACK
)

// Payload returns the bytes after the transport header, borrowed like Packet.
func (s *Segment) Payload() []byte { return s.Packet[s.HeaderLen+s.TransportLen:] }
