package netstack

import (
	"encoding/binary"
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"sheaf/parsers/ip"
)

// An Unreachable says why a packet cannot be delivered.
type Unreachable uint8

// The reasons, with their codes in RFC 792 and RFC 4443 section 3.1.
const (
	NoRoute    Unreachable = iota // net unreachable, 0; no route to destination, 0
	NoHost                        // host unreachable, 1; address unreachable, 3
	NoPort                        // port unreachable, 3; port unreachable, 4
	Prohibited                    // communication administratively prohibited, 13 (RFC 1812 section 5.2.7.1) and 1
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
	typeUnreachable = 3    // ICMPv4
	codeTooBig      = 4    // fragmentation needed and DF set, RFC 1191 section 4
)

// An icmpHead is what an ICMP error has before the quoted packet, beside the checksum.
type icmpHead struct {
	kind, code byte
	rest       uint32
}

// AppendUnreachable appends the ICMP or ICMPv6 packet with which the router from
// tells the sender of packet that it could not be delivered, and returns the
// extended buffer. It returns nil if none may be sent: packet is an ICMP error, a
// fragment other than the first, sent to or from an address that does not stand
// for one host, malformed, or not of from's family. packet is borrowed. How often
// errors are sent is up to the caller.
func AppendUnreachable(dst, packet []byte, reason Unreachable, from netip.Addr) []byte {
	if int(reason) >= len(codes4) || !answerable(packet, from) {
		return nil
	}
	if from.Is4() {
		return appendICMPv4(dst, packet, icmpHead{kind: typeUnreachable, code: codes4[reason]}, from)
	}
	return appendICMPv6(dst, packet, icmpHead{kind: byte(header.ICMPv6DstUnreachable), code: codes6[reason]}, from)
}

// AppendTooBig appends the error with which the router from tells the sender of packet
// that no packet of more than mtu bytes goes on from there (RFC 1191 section 4, RFC 4443
// section 3.2). It is for packets that the router may not fragment, and returns nil where
// AppendUnreachable does.
func AppendTooBig(dst, packet []byte, mtu int, from netip.Addr) []byte {
	if !answerable(packet, from) {
		return nil
	}
	if from.Is4() {
		return appendICMPv4(dst, packet, icmpHead{kind: typeUnreachable, code: codeTooBig, rest: uint32(uint16(mtu))}, from)
	}
	return appendICMPv6(dst, packet, icmpHead{kind: byte(header.ICMPv6PacketTooBig), rest: uint32(mtu)}, from)
}

// answerable reports whether an error from the address may be sent for packet:
// RFC 1122 section 3.2.2, RFC 1812 section 4.3.2.7, RFC 4443 section 2.4 (e).
func answerable(packet []byte, from netip.Addr) bool {
	var h ip.Header
	if h.Parse(packet) != nil || !from.IsValid() || from.Is4In6() || from.Is4() != (h.Version == 4) || h.Fragment == ip.Later {
		return false
	}
	if src := h.Src(); !oneHost(src) || src.IsLoopback() || isError(&h) {
		return false
	}
	return oneHost(h.Dst())
}

// oneHost reports whether an address can be that of one host. Broadcast addresses
// of subnets look like any other from here.
func oneHost(a netip.Addr) bool {
	// 240.0.0.0/4 is reserved, and ends in the limited broadcast address.
	return !a.IsUnspecified() && !a.IsMulticast() && !(a.Is4() && (a.As4()[0] >= 240 || a.As4()[0] == 0))
}

