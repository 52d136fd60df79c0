package engine

import (
	"encoding/binary"
	"net/netip"
	"sync/atomic"

	"github.com/gaissmai/bart"

	"sheaf/netstack"
	"sheaf/parsers"
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

// addresses returns the source and destination of an IP packet.
func addresses(p []byte) (src, dst netip.Addr, ok bool) {
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		return netip.AddrFrom4([4]byte(p[12:16])), netip.AddrFrom4([4]byte(p[16:20])), true
	case len(p) >= 40 && p[0]>>4 == 6:
		return netip.AddrFrom16([16]byte(p[8:24])), netip.AddrFrom16([16]byte(p[24:40])), true
	}
	return src, dst, false
}

// The protocols that the router knows.
const (
	protoICMP   = 1
	protoTCP    = 6
	protoUDP    = 17
	protoICMPv6 = 58
)

// transport returns what follows the IP header of a packet, and where. IPv6's
// extension headers it does not go through.
func transport(p []byte) (proto uint8, at int) {
	if p[0]>>4 == 4 {
		return p[9], int(p[0]&15) * 4
	}
	return p[6], 40
}

// class returns the lane for a packet. It depends on nothing but what all
// packets of a conversation have in common, both ways, so that none overtakes
// another: pub-sub and what is not TCP or UDP, such as a ping, go before the
// rest.
func (r *router) class(p []byte) tunnel.Class {
	proto, at := transport(p)
	if p[0]>>4 == 4 && binary.BigEndian.Uint16(p[6:])&0x3fff != 0 {
		return tunnel.ClassBulk // a fragment does not say
	}
	switch {
	case proto == protoICMP || proto == protoICMPv6:
		return tunnel.ClassMessages
	case proto != protoTCP && proto != protoUDP || len(p) < at+4:
		return tunnel.ClassBulk
	}
	src, dst := binary.BigEndian.Uint16(p[at:]), binary.BigEndian.Uint16(p[at+2:])
	if r.brokers[src] || r.brokers[dst] {
		return tunnel.ClassMessages
	}
	return tunnel.ClassBulk
}
