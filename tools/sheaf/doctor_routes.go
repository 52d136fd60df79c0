package main

import (
	"fmt"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// has tells whether the host has a route for a prefix that is as like says.
func (n *network) has(p netip.Prefix, like func(located) bool) bool {
	return slices.ContainsFunc(n.routes, func(r located) bool { return r.prefix == p && like(r) })
}

// checkPlaced looks whether the device of the gateway that is running, its addresses
// and routes are what they should be. What others took from it the gateway puts back
// within a second, unless that happens again and again.
func (d *doctor) checkPlaced() {
	if d.own() == "" {
		return
	}
	const mend = "see in its log why the gateway does not put it back, and what removes it: systemd-networkd and NetworkManager can be told to leave the device alone; or restart the gateway"
	before := d.failures + d.warnings
	link := d.net.device(d.own())
	if link == nil {
		d.fail("device", "restart the gateway", "%s of the gateway that is running is gone", d.own())
		return
	}
	if !link.up {
		d.fail("device", mend, "%s is down", d.own())
	}
	for _, a := range d.cfg.TUN.Address {
		if !slices.ContainsFunc(d.net.addresses, func(l located) bool { return l.prefix == a.Prefix && l.device == d.own() }) {
			d.fail("address", mend, "%v is missing on device %s", a.Prefix, d.own())
		}
	}
	n := 0
	for _, p := range d.running.Peers {
		for _, text := range p.Allowed {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				continue // not of a gateway of this version
			}
			n++
			if !d.net.has(prefix, func(r located) bool { return r.device == d.own() }) {
				d.fail("routes", mend, "%v, behind %s, has no route to device %s", prefix, printable(p.Name), d.own())
			}
			if err := d.overlap(prefix); err != nil && !d.configured(prefix) { // checkRoutes has the others
				d.fail("routes", "see \"ip route\" for it", "behind %s: %v", printable(p.Name), err)
			}
		}
	}
	if d.failures+d.warnings == before {
		d.ok("routes", "%s has its addresses, and the routes to %s", d.own(), count(uint64(n), "subnet"))
	}
}

// configured tells whether a prefix is in the configuration.
func (d *doctor) configured(p netip.Prefix) bool {
	for i := range d.cfg.Peers {
		for _, a := range d.cfg.Peers[i].Allowed {
			if a.Prefix == p {
				return true
			}
		}
	}
	return false
}

// checkFallback looks what becomes of packets to what lies behind peers while no
// gateway runs.
func (d *doctor) checkFallback() {
	refused := func(r located) bool { return r.ours }
	have, all := 0, 0
	for i := range d.cfg.Peers {
		for _, a := range d.cfg.Peers[i].Allowed {
			all++
			if d.net.has(a.Prefix, refused) {
				have++
			}
		}
	}
	var stale []netip.Prefix
	for _, r := range d.net.routes {
		if r.ours && !d.configured(r.prefix) && !d.behind(r.prefix) {
			stale = append(stale, r.prefix)
		}
	}
	subnets := count(uint64(all), "subnet")
	switch {
	case len(stale) > 0:
		d.warn("fallback", "if no other gateway on this host has it: sheaf up or sheaf down, with the key that it was made with; or: "+fmt.Sprintf("ip route del unreachable %v proto 115", stale[0]),
			"packets to %v are refused for a gateway, and it is behind no peer", stale[0])
	case d.cfg.TUN.Fallback == "route":
		d.ok("fallback", "while no gateway runs, packets to the %s behind peers go where other routes lead", subnets)
	case have == all:
		d.ok("fallback", "while no gateway runs, packets to the %s behind peers are refused", subnets)
	case d.own() != "":
		d.warn("fallback", "see in the gateway's log why it does not put them back; or restart it",
			"of the %s behind peers %d would go where other routes lead while no gateway runs", subnets, all-have)
	case d.isRunning() || d.host.capable(unix.CAP_NET_ADMIN):
		d.ok("fallback", "packets to the %s behind peers will be refused while no gateway runs, from the first sheaf up on", subnets)
	}
}

// behind tells whether a prefix is behind a peer of the gateway that is running.
func (d *doctor) behind(p netip.Prefix) bool {
	if d.running == nil {
		return false
	}
	for _, peer := range d.running.Peers {
		if slices.Contains(peer.Allowed, p.String()) {
			return true
		}
	}
	return false
}
