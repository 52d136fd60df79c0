package firsthop

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

func discover(mac [6]byte, requested string) dhcpMessage {
	return dhcpMessage{kind: dhcpv4.MessageTypeDiscover, mac: mac, requested: requested}
}

// A leased address is the guest's from the offer on: others may not have it, and it may send
// from no other.
func TestLease(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		a, b := l.plug("a", PortConfig{MAC: macA[:]}), l.plug("b", PortConfig{MAC: macB[:]})
		if got := l.dhcp("a", discover(macA, "10.1.0.11")); got != "OFFER 10.1.0.11 to 10.1.0.11" {
			t.Fatal(got)
		}
		if d := l.changed("a", func() { a.send(ipFrame(macA, udp(a4, far4, 0)), ipFrame(macA, udp(b4, far4, 0))) }); d != "passed=1 spoofed.ipv4=1" {
			t.Errorf("a: %s", d)
		}
		if d := l.changed("b", func() { b.send(ipFrame(macB, udp(a4, far4, 0))) }); d != "spoofed.ipv4=1" {
			t.Errorf("b: %s", d)
		}
		if got := l.dhcp("b", discover(macB, "10.1.0.11")); got == "" || strings.Contains(got, "10.1.0.11 ") {
			t.Errorf("b is offered a's: %s", got)
		}
		if name, _ := l.Name(a4); name != "a" {
			t.Errorf("it is %q's", name)
		}
		// It is released, and b gets it in its turn.
		l.dhcp("a", dhcpMessage{kind: dhcpv4.MessageTypeRelease, mac: macA, client: "10.1.0.11", server: "10.1.0.1"})
		l.dhcp("b", dhcpMessage{kind: dhcpv4.MessageTypeRelease, mac: macB, client: strings.Fields(l.addresses("b"))[0], server: "10.1.0.1"})
		if got := l.dhcp("b", discover(macB, "10.1.0.11")); got != "OFFER 10.1.0.11 to 10.1.0.11" {
			t.Errorf("after a released it: %s", got)
		}
		// a would go on with it, and is told that it may not.
		if got := l.dhcp("a", dhcpMessage{kind: dhcpv4.MessageTypeRequest, mac: macA, requested: "10.1.0.11"}); got != "NAK 0.0.0.0 to 255.255.255.255 broadcast" {
			t.Errorf("a, after a boot: %s", got)
		}
	})
}

// The same name gets the same address after a restart of the gateway, without anything kept,
// and another one in the same place.
func TestLeaseFollowsFromTheName(t *testing.T) {
	var first string
	for i := range 3 {
		inLab(t, Config{}, func(l *lab) {
			l.plug("a", PortConfig{MAC: macA[:]})
			got := l.dhcp("a", discover(macA, ""))
			if first == "" {
				first = got
			}
			if got != first || got == "" {
				t.Errorf("run %d: %s, not %s", i, got, first)
			}
		})
	}
}

// What an unplugged port had is kept for its name while others do not need it.
func TestLeaseIsKeptByName(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		l.plug("a", PortConfig{MAC: macA[:]})
		l.dhcp("a", discover(macA, "10.1.0.77"))
		if err := l.Unplug("a"); err != nil {
			t.Fatal(err)
		}
		l.plug("b", PortConfig{MAC: macB[:]})
		if got := l.dhcp("b", discover(macB, "10.1.0.77")); got == "" || strings.Contains(got, "10.1.0.77") {
			t.Errorf("b asks for it: %s", got)
		}
		l.plug("a", PortConfig{MAC: macA[:]})
		if got := l.dhcp("a", discover(macA, "")); got != "OFFER 10.1.0.77 to 10.1.0.77" {
			t.Errorf("a again: %s", got)
		}
	})
}

// A prefix with room for five guests beside the router: six of them, and one that goes.
func TestLeasesFull(t *testing.T) {
	inLab(t, Config{Addresses: []netip.Prefix{netip.MustParsePrefix("10.1.0.1/29")}}, func(l *lab) {
		seen := make(map[string]bool)
		mac := func(i int) [6]byte { return [6]byte{0x52, 0x54, 0, 0, 0, byte(i)} }
		for i := range 5 {
			m := mac(i)
			l.plug(fmt.Sprint(i), PortConfig{MAC: m[:]})
			got := l.dhcp(fmt.Sprint(i), discover(mac(i), ""))
			if !strings.HasPrefix(got, "OFFER 10.1.0.") || seen[got] {
				t.Errorf("guest %d: %q, after %v", i, got, seen)
			}
			seen[got] = true
		}
		for _, never := range []string{"10.1.0.0 ", "10.1.0.1 ", "10.1.0.7 "} {
			for got := range seen {
				if strings.HasPrefix(got, "OFFER "+never) {
					t.Errorf("%s", got)
				}
			}
		}
		m := mac(5)
		w := l.plug("5", PortConfig{MAC: m[:]})
		if d := l.changed("5", func() { w.send(discover(mac(5), "").frame()) }); d != "unserved=1" || len(w.take()) != 0 {
			t.Errorf("one more: %s", d)
		}
		if err := l.Unplug("3"); err != nil {
			t.Fatal(err)
		}
		had := l.dhcp("5", discover(mac(5), "")) // it is kept for 3, but there is no other
		if !seen[had] {
			t.Errorf("when one has gone: %q", had)
		}
		m = mac(3)
		l.plug("3", PortConfig{MAC: m[:]})
		if got := l.dhcp("3", discover(mac(3), "")); got != "" {
			t.Errorf("it comes back: %q", got)
		}
	})
}

