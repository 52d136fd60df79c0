package netstack

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// fallbackProtocol is the protocol of fallback routes, by which they are known:
// a number that rtnetlink.h and iproute2's rt_protos leave free.
const fallbackProtocol = 115

// fallbackRoute returns the route beside the device's for p: of type unreachable,
// and of a metric so bad that it counts only while the device's is not there.
func fallbackRoute(p netip.Prefix, metric uint32) *netlink.Route {
	return &netlink.Route{Dst: ipNet(p), Type: unix.RTN_UNREACHABLE, Protocol: fallbackProtocol, Priority: int(metric)}
}

// IsFallback tells whether a route is the fallback route of a gateway, this one or
// another.
func IsFallback(r *netlink.Route) bool {
	return r.Protocol == fallbackProtocol && r.Type == unix.RTN_UNREACHABLE
}

// PutFallbacks adds the fallback routes of prefixes, in the network namespace of the
// calling thread, before there is a device. One that is there already stays. It needs
// CAP_NET_ADMIN.
func PutFallbacks(metric uint32, prefixes []netip.Prefix) error {
	for _, p := range prefixes {
		err := netlink.RouteAdd(fallbackRoute(p, metric))
		switch {
		case errors.Is(err, unix.EPERM):
			return fmt.Errorf("fallback route %s: %w (%w): run as root or with CAP_NET_ADMIN", p, ErrPermission, err)
		case err != nil && !errors.Is(err, unix.EEXIST):
			return fmt.Errorf("fallback route %s: %w", p, err)
		}
	}
	return nil
}

// DropFallbacks removes the fallback routes of a metric from the network namespace of
// the calling thread, but for those of the prefixes to keep, and returns their
// prefixes: what gateways left behind that are no more, or have other prefixes now.
// It needs CAP_NET_ADMIN where there is one.
func DropFallbacks(metric uint32, keep []netip.Prefix) (dropped []netip.Prefix, err error) {
	kept := make(map[netip.Prefix]bool)
	for _, p := range keep {
		kept[p] = true
	}
	for _, any := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		routes, err := netlink.RouteList(nil, family(any))
		if err != nil {
			return dropped, fmt.Errorf("listing the host's routes: %w", err)
		}
		for i := range routes {
			p, ok := destination(&routes[i], any)
			if !ok || !IsFallback(&routes[i]) || routes[i].Priority != int(metric) || kept[p] {
				continue
			}
			if err := netlink.RouteDel(fallbackRoute(p, metric)); err != nil && !errors.Is(err, unix.ESRCH) {
				return dropped, fmt.Errorf("fallback route %s: removing it: %w", p, err)
			}
			dropped = append(dropped, p)
		}
	}
	return dropped, nil
}

// putFallback adds the fallback route of p, and tells whether it was not there yet.
func (t *TUN) putFallback(p netip.Prefix) (added bool, err error) {
	if t.fallback == 0 {
		return false, nil
	}
	err = t.putRoute(fallbackRoute(p, t.fallback))
	if errors.Is(err, unix.EEXIST) {
		return false, nil
	}
	return err == nil, err
}

// dropFallback removes the fallback route of p, if there is one.
func (t *TUN) dropFallback(p netip.Prefix) error {
	if t.fallback == 0 {
		return nil
	}
	if err := t.handle.RouteDel(fallbackRoute(p, t.fallback)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("fallback route %s: removing it: %w", p, err)
	}
	return nil
}
