package netstack

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// AddRoute sends packets for p into the device. A wider route of another device
// is no obstacle, since the longer prefix wins; the same prefix, or one inside p,
// is an *OverlapError that names it. Beside it comes the route of TUNConfig.Fallback.
func (t *TUN) AddRoute(p netip.Prefix) error {
	if !p.IsValid() || p.Addr().Is4In6() || p != p.Masked() {
		return fmt.Errorf("route %s: %w: give a prefix without host bits, like %s", p, ErrAddress, p.Masked())
	}
	t.routing.Lock()
	defer t.routing.Unlock()
	if t.closed {
		return fmt.Errorf("route %s: TUN device %s: %w", p, t.name, os.ErrClosed)
	}
	if err := t.checkOverlap(p); err != nil {
		return err
	}
	added, err := t.putFallback(p) // first: there is no moment without either
	if err == nil {
		err = t.putRoute(t.route(p))
	}
	if err != nil && added {
		err = errors.Join(err, t.dropFallback(p))
	}
	if err != nil {
		return err
	}
	t.routes[p] = true
	return nil
}

// DelRoute takes back an AddRoute, fallback and all. The error wraps ErrNoRoute if
// there was none.
func (t *TUN) DelRoute(p netip.Prefix) error {
	t.routing.Lock()
	defer t.routing.Unlock()
	if !t.routes[p] {
		return fmt.Errorf("route %s: device %s: %w", p, t.name, ErrNoRoute)
	}
	// ESRCH: somebody else removed it, which is as good.
	if err := t.handle.RouteDel(t.route(p)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("route %s: device %s: removing it: %w", p, t.name, err)
	}
	delete(t.routes, p)
	return t.dropFallback(p)
}

// Routes returns what AddRoute added and DelRoute did not remove, in order. The
// slice is the caller's.
func (t *TUN) Routes() []netip.Prefix {
	t.routing.Lock()
	defer t.routing.Unlock()
	return t.sortedRoutes()
}

func (t *TUN) sortedRoutes() []netip.Prefix {
	routes := make([]netip.Prefix, 0, len(t.routes))
	for p := range t.routes {
		routes = append(routes, p)
	}
	slices.SortFunc(routes, netip.Prefix.Compare)
	return routes
}

// putRoute adds a route to the kernel's table.
func (t *TUN) putRoute(r *netlink.Route) error {
	err := t.handle.RouteAdd(r)
	switch {
	case errors.Is(err, unix.EPERM):
		return errNotPermitted(fmt.Sprintf("route %s", r.Dst), err)
	case err != nil:
		return fmt.Errorf("route %s: device %s: %w", r.Dst, t.name, err)
	}
	return nil
}

func (t *TUN) route(p netip.Prefix) *netlink.Route {
	return &netlink.Route{
		LinkIndex: t.link.Attrs().Index,
		Dst:       ipNet(p),
		Type:      unix.RTN_UNICAST,
		Scope:     netlink.SCOPE_LINK,
		Protocol:  unix.RTPROT_STATIC,
	}
}

// subnet is the route that the kernel makes for an address.
func (t *TUN) subnet(a netip.Prefix) *netlink.Route {
	r := t.route(a.Masked())
	r.Protocol = unix.RTPROT_KERNEL
	if a.Addr().Is4() {
		r.Src = a.Addr().AsSlice()
	} else {
		r.Priority = 256 // IP6_RT_PRIO_ADDRCONF
	}
	return r
}

// checkOverlap looks for a route that p would not stand beside.
func (t *TUN) checkOverlap(p netip.Prefix) error {
	routes, err := t.handle.RouteList(nil, family(p.Addr()))
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("route %s: listing the host's routes: %w", p, err)
	}
	if o := t.overlap(routes, p, false); o != nil {
		return o
	}
	return nil
}

