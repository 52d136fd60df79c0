package firsthop

import (
	"encoding/binary"
	"net/netip"

	"github.com/google/gopacket/layers"
)

const lenARP = 28 // bytes, of Ethernet and IPv4: RFC 826

// arp takes an ARP packet of the guest (RFC 826). The router answers for all addresses in
// the guests' prefix but the guest's own, as all that is not the guest is behind it (RFC
// 1027). It answers probes (RFC 5227 section 2.1.1) as well, but for an address that the
// guest may have, and has then: so it learns of a conflict before it uses another.
func (p *port) arp(b []byte) {
	if len(b) < lenARP || [6]byte(b) != [6]byte{0, byte(layers.LinkTypeEthernet), 0x08, 0x00, 6, 4} {
		p.count().malformed.Add(1)
		return
	}
	sender, target := netip.AddrFrom4([4]byte(b[14:])), netip.AddrFrom4([4]byte(b[24:]))
	probe := sender.IsUnspecified()
	switch {
	case [6]byte(b[8:]) != p.identity.Load().mac:
		p.spoofed(spoofARP)
		return
	case sender.IsLinkLocalUnicast() || target.IsLinkLocalUnicast(): // RFC 3927
		p.count().local.Add(1)
		return
	case probe && p.adopt(target):
		return
	case !probe && !p.identity.Load().owns(sender) && !p.adopt(sender):
		p.spoofed(spoofARP)
		return
	}
	if operation := binary.BigEndian.Uint16(b[6:]); operation != layers.ARPRequest || !p.standsIn(target) {
		return // answers and announcements say what is known
	}
	p.answer([6]byte(b[8:]), etherARP, serialize(arpLayer(layers.ARPReply, target, [6]byte(b[8:]), sender)))
}

// standsIn reports whether the router answers to the guest for an IPv4 address.
func (p *port) standsIn(a netip.Addr) bool {
	to := p.router.lookup(a)
	switch {
	case !p.router.prefix4.IsValid() || !p.router.prefix4.Contains(a) || p.identity.Load().owns(a):
		return false
	case to != nil:
		return to.kind == toRouter || to.kind == toGuest
	}
	return true
}

// arpLayer returns an ARP packet from the router, which speaks for an address.
func arpLayer(operation uint16, sender netip.Addr, to [6]byte, target netip.Addr) *layers.ARP {
	return &layers.ARP{
		AddrType: layers.LinkTypeEthernet, Protocol: layers.EthernetTypeIPv4, Operation: operation,
		SourceHwAddress: routerMAC[:], SourceProtAddress: sender.AsSlice(),
		DstHwAddress: to[:], DstProtAddress: target.AsSlice(),
	}
}

// ask asks for the guest's MAC address by an address of its own. The answer, as each frame
// of the guest, tells it.
func (p *port) ask(a netip.Addr) {
	switch {
	case !p.asking.Allow():
	case a.Is4():
		p.answer(broadcast, etherARP, serialize(arpLayer(layers.ARPRequest, p.router.prefix4.Addr(), [6]byte{}, a)))
	default:
		p.solicit(a)
	}
}
