package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	"sheaf/netstack/firsthop"
	"sheaf/parsers/ip"
)

// guests are the virtual machines of [vm]: the router behind whose ports they are, alone or
// beside a device or a userspace stack, here called the host. Beside one, packets go to
// either by their destination; from one to the other only where the configuration says so.
type guests struct {
	vm       *VM
	router   *firsthop.Router
	ports    *ports
	beside   bool           // the gateway has another port
	device   bool           // which is a device
	standIns []netip.Prefix // the addresses that the userspace stack is there for
	spoofed  atomic.Uint64  // packets of others that say they are a guest's
}

// An ingress is where a packet comes from.
type ingress uint8

const (
	fromHost   ingress = iota // the device, the userspace stack, or what is beside the device
	fromGuests                // a guest
)

// openGuests makes the router of [vm], and its ports of the configuration. It does nothing
// where there is no such table.
func (g *Gateway) openGuests() error {
	v := g.cfg.VM
	if v == nil {
		return nil
	}
	router, err := firsthop.New(firsthop.Config{
		Addresses: v.Address.list(), MTU: v.MTU, DNS: v.DNS, Between: v.Between, Log: g.log,
	})
	if err != nil {
		return fmt.Errorf("[vm]: %w", err)
	}
	g.closers = append(g.closers, router.Close)
	g.guests = &guests{
		vm: v, router: router, beside: g.port != nil, device: g.device != nil,
		ports: newPorts(g.cfg, opener{mtu: v.MTU, router: router, vsock: g.vsock, stack: g.stack, log: g.log}),
	}
	if g.stack != nil {
		g.guests.standIns = g.cfg.Address.list()
		if t := g.cfg.Terminate; t != nil {
			g.guests.standIns = append(g.guests.standIns, t.Prefixes.list()...)
		}
	}
	if g.port == nil {
		g.port = router
	}
	if g.device != nil && v.Host {
		for _, p := range v.networks() {
			if err := g.device.AddRoute(p); err != nil {
				return fmt.Errorf("[vm]: %w", err)
			}
		}
	}
	g.closers = append(g.closers, g.guests.ports.close)
	if err := g.guests.ports.set(fromConfiguration, v.Ports); err != nil {
		return err
	}
	g.guests.ports.lookAtFiles()
	return nil
}

// has tells whether an address is behind the router. Guests without a NIC have theirs in the
// userspace stack.
func (n *guests) has(a netip.Addr) bool { return n.vm.guests(a) && !n.ports.inStack(a) }

// spoofs tells whether a packet that did not come from a guest says that it does, and
// counts it.
func (n *guests) spoofs(h *ip.Header) bool {
	if n == nil || !n.has(h.Src()) {
		return false
	}
	n.spoofed.Add(1)
	return true
}

// crosses tells whether a packet that came in one way goes out the other. A guest is no
// peer's, and what lies behind a peer is no host's.
func (n *guests) crosses(from ingress, h *ip.Header, peer bool) bool {
	if n == nil || !n.beside || !n.vm.Host {
		return false
	}
	dst := h.Dst()
	switch {
	case from == fromHost:
		return n.has(dst)
	case peer:
		return false
	case n.vm.guests(dst):
		return n.ports.inStack(dst)
	case n.device:
		return true
	}
	return slices.ContainsFunc(n.standIns, func(p netip.Prefix) bool { return p.Contains(dst) })
}

// take hands the packets that are for guests to them, and returns the others, in order and
// in the memory of packets, with the error of those.
func (n *guests) take(packets [][]byte) (others [][]byte, err error) {
	others = packets[:0]
	from := -1 // where a run of packets for guests begins
	var h ip.Header
	for i, p := range packets {
		_ = h.Parse(p) // whatever follows the addresses is carried
		mine := h.Version != 0 && n.has(h.Dst())
		if mine && from < 0 {
			from = i
		}
		if !mine {
			if from >= 0 {
				err = errors.Join(err, n.router.Write(packets[from:i]))
				from = -1
			}
			others = append(others, p)
		}
	}
	if from >= 0 {
		err = errors.Join(err, n.router.Write(packets[from:]))
	}
	return others, err
}

// describe says in some words what there is of guests.
func (n *guests) describe() string {
	what := "1 guest's port"
	if have := len(n.ports.status()); have != 1 {
		what = fmt.Sprintf("%d guests' ports", have)
	}
	return what + " in " + strings.ReplaceAll(joined(n.vm.networks()), " or ", " and ")
}
