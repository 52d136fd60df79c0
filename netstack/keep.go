package netstack

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// A Fault is something about the device that is not as it was made: it is down,
// or lacks an address or a route, or another route has its packets.
type Fault struct {
	Route netip.Prefix // the route of AddRoute that it is about; invalid for the device and its addresses
	What  string

	mend func() error // nil where that is not up to the device
}

// A Repair tells what Keep did.
type Repair struct {
	Mended []Fault       // what it put back
	Err    error         // why not all; wraps ErrGone where the device is no more
	Pause  time.Duration // how long it leaves what is broken next; it grows with every repair
}

// Keep puts back what others take from the device: it sets it up when it is down,
// and adds the addresses and routes that are missing, until Close. Service managers
// flush routes that are not theirs, and a device that goes down loses them all. It
// calls report after each repair, never twice at a time.
//
// Somebody else may mean it. So that the two do not fight, the pause before each
// repair is twice the one before, up to half a minute, and what is then still broken
// is mended. A minute without a repair ends that. A device that is gone from its
// namespace is not made again: Read fails with ErrGone.
func (t *TUN) Keep(report func(Repair)) {
	changed := make(chan struct{}, 1)
	go t.listen(changed)
	var pace pace
	var last error
	timer := time.NewTimer(0) // somebody may have been there before
	defer timer.Stop()
	armed := true
	for {
		select {
		case _, ok := <-changed:
			if !ok {
				return
			}
			if !armed {
				armed = true
				timer.Reset(pace.delay(time.Now()))
			}
		case now := <-timer.C:
			armed = false
			mended, err := t.Restore()
			if len(mended) == 0 && err == nil {
				last = nil
				continue
			}
			pace.mended(now)
			if len(mended) > 0 || last == nil || err.Error() != last.Error() { // the same error again is no news
				report(Repair{mended, err, pace.pause})
			}
			last = err
			if err != nil && !errors.Is(err, ErrGone) {
				armed = true
				timer.Reset(pace.delay(now))
			}
		}
	}
}

// The pauses of Keep.
const (
	settle     = 50 * time.Millisecond  // whoever changes one thing changes more
	firstPause = 250 * time.Millisecond // after the first repair
	lastPause  = 30 * time.Second
	keepQuiet  = time.Minute // after it the next repair is a first one
)

// A pace spreads repairs.
type pace struct {
	pause time.Duration // the least time from the last repair to the next
	last  time.Time
}

// delay returns how long to wait for the next repair.
func (p *pace) delay(now time.Time) time.Duration {
	if now.Sub(p.last) > keepQuiet {
		p.pause = 0
	}
	return max(settle, p.last.Add(p.pause).Sub(now))
}

// mended notes a repair.
func (p *pace) mended(now time.Time) {
	p.pause = min(max(2*p.pause, firstPause), lastPause)
	p.last = now
}

// keepGroups are the netlink groups whose messages tell of damage.
var keepGroups = []uint{unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE}