// A declined address is not offered to the same guest again, until it has declined so many;
// others may have it.
func TestDecline(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		l.plug("a", PortConfig{MAC: macA[:]})
		l.plug("b", PortConfig{MAC: macB[:]})
		var all []string
		for range maxDeclined + 1 {
			l.dhcp("a", discover(macA, ""))
			had := strings.Fields(l.addresses("a"))[0]
			for _, before := range all {
				if had == before {
					t.Errorf("%s again, after %v", had, all)
				}
			}
			all = append(all, had)
			l.dhcp("a", dhcpMessage{kind: dhcpv4.MessageTypeDecline, mac: macA, requested: had, server: "10.1.0.1"})
			if got := l.addresses("a"); strings.Contains(got, had) {
				t.Errorf("it has it still: %s", got)
			}
		}
		if got := l.dhcp("a", discover(macA, "")); !strings.HasPrefix(got, "OFFER "+all[0]) {
			t.Errorf("past the bound the first one is offered again, and not %s", got)
		}
		if got := l.dhcp("b", discover(macB, all[1])); !strings.HasPrefix(got, "OFFER "+all[1]) {
			t.Errorf("to another guest: %s", got)
		}
	})
}

// A guest that does not know of a restart of the gateway goes on with its address, one of
// them, if it is nobody's and in the prefix.
func TestAddressIsAdopted(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		a := l.plug("a", PortConfig{MAC: macA[:]})
		l.plug("c", PortConfig{Addresses: []netip.Addr{b4}})
		for _, tt := range []struct{ src, changed string }{
			{"10.9.0.7", "spoofed.ipv4=1"},  // not in the prefix
			{"10.1.0.1", "spoofed.ipv4=1"},  // the router's
			{"10.1.0.12", "spoofed.ipv4=1"}, // c's by configuration
			{"10.1.0.255", "spoofed.ipv4=1"},
			{"10.1.0.77", "passed=1"},
			{"10.1.0.78", "spoofed.ipv4=1"}, // it has one
			{"10.1.0.77", "passed=1"},
		} {
			if d := l.changed("a", func() { a.send(ipFrame(macA, udp(netip.MustParseAddr(tt.src), far4, 0))) }); d != tt.changed {
				t.Errorf("from %s: %s, want %s", tt.src, d, tt.changed)
			}
		}
		if got := l.dhcp("a", dhcpMessage{kind: dhcpv4.MessageTypeRequest, mac: macA, client: "10.1.0.77"}); got != "ACK 10.1.0.77 to 10.1.0.77" {
			t.Errorf("it renews: %s", got)
		}
	})
}

// An address that a configuration gives to another port is taken from who had it.
func TestConfigurationTakesALease(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		a := l.plug("a", PortConfig{MAC: macA[:]})
		derived := netip.MustParseAddr("fd01::5054:ff:fe12:340a")
		claimed := netip.MustParseAddr("fd01::77")
		l.dhcp("a", discover(macA, "10.1.0.11"))
		a.send(ipFrame(macA, udp(claimed, far6, 0)))
		synctest.Wait()
		if got := l.addresses("a"); got != "10.1.0.11 fd01::5054:ff:fe12:340a fd01::77" {
			t.Fatal(got)
		}
		l.plug("b", PortConfig{MAC: macB[:], Addresses: []netip.Addr{a4, derived, claimed}})
		if got := l.addresses("a"); got != "" {
			t.Errorf("it has %s", got)
		}
		for _, src := range []netip.Addr{a4, derived, claimed} {
			if name, _ := l.Name(src); name != "b" {
				t.Errorf("%v is %q's", src, name)
			}
		}
		if d := l.changed("a", func() { a.send(ipFrame(macA, udp(a4, far4, 0)), ipFrame(macA, udp(claimed, far6, 0))) }); d != "spoofed.ipv4=1 spoofed.ipv6=1" {
			t.Errorf("it sends: %s", d)
		}
		if got := l.dhcp("a", dhcpMessage{kind: dhcpv4.MessageTypeRequest, mac: macA, client: "10.1.0.11"}); got != "NAK 0.0.0.0 to 255.255.255.255 broadcast" {
			t.Errorf("it renews: %s", got)
		}
	})
}
