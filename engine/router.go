package engine

import (
	"net/netip"
	"sync/atomic"

	"github.com/gaissmai/bart"

	"sheaf/netstack"
	"sheaf/parsers"
	"sheaf/parsers/ip"
	"sheaf/tunnel"
)

// A router says which peer a packet goes to, by the longest prefix, and whether
// a peer may send it. Its table is replaced as a whole, so that packets never
// wait for a change.
type router struct {
	table   atomic.Pointer[bart.Table[*peer]]
	brokers map[uint16]bool // ports that are a broker's; read only
}

func newRouter(reg *parsers.Registry) *router {
	r := &router{brokers: make(map[uint16]bool)}
	r.table.Store(&bart.Table[*peer]{})
	for _, p := range reg.ServerPorts() {
		r.brokers[p] = true
	}
	return r
}

// to returns the peer behind which an address lies.
func (r *router) to(dst netip.Addr) *peer {
	p, _ := r.table.Load().Lookup(dst)
	return p
}

// reports tells whether a packet from the peer is an ICMP error about one that was
// routed to it. Such errors come from any router on the way, whose addresses nobody
// lists in allowed, and path MTU discovery needs them. What they quote says whether
// they are the peer's to send: a packet to what lies behind it, from what does not.
func (r *router) reports(p *peer, packet []byte) bool {
	src, dst, ok := netstack.Quoted(packet)
	return ok && r.to(dst) == p && r.to(src) != p
}

// class returns the lane for a packet with the header h. It depends on nothing but
// what all packets of a conversation have in common, both ways, so that none
// overtakes another: pub-sub and what is not TCP or UDP, such as a ping, go before
// the rest.
//
// Fragments are the exception. All but the first do not say their ports, and all of a
// datagram take one lane, which is that of the rest: they may be overtaken by whole
// packets of their conversation. So may packets whose headers are malformed, of which
// nothing but the addresses is known.
func (r *router) class(h *ip.Header) tunnel.Class {
	if h.Fragment.Part() {
		return tunnel.ClassBulk
	}
	switch h.Proto {
	case ip.ICMP, ip.ICMPv6:
		return tunnel.ClassMessages
	case ip.TCP, ip.UDP:
		if src, dst := h.Ports(); r.brokers[src] || r.brokers[dst] {
			return tunnel.ClassMessages
		}
	}
	return tunnel.ClassBulk
}