// listen puts a token into changed when the kernel tells of something that may be
// damage, and closes it after Close. What the kernel could not tell for want of room
// (ENOBUFS) may be, too.
func (t *TUN) listen(changed chan<- struct{}) {
	defer close(changed)
	for {
		messages, _, err := t.events.Receive()
		if err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR) {
			return
		}
		if err == nil && !slices.ContainsFunc(messages, t.concerns) {
			continue
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// concerns tells whether a message may be about damage. IPv4 does not tell of the
// routes that go with a device's last address, or with the device.
func (t *TUN) concerns(m syscall.NetlinkMessage) bool {
	index := uint32(t.link.Attrs().Index)
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_DELADDR: // the index has one place in both, rtnetlink(7)
		return len(m.Data) >= 8 && nl.NativeEndian().Uint32(m.Data[4:]) == index
	case unix.RTM_DELROUTE, unix.RTM_NEWROUTE: // a new one may have replaced ours
		return len(m.Data) >= unix.SizeofRtMsg && t.concernsRoute(m.Data, index)
	}
	return false
}

func (t *TUN) concernsRoute(m []byte, index uint32) bool {
	attributes, err := nl.ParseRouteAttr(m[unix.SizeofRtMsg:])
	if err != nil {
		return true
	}
	deleted := false
	for _, a := range attributes {
		switch a.Attr.Type {
		case unix.RTA_OIF:
			deleted = deleted || len(a.Value) == 4 && nl.NativeEndian().Uint32(a.Value) == index
		case unix.RTA_DST:
			if ip, ok := netip.AddrFromSlice(a.Value); ok && t.hasRoute(netip.PrefixFrom(ip, int(m[1]))) {
				return true
			}
		}
	}
	return deleted
}

func (t *TUN) hasRoute(p netip.Prefix) bool {
	t.routing.Lock()
	defer t.routing.Unlock()
	return t.routes[p]
}

// Faults returns what is not as it was made, now. The slice is the caller's. The
// error wraps ErrGone where the device is no more.
func (t *TUN) Faults() ([]Fault, error) {
	t.routing.Lock()
	defer t.routing.Unlock()
	if t.closed {
		return nil, nil
	}
	return t.inspect()
}

// Restore mends at once what Keep would, and returns what it mended. The error tells
// why not all.
func (t *TUN) Restore() (mended []Fault, err error) {
	t.routing.Lock()
	defer t.routing.Unlock()
	if t.closed {
		return nil, nil
	}
	faults, err := t.inspect()
	if errors.Is(err, ErrGone) {
		_ = t.device.Close() // ends Read, also where the device is in another namespace
	}
	for _, f := range faults {
		if f.mend == nil {
			continue
		}
		if failed := f.mend(); failed != nil {
			err = errors.Join(err, fmt.Errorf("TUN device %s: %s: %w", t.name, f.What, failed))
			continue
		}
		mended = append(mended, f)
	}
	return mended, err
}

// inspect compares the kernel's device, addresses and routes with what they should
// be, in the order in which they are to be mended.
func (t *TUN) inspect() (faults []Fault, err error) {
	link, err := t.handle.LinkByIndex(t.link.Attrs().Index)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, fmt.Errorf("TUN device %s: %w", t.name, ErrGone)
	}
	if err != nil {
		return nil, fmt.Errorf("TUN device %s: %w", t.name, err)
	}
	up := link.Attrs().Flags&net.FlagUp != 0
	if !up {
		faults = append(faults, Fault{What: "the device is down", mend: func() error { return t.handle.LinkSetUp(t.link) }})
	}
	have, err := t.handle.AddrList(t.link, netlink.FAMILY_ALL)
	if err != nil {
		return faults, fmt.Errorf("TUN device %s: listing its addresses: %w", t.name, err)
	}
	var subnets []*netlink.Route // the others the kernel makes when it is up and has the address
	for _, a := range t.addresses {
		if !slices.ContainsFunc(have, func(h netlink.Addr) bool { return h.IPNet.String() == a.String() }) {
			faults = append(faults, Fault{What: fmt.Sprintf("address %s is missing", a), mend: func() error { return t.addAddress(a) }})
		} else if up && !a.IsSingleIP() {
			subnets = append(subnets, t.subnet(a))
		}
	}
	for _, f := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		more, err := t.inspectRoutes(f, subnets)
		faults = append(faults, more...)
		if err != nil {
			return faults, err
		}
	}
	return faults, nil
}

// inspectRoutes is inspect for the routes of a family: the given ones to the subnets
// of addresses, and those of AddRoute.
func (t *TUN) inspectRoutes(of int, subnets []*netlink.Route) (faults []Fault, err error) {
	routes, err := t.handle.RouteList(nil, of)
	if err != nil {
		return nil, fmt.Errorf("TUN device %s: listing the host's routes: %w", t.name, err)
	}
	missing := func(p netip.Prefix, what string, r *netlink.Route) bool {
		if contains(routes, r) {
			return false
		}
		faults = append(faults, Fault{Route: p, What: fmt.Sprintf("%s %s is missing", what, r.Dst), mend: func() error { return t.putRoute(r) }})
		return true
	}
	for _, r := range subnets {
		if nl.GetIPFamily(r.Dst.IP) == of {
			missing(netip.Prefix{}, "route", r)
		}
	}
	for _, p := range t.sortedRoutes() {
		if family(p.Addr()) != of {
			continue
		}
		placed := !missing(p, "route", t.route(p))
		if t.fallback != 0 {
			missing(p, "fallback route", fallbackRoute(p, t.fallback))
		}
		if o := t.overlap(routes, p, placed); o != nil {
			faults = append(faults, Fault{Route: p, What: o.Error()})
		}
	}
	return faults, nil
}

// contains tells whether a route is among those that the kernel listed.
func contains(routes []netlink.Route, want *netlink.Route) bool {
	like, _ := netip.AddrFromSlice(want.Dst.IP)
	p, _ := destination(want, like)
	return slices.ContainsFunc(routes, func(r netlink.Route) bool {
		dst, ok := destination(&r, like)
		return ok && dst == p && r.Type == want.Type &&
			(want.LinkIndex == 0 || r.LinkIndex == want.LinkIndex) && (want.Priority == 0 || r.Priority == want.Priority)
	})
}
