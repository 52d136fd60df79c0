package firsthop

import (
	"encoding/binary"
	"net/netip"

	"sheaf/netstack"
	"sheaf/parsers/ip"
)

// The way of a frame from a guest. What is written here is for one goroutine, receive.

// input takes a frame, borrowed until the packet that it returns has been read. That is the
// IP packet in it where it goes elsewhere, or nil: it has been answered, passed to another
// guest, or counted and dropped.
func (p *port) input(frame []byte) []byte {
	count := p.count()
	count.received.Add(1)
	if len(frame) < headLen {
		count.malformed.Add(1)
		return nil
	}
	if id, from := p.identity.Load(), [6]byte(frame[6:]); (!id.known || from != id.mac) && !p.learn(from) {
		p.spoofed(spoofMAC)
		return nil
	}
	addressed := [6]byte(frame) == routerMAC
	if !addressed && frame[0]&1 == 0 {
		count.foreign.Add(1)
		return nil
	}
	kind, rest := etherType(binary.BigEndian.Uint16(frame[12:])), frame[headLen:]
	switch kind {
	case etherIPv4, etherIPv6:
		return p.packet(kind, rest, addressed)
	case etherARP:
		p.arp(rest)
	case etherVLAN, etherQinQ:
		count.vlan.Add(1)
	default:
		count.foreign.Add(1)
	}
	return nil
}

// cut returns the IP packet at the beginning of b, without what fills up a short frame. It
// is not ok if there is none of the frame's kind, or less of it than it says.
func cut(kind etherType, b []byte) (packet []byte, ok bool) {
	least, total := ip.MinIPv4, 0
	switch {
	case kind == etherIPv4 && len(b) >= ip.MinIPv4 && b[0]>>4 == 4:
		total = int(binary.BigEndian.Uint16(b[2:]))
	case kind == etherIPv6 && len(b) >= ip.MinIPv6 && b[0]>>4 == 6:
		least, total = ip.MinIPv6, ip.MinIPv6+int(binary.BigEndian.Uint16(b[4:]))
	}
	if total < least || total > len(b) {
		return nil, false
	}
	return b[:total], true
}

// packet takes what a frame carries, and returns it where it goes elsewhere. A frame that is
// not addressed to the router, but to a group, must carry no packet for one host: RFC 1122
// section 3.3.6.
func (p *port) packet(kind etherType, b []byte, addressed bool) []byte {
	count := p.count()
	b, ok := cut(kind, b)
	var h ip.Header
	if ok {
		// Extension headers matter to who gets the packet. It goes there as it is.
		ok = h.Parse(b) == nil || kind == etherIPv6
	}
	if !ok {
		count.malformed.Add(1)
		return nil
	}
	if isDiscovery(&h) {
		p.discover(&h)
		return nil
	}
	to := p.router.lookup(h.Dst())
	switch {
	case to != nil && to.kind == toGroup:
		p.group(&h)
		return nil
	case to != nil && to.kind == toNone:
		count.local.Add(1)
		return nil
	case !addressed:
		count.foreign.Add(1)
		return nil
	case !p.from(&h, to):
		return nil
	case to != nil && to.kind == toRouter:
		p.local(&h)
		return nil
	case len(b) > p.router.mtu:
		count.tooBig.Add(1)
		if !mayFragment(&h) {
			p.refuse(&h)
		}
		return nil
	case to == nil:
		count.passed.Add(1)
		return b
	}
	p.toGuest(&h, to.port)
	return nil
}

// from says whether a packet with a target may come from its source, and counts it where
// it may not. Link-local sources are for the router alone, and any is as good as another
// there: the answer goes to the same guest.
func (p *port) from(h *ip.Header, to *target) bool {
	src := h.Src()
	if p.identity.Load().owns(src) {
		return true
	}
	switch {
	case src.IsLinkLocalUnicast():
		if src.Is6() && src != routerLocal && to != nil && to.kind == toRouter {
			return true
		}
		p.count().local.Add(1)
	case p.adopt(src):
		return true
	case h.Version == 4:
		p.spoofed(spoofIPv4)
	default:
		p.spoofed(spoofIPv6)
	}
	return false
}

// toGuest passes a packet to another guest, where that may be. A guest's packets to its own
// address are none of ours.
func (p *port) toGuest(h *ip.Header, to *port) {
	switch {
	case to == p:
		p.count().local.Add(1)
		return
	case !p.router.between:
		p.count().isolated.Add(1)
		p.unreachable(h, netstack.Prohibited)
		return
	}
	p.count().passed.Add(1)
	to.deliver(h, p.shareOf(to.queue)) // what is too big has been refused before
}

// shareOf returns what the guest holds of another one's queue. Those of guests that are gone
// are forgotten with the next new one.
func (p *port) shareOf(q *queue) *share {
	s := p.shares[q]
	if s == nil {
		for old := range p.shares {
			if old.isClosed() {
				delete(p.shares, old)
			}
		}
		s = &share{}
		p.shares[q] = s
	}
	return s
}

// unreachable and refuse tell the guest that its packet does not go on.
func (p *port) unreachable(h *ip.Header, reason netstack.Unreachable) {
	p.complain(h, func(from netip.Addr) []byte { return netstack.AppendUnreachable(nil, h.Packet, reason, from) })
}

func (p *port) refuse(h *ip.Header) {
	p.complain(h, func(from netip.Addr) []byte { return netstack.AppendTooBig(nil, h.Packet, p.router.mtu, from) })
}

func (p *port) complain(h *ip.Header, build func(from netip.Addr) []byte) {
	if p.errors.Allow() {
		p.answerIP(build(p.router.own(h)))
	}
}

// answerIP queues an IP packet of the router for the guest.
func (p *port) answerIP(packet []byte) {
	if len(packet) == 0 {
		return
	}
	kind := etherIPv4
	if packet[0]>>4 == 6 {
		kind = etherIPv6
	}
	p.answer(p.identity.Load().mac, kind, packet)
}

// group takes a packet to a broadcast or multicast address. DHCP is the only one for the
// router; neighbour discovery has been taken before.
func (p *port) group(h *ip.Header) {
	if _, port := h.Ports(); h.Version == 4 && h.Proto == ip.UDP && h.Fragment == ip.Whole && port == dhcpServer && p.router.prefix4.IsValid() {
		p.dhcp(h)
		return
	}
	p.count().group.Add(1)
}