// overlap looks for a route of the host that wins over the device's for p, or would,
// if that is not placed yet, take turns with it. The default route is meant to give
// way to others and counts only when p is one itself.
func (t *TUN) overlap(routes []netlink.Route, p netip.Prefix, placed bool) *OverlapError {
	for i := range routes {
		r := &routes[i]
		other, ok := destination(r, p.Addr())
		own := t.link != nil && r.LinkIndex == t.link.Attrs().Index
		switch {
		case !ok || p.Bits() == 0 && other.Bits() != 0:
		case other.Addr().IsLinkLocalUnicast() || other.Addr().IsMulticast(): // IPv6 has both on every device
		case own && (other != p || placed):
		case IsFallback(r) || IsSpare(r) && other == p: // for when there is no other
		case other == p && placed && r.Priority > priority(p):
		case other.Bits() >= p.Bits() && p.Contains(other.Addr()):
			return &OverlapError{Prefix: p, Other: other, Device: t.deviceName(r.LinkIndex)}
		}
	}
	return nil
}

// IsSpare tells whether a route leads nowhere, and gives way to that of a device for
// the same prefix: what a gateway has as fallback, or somebody wrote for the purpose.
func IsSpare(r *netlink.Route) bool {
	worst := 0
	if r.Family == netlink.FAMILY_V6 {
		worst = prioUser6
	}
	return (r.Type == unix.RTN_UNREACHABLE || r.Type == unix.RTN_BLACKHOLE || r.Type == unix.RTN_PROHIBIT) && r.Priority > worst
}

// prioUser6 is the metric of an IPv6 route where none is given (IP6_RT_PRIO_USER); of
// an IPv4 route it is 0.
const prioUser6 = 1024

// priority returns the metric that a route for p gets where none is given.
func priority(p netip.Prefix) int {
	if p.Addr().Is4() {
		return 0
	}
	return prioUser6
}

// checkAddresses looks for devices that have one of the addresses, or the subnet
// of one of them.
func (t *TUN) checkAddresses(addresses []netip.Prefix) error {
	if len(addresses) == 0 {
		return nil
	}
	have, err := t.handle.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("TUN device: listing the host's addresses: %w", err)
	}
	for _, a := range addresses {
		for i := range have {
			if ip, ok := netip.AddrFromSlice(have[i].IP); ok && ip.Unmap() == a.Addr() {
				return fmt.Errorf("TUN device: address %s: %w by device %s: give the tunnel one of its own", a, ErrInUse, t.deviceName(have[i].LinkIndex))
			}
		}
		if err := t.checkOverlap(a.Masked()); err != nil {
			return fmt.Errorf("TUN device: address %s: %w", a, err)
		}
	}
	return nil
}

func (t *TUN) addAddress(a netip.Prefix) error {
	address := &netlink.Addr{IPNet: &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}}
	if a.Addr().Is6() {
		address.Flags = unix.IFA_F_NODAD // nobody else is on the link; usable at once
	}
	err := t.handle.AddrAdd(t.link, address)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EEXIST):
		return fmt.Errorf("TUN device %s: address %s: %w: give the tunnel one of its own", t.name, a, ErrInUse)
	case a.Addr().Is6() && (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EOPNOTSUPP)):
		return fmt.Errorf("TUN device %s: address %s: %w on this host (%w): set the sysctl net.ipv6.conf.all.disable_ipv6 to 0, or give IPv4 addresses only", t.name, a, ErrNoIPv6, err)
	case errors.Is(err, unix.EPERM):
		return errNotPermitted(fmt.Sprintf("TUN device %s: address %s", t.name, a), err)
	}
	return fmt.Errorf("TUN device %s: address %s: %w", t.name, a, err)
}

// deviceName returns the name of a device for a message.
func (t *TUN) deviceName(index int) string {
	if index == 0 {
		return ""
	}
	link, err := t.handle.LinkByIndex(index)
	if err != nil {
		return fmt.Sprintf("number %d", index)
	}
	return link.Attrs().Name
}

// destination returns where r leads; a route without a destination is the
// default route of the family of like.
func destination(r *netlink.Route, like netip.Addr) (netip.Prefix, bool) {
	if r.Dst == nil {
		p, err := like.Prefix(0)
		return p, err == nil
	}
	ip, ok := netip.AddrFromSlice(r.Dst.IP)
	ones, _ := r.Dst.Mask.Size()
	if like.Is4() {
		ip = ip.Unmap()
	}
	return netip.PrefixFrom(ip, ones), ok && ip.BitLen() == like.BitLen()
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func family(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}
