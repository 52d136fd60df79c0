package firsthop

import (
	"net"
	"net/netip"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/mdlayher/ndp"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"sheaf/parsers/ip"
)

// Times in router advertisements. Guests that ask are answered at once; the others hear
// again before what they know runs out, even where two in a row are lost.
const (
	advertiseEvery = 10 * time.Minute   // the default of RFC 4861 section 6.2.1
	routerLifetime = 3 * advertiseEvery // as there
	prefixLifetime = 24 * time.Hour     // less than the default of 30 days: prefixes go when a configuration changes
	prefixFavoured = 4 * time.Hour      // until then new connections use it; 24 advertisements
	hopLimitNDP    = 255                // RFC 4861 section 7.1: no router has passed it on
)

// isDiscovery reports whether the packet with the header h is a message of neighbour
// discovery, which no router passes on, or the first fragment of one, which nobody takes
// (RFC 6980).
func isDiscovery(h *ip.Header) bool {
	message := h.Payload()
	return h.Version == 6 && h.Len != 0 && h.Proto == ip.ICMPv6 && h.Fragment != ip.Later && len(message) > 0 &&
		message[0] >= layers.ICMPv6TypeRouterSolicitation && message[0] <= layers.ICMPv6TypeRedirect
}

// discover takes a message of the guest: RFC 4861 sections 6.1 and 7.1 say which are valid.
func (p *port) discover(h *ip.Header) {
	if !p.router.prefix6.IsValid() {
		p.count().unserved.Add(1)
		return
	}
	message := h.Payload()
	if kind := message[0]; kind == layers.ICMPv6TypeRouterAdvertisement || kind == layers.ICMPv6TypeRedirect {
		p.spoofed(spoofNDP)
		return
	}
	var parsed ndp.Message
	valid := h.Fragment == ip.Whole && h.Packet[7] == hopLimitNDP && len(message) > 1 && message[1] == 0 &&
		checksum.Checksum(message, pseudoHeader(h, len(message))) == 0xffff
	if valid {
		var err error
		parsed, err = ndp.ParseMessage(message)
		valid = err == nil
	}
	if !valid {
		p.count().malformed.Add(1)
		return
	}
	switch m := parsed.(type) {
	case *ndp.RouterSolicitation:
		if p.mayDiscover(h.Src()) && p.ownMAC(m.Options) {
			p.advertiseTo(h.Src())
		}
	case *ndp.NeighborSolicitation:
		p.solicited(h, m)
	case *ndp.NeighborAdvertisement:
		if p.mayDiscover(h.Src()) && p.ownMAC(m.Options) && m.TargetAddress != h.Src() {
			p.mayDiscover(m.TargetAddress)
		}
	}
}

// mayDiscover says whether a message may speak of an address as the guest's: its own, a
// link-local one, or none yet. It counts where it may not.
func (p *port) mayDiscover(a netip.Addr) bool {
	if a.IsUnspecified() || a.IsLinkLocalUnicast() && a != routerLocal || p.identity.Load().owns(a) || p.adopt(a) {
		return true
	}
	p.spoofed(spoofNDP)
	return false
}

// ownMAC says whether the link-layer addresses in a message are the guest's, and counts it
// where one is not.
func (p *port) ownMAC(options []ndp.Option) bool {
	id := p.identity.Load()
	for _, o := range options {
		if a, ok := o.(*ndp.LinkLayerAddress); ok && a.Addr.String() != net.HardwareAddr(id.mac[:]).String() {
			p.spoofed(spoofNDP)
			return false
		}
	}
	return true
}