// isError reports whether the packet with the header h is an ICMP error or a
// redirect. One too short to tell counts as an error.
func isError(h *ip.Header) bool {
	message := h.Payload()
	switch {
	case h.Version == 4 && h.Proto == ip.ICMP:
		if len(message) == 0 {
			return true
		}
		switch header.ICMPv4Type(message[0]) {
		case header.ICMPv4Echo, header.ICMPv4EchoReply, header.ICMPv4Timestamp, header.ICMPv4TimestampReply, header.ICMPv4InfoRequest, header.ICMPv4InfoReply:
			return false
		}
		return true // RFC 1812 knows types as errors unless they are queries
	case h.Version == 6 && h.Proto == ip.ICMPv6:
		return len(message) == 0 || message[0] < 128 || header.ICMPv6Type(message[0]) == header.ICMPv6RedirectMsg
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
	var h, q ip.Header
	if h.Parse(packet) != nil || h.Fragment == ip.Later || !reports(&h) || !oneHost(h.Src()) || h.Src().IsLoopback() {
		return src, dst, false
	}
	if q.Parse(h.Payload()[lenICMP:]) != nil {
		return src, dst, false
	}
	about := q.Src()
	switch {
	case about != h.Dst() || !oneHost(about) || about.IsLoopback():
		return src, dst, false
	case q.Fragment == ip.Later && q.Version == 4 || q.Fragment != ip.Later && isError(&q):
		return src, dst, false
	}
	return about, q.Dst(), true
}

// reports reports whether the packet with the header h is an ICMP error that tells of
// another packet and has room for one. Redirects and source quench (RFC 6633) are for
// no other network to send.
func reports(h *ip.Header) bool {
	message := h.Payload()
	if len(message) < lenICMP {
		return false
	}
	switch kind := message[0]; {
	case h.Version == 4 && h.Proto == ip.ICMP:
		return kind == typeUnreachable || header.ICMPv4Type(kind) == header.ICMPv4TimeExceeded || header.ICMPv4Type(kind) == header.ICMPv4ParamProblem
	case h.Version == 6 && h.Proto == ip.ICMPv6:
		return kind >= byte(header.ICMPv6DstUnreachable) && kind <= byte(header.ICMPv6ParamProblem)
	}
	return false
}

// isEcho reports whether the packet with the header h is a ping.
func isEcho(h *ip.Header) bool {
	message := h.Payload()
	if h.Fragment == ip.Later || len(message) == 0 {
		return false
	}
	return h.Version == 4 && h.Proto == ip.ICMP && message[0] == byte(header.ICMPv4Echo) ||
		h.Version == 6 && h.Proto == ip.ICMPv6 && message[0] == byte(header.ICMPv6EchoRequest)
}

// appendICMPv4 writes the IP header, that of the message, and as much of packet as may
// be quoted.
func appendICMPv4(dst, packet []byte, e icmpHead, from netip.Addr) []byte {
	quote := packet[:min(len(packet), maxICMPv4-ip.MinIPv4-lenICMP)]
	n := len(dst)
	src := from.As4()
	dst = append(dst, 0x45, icmpTOS, 0, 0,
		0, 0, 0x40, 0, // identification 0 with "don't fragment": RFC 6864 section 4.1
		icmpTTL, ip.ICMP, 0, 0)
	dst = append(dst, src[:]...)
	dst = append(dst, packet[12:16]...)
	dst = append(dst, e.kind, e.code, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, e.rest)
	dst = append(dst, quote...)
	p := dst[n:]
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	binary.BigEndian.PutUint16(p[10:], ^checksum.Checksum(p[:ip.MinIPv4], 0))
	binary.BigEndian.PutUint16(p[ip.MinIPv4+2:], ^checksum.Checksum(p[ip.MinIPv4:], 0))
	return dst
}

// appendICMPv6 does the same for IPv6, where the checksum covers the addresses.
func appendICMPv6(dst, packet []byte, e icmpHead, from netip.Addr) []byte {
	quote := packet[:min(len(packet), maxICMPv6-ip.MinIPv6-lenICMP)]
	n := len(dst)
	src := from.As16()
	dst = append(dst, 0x60, 0, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(lenICMP+len(quote)))
	dst = append(dst, ip.ICMPv6, icmpTTL)
	dst = append(dst, src[:]...)
	dst = append(dst, packet[8:24]...)
	dst = append(dst, e.kind, e.code, 0, 0)
	dst = binary.BigEndian.AppendUint32(dst, e.rest)
	dst = append(dst, quote...)
	p := dst[n:]
	var tail [8]byte // of the pseudo-header, RFC 8200 section 8.1
	binary.BigEndian.PutUint32(tail[:], uint32(len(p)-ip.MinIPv6))
	tail[7] = ip.ICMPv6
	sum := checksum.Checksum(p[8:ip.MinIPv6], 0)
	sum = checksum.Checksum(tail[:], sum)
	binary.BigEndian.PutUint16(p[ip.MinIPv6+2:], ^checksum.Checksum(p[ip.MinIPv6:], sum))
	return dst
}
