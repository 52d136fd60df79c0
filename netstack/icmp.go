package netstack

import (
	"encoding/binary"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// An Unreachable says why a packet cannot be delivered.
type Unreachable uint8

// The reasons, with their codes in RFC 792, 1812 section 5.2.7.1 and 4443
// section 3.1.
const (
	NoRoute    Unreachable = iota // net unreachable, 0; no route to destination, 0
	NoHost                        // host unreachable, 1; address unreachable, 3
	NoPort                        // port unreachable, 3; port unreachable, 4
	Prohibited                    // administratively prohibited, 13; the same, 1
)

var (
	codes4 = [...]byte{NoRoute: 0, NoHost: 1, NoPort: 3, Prohibited: 13}
	codes6 = [...]byte{NoRoute: 0, NoHost: 3, NoPort: 4, Prohibited: 1}
)

const (
	lenICMP         = 8    // bytes before the quoted packet
	maxICMPv4       = 576  // bytes, RFC 1812 section 4.3.2.3
	maxICMPv6       = 1280 // bytes, RFC 4443 section 2.4 (c)
	icmpTTL         = 64
	icmpTOS         = 0xC0 // RFC 1812 section 4.3.2.5: internetwork control
	maxExtensions   = 8    // of IPv6 headers; RFC 8200 section 4.1 has fewer
	typeUnreachable = 3    // ICMPv4
	codeFragment    = 4    // fragmentation needed
)

// AppendUnreachable appends the ICMP or ICMPv6 packet with which the router from
// tells the sender of packet that it could not be delivered, and returns the
// extended buffer. It returns nil if none may be sent: packet is an ICMP error, a
// fragment other than the first, sent to or from an address that does not stand
// for one host, malformed, or not of from's family. packet is borrowed. How often
// errors are sent is up to the caller.
func AppendUnreachable(dst, packet []byte, reason Unreachable, from netip.Addr) []byte {
	if int(reason) >= len(codes4) || !answerable(packet, from, false) {
		return nil
	}
	if from.Is4() {
		return appendICMPv4(dst, packet, typeUnreachable, codes4[reason], 0, from)
	}
	return appendICMPv6(dst, packet, byte(header.ICMPv6DstUnreachable), codes6[reason], 0, from)
}

// AppendTooBig appends the ICMP or ICMPv6 packet with which the router from tells
// the sender of packet that only mtu bytes can pass (RFC 1191 section 4, RFC 4443
// section 3.2), and returns the extended buffer. It returns nil if none may be
// sent, as with AppendUnreachable, except that IPv6 multicasts are answered; and
// for an IPv4 packet that may be fragmented. packet is borrowed.
func AppendTooBig(dst, packet []byte, mtu int, from netip.Addr) []byte {
	if mtu < 0 || !answerable(packet, from, true) {
		return nil
	}
	if from.Is6() {
		return appendICMPv6(dst, packet, byte(header.ICMPv6PacketTooBig), 0, uint32(mtu), from)
	}
	if packet[6]&0x40 == 0 {
		return nil
	}
	return appendICMPv4(dst, packet, typeUnreachable, codeFragment, uint32(min(mtu, MaxPacket)), from)
}

// answerable reports whether an error from the address may be sent for packet:
// RFC 1122 section 3.2.2, RFC 1812 section 4.3.2.7, RFC 4443 section 2.4 (e).
func answerable(packet []byte, from netip.Addr, tooBig bool) bool {
	h, ok := parseIP(packet)
	if !ok || !from.IsValid() || from.Is4In6() || from.Is4() != h.src.Is4() || h.fragment {
		return false
	}
	if !oneHost(h.src) || h.src.IsLoopback() || h.icmpError(packet) {
		return false
	}
	return oneHost(h.dst) || tooBig && h.dst.Is6() && h.dst.IsMulticast()
}

// oneHost reports whether an address can be that of one host. Broadcast addresses
// of subnets look like any other from here.
func oneHost(a netip.Addr) bool {
	// 240.0.0.0/4 is reserved, and ends in the limited broadcast address.
	return !a.IsUnspecified() && !a.IsMulticast() && !(a.Is4() && (a.As4()[0] >= 240 || a.As4()[0] == 0))
}

// ip is what of an IP header, and of the IPv6 extension headers, decides what
// becomes of a packet.
type ip struct {
	src, dst netip.Addr
	protocol byte
	fragment bool // other than the first: there is no transport header
	payload  int  // offset of the transport header; at most the packet's length
}

// parseIP reads the headers. It fails if the packet ends inside them.
func parseIP(packet []byte) (h ip, ok bool) {
	switch {
	case len(packet) >= lenIPv4 && packet[0]>>4 == 4:
		h.src = netip.AddrFrom4([4]byte(packet[12:16]))
		h.dst = netip.AddrFrom4([4]byte(packet[16:20]))
		h.protocol = packet[9]
		h.fragment = binary.BigEndian.Uint16(packet[6:])&0x1FFF != 0
		h.payload = int(packet[0]&15) * 4
		return h, h.payload >= lenIPv4 && h.payload <= len(packet)
	case len(packet) >= lenIPv6 && packet[0]>>4 == 6:
		h.src = netip.AddrFrom16([16]byte(packet[8:24]))
		h.dst = netip.AddrFrom16([16]byte(packet[24:40]))
		h.protocol = packet[6]
		h.payload = lenIPv6
		return h, h.skipExtensions(packet)
	}
	return h, false
}

// skipExtensions goes on to the upper-layer header, or to the end of what can be
// read of an encrypted or later fragment.
func (h *ip) skipExtensions(packet []byte) bool {
	for range maxExtensions {
		length := 8
		switch header.IPv6ExtensionHeaderIdentifier(h.protocol) {
		case header.IPv6HopByHopOptionsExtHdrIdentifier, header.IPv6RoutingExtHdrIdentifier, header.IPv6DestinationOptionsExtHdrIdentifier:
			if len(packet) < h.payload+8 {
				return false
			}
			length = (int(packet[h.payload+1]) + 1) * 8
		case header.IPv6FragmentExtHdrIdentifier:
			if len(packet) < h.payload+8 {
				return false
			}
			h.fragment = binary.BigEndian.Uint16(packet[h.payload+2:])&^7 != 0
		default:
			return true
		}
		h.protocol = packet[h.payload]
		h.payload += length
		if h.payload > len(packet) {
			return false
		}
		if h.fragment {
			return true
		}
	}
	return false
}

// icmpError reports whether the packet is an ICMP error or a redirect. One too
// short to tell counts as an error.
func (h *ip) icmpError(packet []byte) bool {
	switch {
	case h.src.Is4() && h.protocol == protoICMP:
		if len(packet) == h.payload {
			return true
		}
		switch header.ICMPv4Type(packet[h.payload]) {
		case header.ICMPv4Echo, header.ICMPv4EchoReply, header.ICMPv4Timestamp, header.ICMPv4TimestampReply, header.ICMPv4InfoRequest, header.ICMPv4InfoReply:
			return false
		}
		return true // RFC 1812 knows types as errors unless they are queries
	case h.src.Is6() && h.protocol == protoICMPv6:
		return len(packet) == h.payload || packet[h.payload] < 128 || header.ICMPv6Type(packet[h.payload]) == header.ICMPv6RedirectMsg
	}
	return false
}

// Quoted returns the source and destination of the packet that an ICMP or ICMPv6
// error is about. It is not ok unless packet, which is borrowed, is an error that a
// router or host may have sent to that source: unreachable, too big, time exceeded or
// parameter problem, with the headers of what it quotes whole (RFC 792; RFC 4443
// section 3, whose extensions by RFC 4884 come after them), and about no packet that
// must not be answered (RFC 1122 section 3.2.2, RFC 4443 section 2.4 (e)): another
// error, a later fragment of IPv4, one from no one host. Checksums are left to the
// receiver.
func Quoted(packet []byte) (src, dst netip.Addr, ok bool) {
	h, ok := parseIP(packet)
	if !ok || h.fragment || !h.reports(packet) || !oneHost(h.src) || h.src.IsLoopback() {
		return src, dst, false
	}
	quote := packet[h.payload+lenICMP:]
	q, ok := parseIP(quote)
	switch {
	case !ok || q.src != h.dst || !oneHost(q.src) || q.src.IsLoopback():
		return src, dst, false
	case q.fragment && q.src.Is4() || !q.fragment && q.icmpError(quote):
		return src, dst, false
	}
	return q.src, q.dst, true
}

// reports reports whether the packet is an ICMP error that tells of another packet
// and has room for one. Redirects and source quench (RFC 6633) are for no other
// network to send.
func (h *ip) reports(packet []byte) bool {
	if len(packet) < h.payload+lenICMP {
		return false
	}
	switch kind := packet[h.payload]; {
	case h.src.Is4() && h.protocol == protoICMP:
		return kind == typeUnreachable || header.ICMPv4Type(kind) == header.ICMPv4TimeExceeded || header.ICMPv4Type(kind) == header.ICMPv4ParamProblem
	case h.src.Is6() && h.protocol == protoICMPv6:
		return kind >= byte(header.ICMPv6DstUnreachable) && kind <= byte(header.ICMPv6ParamProblem)
	}
	return false
}

// icmpEcho reports whether the packet is a ping.
func (h *ip) icmpEcho(packet []byte) bool {
	if h.fragment || len(packet) == h.payload {
		return false
	}
	return h.src.Is4() && h.protocol == protoICMP && packet[h.payload] == byte(header.ICMPv4Echo) ||
		h.src.Is6() && h.protocol == protoICMPv6 && packet[h.payload] == byte(header.ICMPv6EchoRequest)
}

// appendICMPv4 writes the header, the type and code, rest as the second word and
// as much of packet as may be quoted.
func appendICMPv4(dst, packet []byte, kind, code byte, rest uint32, from netip.Addr) []byte {
	quote := packet[:min(len(packet), maxICMPv4-lenIPv4-lenICMP)]
	n := len(dst)
	src := from.As4()
	dst = append(dst, 0x45, icmpTOS, 0, 0,
		0, 0, 0x40, 0, // identification 0 with "don't fragment": RFC 6864 section 4.1
		icmpTTL, protoICMP, 0, 0)
	dst = append(dst, src[:]...)
	dst = append(dst, packet[12:16]...)
	dst = append(dst, kind, code, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, rest)
	dst = append(dst, quote...)
	p := dst[n:]
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	binary.BigEndian.PutUint16(p[10:], ^checksum.Checksum(p[:lenIPv4], 0))
	binary.BigEndian.PutUint16(p[lenIPv4+2:], ^checksum.Checksum(p[lenIPv4:], 0))
	return dst
}

// appendICMPv6 does the same for IPv6, where the checksum covers the addresses.
func appendICMPv6(dst, packet []byte, kind, code byte, rest uint32, from netip.Addr) []byte {
	quote := packet[:min(len(packet), maxICMPv6-lenIPv6-lenICMP)]
	n := len(dst)
	src := from.As16()
	dst = append(dst, 0x60, 0, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(lenICMP+len(quote)))
	dst = append(dst, protoICMPv6, icmpTTL)
	dst = append(dst, src[:]...)
	dst = append(dst, packet[8:24]...)
	dst = append(dst, kind, code, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, rest)
	dst = append(dst, quote...)
	p := dst[n:]
	var tail [8]byte // of the pseudo-header, RFC 8200 section 8.1
	binary.BigEndian.PutUint32(tail[:], uint32(len(p)-lenIPv6))
	tail[7] = protoICMPv6
	sum := checksum.Checksum(p[8:lenIPv6], 0)
	sum = checksum.Checksum(tail[:], sum)
	binary.BigEndian.PutUint16(p[lenIPv6+2:], ^checksum.Checksum(p[lenIPv6:], sum))
	return dst
}
