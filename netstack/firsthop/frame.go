package firsthop

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/netstack/link"
)

const headLen = link.HeaderLen

// An etherType says what an Ethernet frame carries.
type etherType uint16

const (
	etherIPv4 = etherType(layers.EthernetTypeIPv4)
	etherARP  = etherType(layers.EthernetTypeARP)
	etherIPv6 = etherType(layers.EthernetTypeIPv6)
	etherVLAN = etherType(layers.EthernetTypeDot1Q)
	etherQinQ = etherType(layers.EthernetTypeQinQ)
)

var (
	// routerMAC is the router's, the same to all guests and of each gateway, since it is on
	// no wire: a guest that has resolved it goes on when the gateway is restarted, or the
	// guest moved. It is locally administered, and "sheaf".
	routerMAC = [6]byte{0x02, 's', 'h', 'e', 'a', 'f'}

	// routerLocal is the router's link-local address on the link of each guest.
	routerLocal = netip.MustParseAddr("fe80::1")

	allNodes  = netip.MustParseAddr("ff02::1")
	broadcast = [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
)

// headOf returns the head of a frame from the router.
func headOf(to [6]byte, kind etherType) (head [headLen]byte) {
	copy(head[:], to[:])
	copy(head[6:], routerMAC[:])
	binary.BigEndian.PutUint16(head[12:], uint16(kind))
	return head
}

// groupMAC returns the MAC address of an IPv6 multicast address, RFC 2464 section 7.
func groupMAC(a netip.Addr) [6]byte {
	b := a.As16()
	return [6]byte{0x33, 0x33, b[12], b[13], b[14], b[15]}
}

// serialize returns the bytes of layers, the outermost first, with lengths and checksums.
func serialize(all ...gopacket.SerializableLayer) []byte {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, all...); err != nil {
		panic(err) // an address of no length, or more than a packet can hold: made here, neither
	}
	return b.Bytes()
}

// datagram returns a packet with a UDP datagram.
func datagram(src, dst netip.AddrPort, payload []byte) []byte {
	udp := &layers.UDP{SrcPort: layers.UDPPort(src.Port()), DstPort: layers.UDPPort(dst.Port())}
	outer := ipHeader(src.Addr(), dst.Addr(), layers.IPProtocolUDP, routerTTL)
	_ = udp.SetNetworkLayerForChecksum(outer.(gopacket.NetworkLayer)) // IPv4 or IPv6
	b := serialize(outer, udp, gopacket.Payload(payload))
	if sum := b[len(b)-len(payload)-2:][:2]; sum[0]|sum[1] == 0 {
		sum[0], sum[1] = 0xff, 0xff // RFC 768: 0 is none, which IPv6 refuses; gopacket leaves it
	}
	return b
}

// routerTTL is that of what the router sends to others than neighbours (RFC 1700).
const routerTTL = 64

// ipHeader returns an IP header.
func ipHeader(src, dst netip.Addr, protocol layers.IPProtocol, ttl uint8) gopacket.SerializableLayer {
	if src.Is4() {
		return &layers.IPv4{Version: 4, IHL: 5, Flags: layers.IPv4DontFragment, TTL: ttl, Protocol: protocol, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	}
	return &layers.IPv6{Version: 6, NextHeader: protocol, HopLimit: ttl, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
}
