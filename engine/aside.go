package engine

import (
	"net/netip"

	"sheaf/netstack"
	"sheaf/parsers/ip"
)

// quoteAt is where an ICMP error quotes the packet that it is about (RFC 792; RFC 4443
// section 3), in bytes.
const quoteAt = 8

// An aside is a stack beside the device, in which TCP connections to some servers end:
// what comes out of the tunnel for them goes there in place of the device, and what it
// answers goes the way of packets read from the device.
//
// Fragments go to the device, since only the first says its ports: TCP sends none, and no
// router makes any of what must not be fragmented, which hosts say of all their segments.
type aside struct {
	*netstack.Stack
	servers map[netip.AddrPort]*netstack.TLSFront
}

// openAside makes the stack; mtu is the device's, 0 for the default.
func openAside(servers map[netip.AddrPort]*netstack.TLSFront, mtu int) (*aside, error) {
	if mtu > 0 {
		mtu = max(mtu, minStackMTU)
	}
	s, err := netstack.NewStack(netstack.StackConfig{MTU: mtu})
	if err != nil {
		return nil, err
	}
	a := &aside{Stack: s, servers: servers}
	cfg := netstack.TerminateConfig{TLS: servers}
	seen := make(map[netip.Addr]bool)
	for server := range servers {
		if addr := server.Addr(); !seen[addr] {
			seen[addr] = true
			cfg.Prefixes = append(cfg.Prefixes, netip.PrefixFrom(addr, addr.BitLen()))
		}
	}
	if _, err := s.Terminate(cfg); err != nil {
		_ = s.Close()
		return nil, err
	}
	return a, nil
}

// minStackMTU is what a stack that speaks IPv6 takes at least (RFC 8200 section 5), in
// bytes. A device may have less: lanes carry longer packets, and segments keep to what the
// client says that it takes.
const minStackMTU = 1280

// take puts the packets that are for the servers into the stack, and returns the others,
// in order and in the memory of packets.
func (a *aside) take(packets [][]byte) [][]byte {
	others := packets[:0]
	for i, p := range packets {
		if a.claims(p) {
			a.Input(packets[i : i+1])
		} else {
			others = append(others, p)
		}
	}
	return others
}

// claims tells whether a packet is TCP to one of the servers, or an ICMP error about TCP
// from one.
func (a *aside) claims(packet []byte) bool {
	var h ip.Header
	if h.Parse(packet) != nil || h.Fragment.Part() {
		return false
	}
	switch h.Proto {
	case ip.TCP:
		_, port := h.Ports()
		return a.servers[netip.AddrPortFrom(h.Dst(), port)] != nil
	case ip.ICMP, ip.ICMPv6:
		from, _, ok := netstack.Quoted(packet)
		var q ip.Header
		if !ok || q.Parse(h.Payload()[quoteAt:]) != nil || q.Proto != ip.TCP {
			return false
		}
		port, _ := q.Ports()
		return a.servers[netip.AddrPortFrom(from, port)] != nil
	}
	return false
}
