package ip

import (
	"encoding/binary"
	"net/netip"
)

// The IP protocol numbers that are looked at, of what can follow a Header.
const (
	ICMP   = 1
	TCP    = 6
	UDP    = 17
	ICMPv6 = 58
)

// The lengths of headers without options and extension headers, bytes.
const (
	MinIPv4 = 20
	MinIPv6 = 40
)

// A Header is what the headers of an IP packet say, up to where the transport header
// begins: where things are, while the methods read them there.
type Header struct {
	Packet        []byte // borrowed for as long as the Header is used; nil where Version is 0
	Len           int    // the IPv4 header with its options, or the IPv6 header with its extension headers, bytes; within the packet
	Version       uint8  // 4 or 6; 0 when not even the addresses are whole
	Proto         uint8  // the IP protocol number of what begins at Len
	Fragment      Fragment
	Authenticated bool // an IPv6 authentication header was gone through
}

// A Fragment says which part of a datagram a packet is.
type Fragment uint8

const (
	Whole  Fragment = iota // all of it
	Atomic                 // all of it, with a fragment header that says so (RFC 6946)
	First                  // the first fragment: it has the transport header
	Later                  // another one, of which nothing says the ports
)

// Part reports whether other fragments belong to the same datagram.
func (f Fragment) Part() bool { return f >= First }

// Parse reads the headers of an IP packet, which the Header borrows, up to the
// transport header; of a later fragment up to what it is a part of. What the packet
// says of its length is not compared with its bytes: a quote in an ICMP error has less.
//
// On an error the packet ends inside the headers, or they are malformed. Packets are
// routed whatever their addresses are followed by: where Version is not 0, Src, Dst
// and Total are right all the same. The other fields are 0.
func (h *Header) Parse(packet []byte) error { return h.parse(packet, false) }

// ParseShallow is Parse, except that it goes no further than behind a fragment
// header, be it an atomic one, and stops before an authentication header. What lies
// there is a part of a datagram or signed, and nothing for the codec to take apart.
func (h *Header) ParseShallow(packet []byte) error { return h.parse(packet, true) }

func (h *Header) parse(b []byte, shallow bool) error {
	*h = Header{}
	switch {
	case len(b) == 0:
		return ErrShort
	case b[0]>>4 == 4:
		return h.parse4(b)
	case b[0]>>4 == 6:
		return h.parse6(b, shallow)
	}
	return ErrVersion
}

// parse4 reads an IPv4 header, RFC 791 section 3.1.
func (h *Header) parse4(b []byte) error {
	if len(b) < MinIPv4 {
		return errIPv4Short
	}
	h.Packet, h.Version = b, 4
	length := int(b[0]&0x0f) * 4
	switch {
	case length < MinIPv4:
		return errIPv4Length
	case length > len(b):
		return errIPv4Short
	}
	h.Len, h.Proto = length, b[9]
	h.Fragment = fragment(b[6]&0x20 != 0, binary.BigEndian.Uint16(b[6:])&0x1fff)
	return nil
}

// parse6 reads an IPv6 header, RFC 8200 section 3, and goes through the extension
// headers.
func (h *Header) parse6(b []byte, shallow bool) error {
	if len(b) < MinIPv6 {
		return errIPv6Short
	}
	h.Packet, h.Version = b, 6
	h.Len, h.Proto = MinIPv6, b[6]
	err := h.walk(b, shallow)
	if err != nil {
		*h = Header{Packet: b, Version: 6}
	}
	return err
}

// Payload returns what begins at Len, of a packet that was read without an error.
func (h *Header) Payload() []byte { return h.Packet[h.Len:] }

// Src returns the source address, none where Version is 0.
func (h *Header) Src() netip.Addr {
	switch b := h.Packet; h.Version {
	case 4:
		return netip.AddrFrom4([4]byte(b[12:16]))
	case 6:
		return netip.AddrFrom16([16]byte(b[8:24]))
	}
	return netip.Addr{}
}

// Dst returns the destination address, none where Version is 0. A source route may
// have more to come (RFC 791, RFC 8200 section 4.4).
func (h *Header) Dst() netip.Addr {
	switch b := h.Packet; h.Version {
	case 4:
		return netip.AddrFrom4([4]byte(b[16:20]))
	case 6:
		return netip.AddrFrom16([16]byte(b[24:40]))
	}
	return netip.Addr{}
}

// Total returns the packet's length as its header says, bytes, 0 where Version is 0.
// It is 40 for a jumbogram, which says its length in an option (RFC 2675).
func (h *Header) Total() int {
	switch b := h.Packet; h.Version {
	case 4:
		return int(binary.BigEndian.Uint16(b[2:]))
	case 6:
		return MinIPv6 + int(binary.BigEndian.Uint16(b[4:]))
	}
	return 0
}

// Ports returns the ports of TCP and UDP: 0 of others, of a later fragment, and where
// the packet ends before them.
func (h *Header) Ports() (src, dst uint16) {
	b := h.Payload()
	if h.Proto != TCP && h.Proto != UDP || h.Fragment == Later || len(b) < 4 {
		return 0, 0
	}
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
}

// fragment returns what the fields of a fragment mean, of a packet that has them.
func fragment(more bool, offset uint16) Fragment {
	switch {
	case offset != 0:
		return Later
	case more:
		return First
	}
	return Whole
}