// solicited takes a neighbour solicitation. The router answers for its own addresses and,
// as a proxy, for the guests' prefix. A probe for an address (RFC 4862 section 5.4) that
// the guest may have makes it the guest's; one that it may not have is answered, so that
// the guest does not use it.
func (p *port) solicited(h *ip.Header, m *ndp.NeighborSolicitation) {
	a, probe := m.TargetAddress, h.Src().IsUnspecified()
	if a.IsMulticast() {
		p.count().malformed.Add(1)
		return
	}
	if !p.mayDiscover(h.Src()) || !p.ownMAC(m.Options) {
		return
	}
	to := p.router.lookup(a)
	own := to != nil && to.kind == toRouter
	switch {
	case p.identity.Load().owns(a), !own && !p.router.prefix6.Contains(a), probe && p.adopt(a):
		return
	}
	answer := &ndp.NeighborAdvertisement{
		Router: true, Solicited: !probe, TargetAddress: a,
		Override: own || probe, // a proxy's does not, RFC 4861 section 7.2.8, but for a conflict
		Options:  []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Target, Addr: routerMAC[:]}},
	}
	if probe {
		p.sendNDP(answer, a, allNodes)
		return
	}
	p.sendNDP(answer, a, h.Src())
}

// solicit asks who has an address of the guest.
func (p *port) solicit(a netip.Addr) {
	b, group := a.As16(), netip.MustParseAddr("ff02::1:ff00:0").As16() // RFC 4291 section 2.7.1
	copy(group[13:], b[13:])
	p.sendNDP(&ndp.NeighborSolicitation{
		TargetAddress: a,
		Options:       []ndp.Option{&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: routerMAC[:]}},
	}, routerLocal, netip.AddrFrom16(group))
}

// sendNDP queues a message for the guest.
func (p *port) sendNDP(m ndp.Message, src, dst netip.Addr) {
	message, err := ndp.MarshalMessageChecksum(m, src, dst)
	if err != nil {
		return // none that is made here
	}
	to := p.identity.Load().mac
	if dst.IsMulticast() {
		to = groupMAC(dst)
	}
	p.answer(to, etherIPv6, serialize(ipHeader(src, dst, layers.IPProtocolICMPv6, hopLimitNDP), gopacket.Payload(message)))
}

// advertiseTo tells the guest of its router (RFC 4861 section 6.2.3), at the address from
// which it asked or, without one, at that of all nodes. Nothing but the router is on the
// guest's link, and no address is had by DHCPv6: so the prefix is not on-link, and M and O
// are off. Hosts make addresses in it where they may claim some.
func (p *port) advertiseTo(dst netip.Addr) {
	r := p.router
	if dst.IsUnspecified() {
		dst = allNodes
	}
	p.sendNDP(&ndp.RouterAdvertisement{
		CurrentHopLimit: routerTTL,
		RouterLifetime:  routerLifetime,
		Options:         r.advertised(p.makesAddresses()),
	}, routerLocal, dst)
}

// makesAddresses reports whether the guest is to make addresses in the prefix: it may claim
// them, or has by configuration the one that it would make.
func (p *port) makesAddresses() bool {
	p.router.mu.Lock()
	defer p.router.mu.Unlock()
	return p.claims6() || p.router.prefix6.Bits() == 64 && p.known && p.identity.Load().owns(autoconfigured(p.router.prefix6, p.mac))
}

// advertised returns the options of an advertisement.
func (r *Router) advertised(autonomous bool) []ndp.Option {
	options := []ndp.Option{
		&ndp.LinkLayerAddress{Direction: ndp.Source, Addr: routerMAC[:]},
		ndp.NewMTU(uint32(r.mtu)),
		&ndp.PrefixInformation{
			PrefixLength: uint8(r.prefix6.Bits()), Prefix: r.prefix6.Masked().Addr(), AutonomousAddressConfiguration: autonomous,
			ValidLifetime: prefixLifetime, PreferredLifetime: prefixFavoured,
		},
	}
	if r.dns != nil {
		options = append(options, &ndp.RecursiveDNSServer{Lifetime: routerLifetime, Servers: []netip.Addr{r.prefix6.Addr()}}) // RFC 8106 section 5.1
	}
	return options
}

// tell tells the guest of a port that is new of its router.
func (p *port) tell() {
	if p.router.prefix6.IsValid() {
		p.advertiseTo(allNodes)
	}
}

// advertise tells all guests again, until the Router is closed.
func (r *Router) advertise() {
	ticker := time.NewTicker(advertiseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-r.ctx.Done():
			return
		}
		for _, p := range r.plugged() {
			p.tell()
		}
	}
}
