package firsthop

import (
	"encoding/binary"
	"slices"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"sheaf/netstack"
	"sheaf/parsers/ip"
)

// The ports that the router serves.
const (
	dhcpServer = 67 // RFC 2131 section 4.1
	dhcpClient = 68
	dnsPort    = 53 // RFC 1035 section 4.2
)

// local takes a packet of the guest to the router.
func (p *port) local(h *ip.Header) {
	if h.Fragment.Part() || h.Len == 0 { // nothing is put together here; h.Len: malformed
		p.count().unserved.Add(1)
		return
	}
	_, port := h.Ports()
	switch {
	case h.Proto == ip.UDP && port == dhcpServer && h.Version == 4:
		p.dhcp(h)
	case h.Proto == ip.UDP && port == dnsPort && p.router.dns != nil:
		p.query(h)
	case h.Proto == ip.TCP && port == dnsPort && p.router.dns != nil && h.Dst() != routerLocal:
		p.overTCP(h)
	case h.Proto == ip.UDP || h.Proto == ip.TCP:
		p.count().unserved.Add(1)
		p.unreachable(h, netstack.NoPort)
	default:
		if echo := appendEchoReply(nil, h); echo != nil {
			p.answerIP(echo)
			return
		}
		p.count().unserved.Add(1)
	}
}

// appendEchoReply appends the answer to a ping with the header h (RFC 792; RFC 4443 section
// 4.2), or returns nil if that is none, or a part of one.
func appendEchoReply(dst []byte, h *ip.Header) []byte {
	message := h.Payload()
	if h.Len == 0 || h.Fragment.Part() || len(message) < header.ICMPv4MinimumSize {
		return nil
	}
	sum := func(b []byte) uint16 { return ^checksum.Checksum(b, 0) }
	kind := byte(header.ICMPv4EchoReply)
	switch {
	case h.Version == 4 && h.Proto == ip.ICMP && message[0] == byte(header.ICMPv4Echo):
	case h.Version == 6 && h.Proto == ip.ICMPv6 && message[0] == byte(header.ICMPv6EchoRequest):
		kind = byte(header.ICMPv6EchoReply)
		sum = func(b []byte) uint16 { return ^checksum.Checksum(b, pseudoHeader(h, len(b))) }
	default:
		return nil
	}
	if sum(message) != 0 {
		return nil
	}
	message = slices.Clone(message)
	message[0] = kind
	binary.BigEndian.PutUint16(message[2:], 0)
	binary.BigEndian.PutUint16(message[2:], sum(message))
	protocol := layers.IPProtocol(h.Proto)
	return append(dst, serialize(ipHeader(h.Dst(), h.Src(), protocol, routerTTL), gopacket.Payload(message))...)
}

// pseudoHeader returns the sum over that of an ICMPv6 message of n bytes, RFC 8200 section
// 8.1. It is the same both ways.
func pseudoHeader(h *ip.Header, n int) uint16 {
	src, dst := h.Src().As16(), h.Dst().As16()
	return header.PseudoHeaderChecksum(header.ICMPv6ProtocolNumber, tcpip.AddrFrom16(src), tcpip.AddrFrom16(dst), uint16(n))
}
