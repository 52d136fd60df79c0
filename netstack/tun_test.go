package netstack

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// enterNamespace gives the test a network namespace of its own. It binds the
// test's goroutine to its thread, and the namespace ends with it.
func enterNamespace(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(tunDriver); err != nil {
		t.Skipf("needs a TUN driver: %v", err)
	}
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("needs root for a network namespace: %v", err)
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func openTestTUN(t *testing.T, cfg TUNConfig) *TUN {
	t.Helper()
	d, err := OpenTUN(cfg)
	if errors.Is(err, ErrPermission) || errors.Is(err, ErrNoTUN) {
		t.Skipf("needs CAP_NET_ADMIN and /dev/net/tun for a TUN device: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// setSysctl sets a sysctl of the test's namespace.
func setSysctl(t *testing.T, name, value string) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil {
		t.Skipf("needs to set net/%s in a namespace: %v", name, err)
	}
}

func TestOpenTUN(t *testing.T) {
	noLeaks(t)
	enterNamespace(t)
	d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24", "fd99::1/64"), MTU: 1400, Offload: true})
	if d.Name() != "sheaf0" || d.mtu != 1400 || d.BatchSize() < 2 {
		t.Errorf("name %s, MTU %d, batches of %d", d.Name(), d.mtu, d.BatchSize())
	}
	link, err := netlink.LinkByName("sheaf0")
	if err != nil {
		t.Fatal(err)
	}
	if a := link.Attrs(); a.MTU != 1400 || a.Flags&net.FlagUp == 0 || a.TxQLen != queueLength {
		t.Errorf("MTU %d, flags %s, a queue of %d", a.MTU, a.Flags, a.TxQLen)
	}
	var have []string
	addresses, _ := netlink.AddrList(link, netlink.FAMILY_ALL)
	for _, a := range addresses {
		have = append(have, a.IPNet.String())
	}
	if !slices.Equal(have, []string{"10.99.0.1/24", "fd99::1/64"}) {
		t.Errorf("addresses %v", have)
	}
	for _, p := range prefixes("10.2.0.0/24", "10.3.0.0/16", "fd02::/64") {
		if err := d.AddRoute(p); err != nil {
			t.Error(err)
		}
	}
	if err := d.DelRoute(netip.MustParsePrefix("10.3.0.0/16")); err != nil {
		t.Error(err)
	}
	if got := fmt.Sprint(d.Routes()); got != "[10.2.0.0/24 fd02::/64]" {
		t.Errorf("Routes: %s", got)
	}
	if got := kernelRoutes(t, link); got != "10.2.0.0/24 10.99.0.0/24 fd02::/64 fd99::/64" {
		t.Errorf("the kernel's routes: %s", got)
	}
	second := openTestTUN(t, TUNConfig{})
	if second.Name() != "sheaf1" || second.BatchSize() != 1 || second.mtu != DefaultMTU {
		t.Errorf("second device: %s, batches of %d, MTU %d", second.Name(), second.BatchSize(), second.mtu)
	}
	for _, d := range []*TUN{d, second} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Errorf("again: %v", err)
		}
		if err := d.AddRoute(netip.MustParsePrefix("10.4.0.0/24")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("AddRoute after Close: %v", err)
		}
		if err := d.Write([][]byte{testSegment{}.bytes()}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Write after Close: %v", err)
		}
	}
	links, _ := netlink.LinkList()
	routes, _ := netlink.RouteList(nil, netlink.FAMILY_ALL)
	if len(links) != 1 || len(routes) != 0 {
		t.Errorf("left behind: %d devices, routes %v", len(links)-1, routes)
	}
}

// kernelRoutes lists the routes of a device, without those that IPv6 makes for
// every device.
func kernelRoutes(t *testing.T, link netlink.Link) string {
	t.Helper()
	routes, err := netlink.RouteList(link, netlink.FAMILY_ALL)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, r := range routes {
		if p := r.Dst.String(); !strings.HasPrefix(p, "ff00:") && !strings.HasPrefix(p, "fe80:") {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestOpenTUNErrors(t *testing.T) {
	noLeaks(t)
	enterNamespace(t)
	openTestTUN(t, TUNConfig{Name: "first", Addresses: prefixes("10.99.0.1/24")})
	tests := []struct {
		name string
		cfg  TUNConfig
		want error
		says string
	}{
		{"name in use", TUNConfig{Name: "first"}, ErrInUse, "choose another name"},
		{"name of another device", TUNConfig{Name: "lo"}, ErrInUse, "choose another name"},
		{"name long", TUNConfig{Name: "sixteen-letters-"}, ErrName, "at most 15"},
		{"name odd", TUNConfig{Name: "a/b"}, ErrName, "at most 15"},
		{"name a pattern", TUNConfig{Name: "x%d"}, ErrName, "at most 15"},
		{"MTU small", TUNConfig{MTU: 575}, ErrMTU, "give 576 to 65535 bytes"},
		{"MTU large", TUNConfig{MTU: 65536}, ErrMTU, "give 576 to 65535 bytes"},
		{"MTU for IPv6", TUNConfig{MTU: 1279, Addresses: prefixes("fd99::1/64")}, ErrMTU, "give 1280 to 65535 bytes, as IPv6"},
		{"address in use", TUNConfig{Addresses: prefixes("10.99.0.1/16")}, ErrInUse, "by device first"},
		{"address twice", TUNConfig{Addresses: prefixes("10.98.0.1/16", "10.98.0.1/16")}, ErrAddress, "remove one"},
		{"address of a group", TUNConfig{Addresses: prefixes("224.0.0.1/24")}, ErrAddress, "like 10.99.0.1/24"},
		{"no address", TUNConfig{Addresses: make([]netip.Prefix, 1)}, ErrAddress, "like 10.99.0.1/24"},
	}
	for _, tt := range tests {
		_, err := OpenTUN(tt.cfg)
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v; want %v, saying %q", tt.name, err, tt.want, tt.says)
		}
	}
	var overlap *OverlapError
	if _, err := OpenTUN(TUNConfig{Addresses: prefixes("10.99.0.2/24")}); !errors.As(err, &overlap) || overlap.Device != "first" {
		t.Errorf("same subnet: %v", err)
	}
	if links, _ := netlink.LinkList(); len(links) != 2 {
		t.Errorf("%d devices left behind", len(links)-2)
	}
}

func TestOpenTUNWithoutIPv6(t *testing.T) {
	enterNamespace(t)
	setSysctl(t, "ipv6/conf/default/disable_ipv6", "1")
	_, err := OpenTUN(TUNConfig{Addresses: prefixes("fd99::1/64")})
	if !errors.Is(err, ErrNoIPv6) || !strings.Contains(err.Error(), "disable_ipv6 to 0") {
		t.Error(err)
	}
	openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24")})
}

// Capabilities belong to the thread, and the thread ends with the test.
func TestOpenTUNNotPermitted(t *testing.T) {
	enterNamespace(t)
	caps := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&caps, &new([2]unix.CapUserData)[0]); err != nil {
		t.Skipf("needs to give up its capabilities: %v", err)
	}
	_, err := OpenTUN(TUNConfig{})
	if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "CAP_NET_ADMIN") {
		t.Error(err)
	}
}

func TestOverlap(t *testing.T) {
	noLeaks(t)
	enterNamespace(t)
	other := openTestTUN(t, TUNConfig{Name: "other", Addresses: prefixes("10.5.0.1/24", "fd05::1/64")})
	for _, p := range prefixes("0.0.0.0/0", "10.6.0.0/16") {
		if err := other.AddRoute(p); err != nil {
			t.Fatal(err)
		}
	}
	d := openTestTUN(t, TUNConfig{Addresses: prefixes("10.99.0.1/24")})
	tests := []struct{ add, other string }{
		{"10.5.0.0/24", "10.5.0.0/24"},
		{"10.4.0.0/14", "10.5.0.0/24"},
		{"10.6.0.0/16", "10.6.0.0/16"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"fd05::/48", "fd05::/64"},
		{"10.6.7.0/24", ""}, // inside: the longer one wins
		{"10.5.0.128/25", ""},
		{"10.2.0.0/24", ""},
		{"fd02::/64", ""},
		{"::/0", ""},
	}
	for _, tt := range tests {
		err := d.AddRoute(netip.MustParsePrefix(tt.add))
		var overlap *OverlapError
		switch {
		case tt.other == "" && err != nil:
			t.Errorf("%s: %v", tt.add, err)
		case tt.other != "" && (!errors.As(err, &overlap) || overlap.Other.String() != tt.other || overlap.Device != "other"):
			t.Errorf("%s: %v; want it to name %s of other", tt.add, err, tt.other)
		}
	}
	if err := d.AddRoute(netip.MustParsePrefix("10.2.0.0/24")); err == nil || !strings.Contains(err.Error(), d.Name()) {
		t.Errorf("twice: %v", err)
	}
	if err := d.AddRoute(netip.MustParsePrefix("10.2.0.1/24")); !errors.Is(err, ErrAddress) || !strings.Contains(err.Error(), "10.2.0.0/24") {
		t.Errorf("host bits: %v", err)
	}
	if err := d.DelRoute(netip.MustParsePrefix("10.77.0.0/24")); !errors.Is(err, ErrNoRoute) {
		t.Errorf("no such route: %v", err)
	}
}
