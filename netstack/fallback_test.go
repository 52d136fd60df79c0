package netstack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// fallbacks lists the fallback routes that the kernel has, with their metrics.
func fallbacks(t *testing.T) string {
	t.Helper()
	var list []string
	for _, any := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		routes, err := netlink.RouteList(nil, family(any))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range routes {
			if p, ok := destination(&r, any); ok && IsFallback(&r) {
				list = append(list, fmt.Sprintf("%s@%d", p, r.Priority))
			}
		}
	}
	slices.Sort(list)
	return fmt.Sprint(list)
}

func TestFallback(t *testing.T) {
	noLeaks(t)
	enterNamespace(t)
	const metric, others = 0x7F000001, 0x7FFFFFFF
	cfg := TUNConfig{Addresses: prefixes("10.99.0.1/24", "fd99::1/64"), Fallback: metric}
	// Where a connection to an address would lead, or why to nowhere.
	leads := func(to string) string {
		t.Helper()
		r, err := netlink.RouteGet(netip.MustParseAddr(to).AsSlice())
		if err != nil {
			return err.Error()
		}
		link, err := netlink.LinkByIndex(r[0].LinkIndex)
		if err != nil {
			t.Fatal(err)
		}
		return link.Attrs().Name
	}
	unreachable := unix.EHOSTUNREACH.Error()
	wantLeads := func(v4, v6 string) {
		t.Helper()
		if got4, got6 := leads("10.2.0.10"), leads("fd02::10"); got4 != v4 || got6 != v6 {
			t.Errorf("10.2.0.10: %s, want %s; fd02::10: %s, want %s", got4, v4, got6, v6)
		}
	}
	// The host's own way to everywhere.
	clear := openTestTUN(t, TUNConfig{Name: "clear", Addresses: prefixes("10.5.0.1/24", "fd05::1/64")})
	ipCommand(t, "route add default dev clear", "-6 route add default dev clear")
	wantLeads("clear", "clear")

	for range 2 { // as at boot, and again
		if err := PutFallbacks(metric, prefixes("10.2.0.0/24", "fd02::/64")); err != nil {
			t.Fatal(err)
		}
		wantLeads(unreachable, unreachable)
	}
	d := openTestTUN(t, cfg)
	for _, p := range prefixes("10.2.0.0/24", "10.3.0.0/24", "fd02::/64") {
		if err := d.AddRoute(p); err != nil {
			t.Fatal(err)
		}
	}
	wantLeads(d.Name(), d.Name())
	all := fmt.Sprintf("[10.2.0.0/24@%d 10.3.0.0/24@%[1]d fd02::/64@%[1]d]", metric)
	if got := fallbacks(t); got != all {
		t.Errorf("fallback routes %s", got)
	}
	ipCommand(t, "link set "+d.Name()+" down")
	wantLeads(unreachable, unreachable)
	d.Close()
	wantLeads(unreachable, unreachable)
	if got := leads("10.4.0.1"); got != "clear" {
		t.Errorf("another address: %s", got)
	}

	// A longer prefix and a better metric of the host's win.
	ipCommand(t, "route add 10.2.0.10/32 dev clear", "-6 route add fd02::/64 dev clear metric 5000")
	wantLeads("clear", "clear")
	ipCommand(t, "route del 10.2.0.10/32 dev clear", "-6 route del fd02::/64 dev clear")

	// Another start finds them, and another gateway's are no obstacle.
	d = openTestTUN(t, cfg)
	if err := netlink.RouteAdd(fallbackRoute(netip.MustParsePrefix("10.2.0.128/25"), others)); err != nil {
		t.Fatal(err)
	}
	for _, p := range prefixes("10.2.0.0/24", "fd02::/64") {
		if err := d.AddRoute(p); err != nil {
			t.Fatal(err)
		}
	}
	if dropped, err := DropFallbacks(metric, d.Routes()); fmt.Sprint(dropped) != "[10.3.0.0/24]" || err != nil {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	ipCommand(t, "route flush type unreachable proto 115 10.2.0.0/24", "route del unreachable 10.2.0.128/25")
	faults, err := d.Faults()
	if len(faults) != 1 || faults[0].What != "fallback route 10.2.0.0/24 is missing" || err != nil {
		t.Errorf("faults %v, %v", faults, err)
	}
	if _, err := d.Restore(); err != nil {
		t.Error(err)
	}
	if err := d.DelRoute(netip.MustParsePrefix("fd02::/64")); err != nil {
		t.Error(err)
	}
	wantLeads(d.Name(), "clear")
	if got, want := fallbacks(t), fmt.Sprintf("[10.2.0.0/24@%d]", metric); got != want {
		t.Errorf("fallback routes %s, want %s", got, want)
	}
	d.Close()
	if dropped, err := DropFallbacks(metric, nil); fmt.Sprint(dropped) != "[10.2.0.0/24]" || err != nil {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	wantLeads("clear", "clear")
	clear.Close()
}

// A route that cannot be added leaves no fallback, and does not take one that was
// there.
func TestFallbackOfNoRoute(t *testing.T) {
	noLeaks(t)
	enterNamespace(t)
	d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24"), Fallback: 0x7F000001})
	ipCommand(t, "link set sheaf0 down") // no route can be added
	p := netip.MustParsePrefix("10.2.0.0/24")
	for _, want := range []string{"[]", "[10.2.0.0/24@2130706433]"} {
		if err := d.AddRoute(p); !errors.Is(err, unix.ENETDOWN) {
			t.Errorf("AddRoute: %v", err)
		}
		if got := fallbacks(t); got != want {
			t.Errorf("fallback routes %s, want %s", got, want)
		}
		if _, err := d.putFallback(p); err != nil {
			t.Fatal(err)
		}
	}
}

// Routes that the user wrote for the same purpose are no obstacle.
func TestOverlapOfRefusing(t *testing.T) {
	enterNamespace(t)
	d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24", "fd99::1/64")})
	ipCommand(t, "route add unreachable 10.2.0.0/24 metric 100", "route add blackhole 10.3.0.0/24", "route add unreachable 10.4.0.128/25 metric 100",
		"-6 route add unreachable fd02::/64 metric 2000", "-6 route add unreachable fd03::/64 metric 1000")
	for p, want := range map[string]bool{"10.2.0.0/24": true, "10.3.0.0/24": false, "10.4.0.0/24": false, "fd02::/64": true, "fd03::/64": false} {
		var overlap *OverlapError
		if err := d.AddRoute(netip.MustParsePrefix(p)); (err == nil) != want || err != nil && !errors.As(err, &overlap) {
			t.Errorf("%s: %v", p, err)
		}
	}
}
