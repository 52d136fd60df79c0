package firsthop

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func nth(i int) netip.Addr { return netip.MustParseAddr(fmt.Sprintf("fd01::1:%x", i)) }

// dad returns the frame in which a guest probes for an address: RFC 4862 section 5.4.2.
func dad(mac [6]byte, a netip.Addr) []byte {
	hex := fmt.Sprintf("%x", a.AsSlice())
	group, to := solicitedNode(hex)
	return set6(ipFrame(mac, icmp6(255, hexZero, group, ns(hex))), unhex(to))
}

// An IPv6 address that a guest makes is its own as soon as it probes for it, or sends from it,
// and nobody else's then: who comes second is told.
func TestClaim(t *testing.T) {
	for name, claim := range map[string]func(mac [6]byte, a netip.Addr) []byte{
		"by a probe": dad,
		"by sending": func(mac [6]byte, a netip.Addr) []byte { return ipFrame(mac, udp(a, far6, 0)) },
		"by telling": func(mac [6]byte, a netip.Addr) []byte {
			hex := fmt.Sprintf("%x", a.AsSlice())
			return ipFrame(mac, icmp6(255, "fe800000000000000000000000000077", hexNodes, na("20", hex)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, Config{}, func(l *lab) {
				a, b := l.plug("a", PortConfig{MAC: macA[:]}), l.plug("b", PortConfig{MAC: macB[:]})
				a.send(claim(macA, nth(1)))
				synctest.Wait()
				if got := l.addresses("a"); got != "fd01::5054:ff:fe12:340a fd01::1:1" || len(a.take()) != 0 {
					t.Errorf("a has %s", got)
				}
				l.left()
				b.send(dad(macB, nth(1)))
				synctest.Wait()
				hex := fmt.Sprintf("%x", nth(1).AsSlice())
				want := unhex(nodesMAC + sheaf + "86dd" + fmt.Sprintf("%x", icmp6(255, hex, hexNodes, na("a0", hex, ourTLLA))))
				if got := only(t, b.take()); !bytes.Equal(got, want) {
					t.Errorf("b is told %x", got)
				}
				if d := l.changed("b", func() { b.send(ipFrame(macB, udp(nth(1), far6, 0))) }); d != "spoofed.ipv6=1" {
					t.Errorf("b sends from it: %s", d)
				}
				if err := l.Unplug("a"); err != nil {
					t.Fatal(err)
				}
				if d := l.changed("b", func() { b.send(ipFrame(macB, udp(nth(1), far6, 0))) }); d != "passed=1" {
					t.Errorf("b, when a has gone: %s", d)
				}
			})
		})
	}
}

// The address that follows from a MAC address is kept for its port, from when it is known,
// by configuration or not.
func TestAutoconfiguredAddressIsKept(t *testing.T) {
	a, b := netip.MustParseAddr("fd01::5054:ff:fe12:340a"), netip.MustParseAddr("fd01::5054:ff:fe12:340b")
	inLab(t, Config{}, func(l *lab) {
		l.plug("a", PortConfig{MAC: macA[:]})
		w := l.plug("b", PortConfig{})
		if d := l.changed("b", func() { w.send(ipFrame(macB, udp(a, far6, 0)), ipFrame(macB, udp(b, far6, 0))) }); d != "passed=1 spoofed.ipv6=1" {
			t.Error(d)
		}
		if got := l.addresses("b"); got != b.String() {
			t.Errorf("b has %s", got)
		}
		c := l.plug("c", PortConfig{})
		c.send(ipFrame(macB2, udp(nth(1), far6, 0)))
		for i := range 2 * maxClaims { // it claims others, and keeps it
			c.send(ipFrame(macB2, udp(nth(i), far6, 0)))
			time.Sleep(claimEvery)
		}
		if got := l.addresses("c"); !strings.HasPrefix(got, "fd01::5054:ff:fe12:341b ") || strings.Count(got, " ") != maxClaims {
			t.Errorf("c has %s", got)
		}
	})
}

// As many addresses as a guest may claim, at once and then one a second; the oldest goes for
// one more.
func TestMostClaims(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		a := l.plug("a", PortConfig{MAC: macA[:]})
		send := func(i int) string {
			return l.changed("a", func() { a.send(ipFrame(macA, udp(nth(i), far6, 0))) })
		}
		for i := range maxClaims {
			if d := send(i); d != "passed=1" {
				t.Errorf("address %d: %s", i, d)
			}
		}
		if d := send(maxClaims); d != "spoofed.ipv6=1" {
			t.Errorf("one more at once: %s", d)
		}
		time.Sleep(claimEvery)
		if d := send(maxClaims); d != "passed=1" {
			t.Errorf("one more a second later: %s", d)
		}
		if d := send(0); d != "spoofed.ipv6=1" {
			t.Errorf("the oldest: %s", d)
		}
		if _, ok := l.Name(nth(0)); ok || strings.Count(l.addresses("a"), " ") != maxClaims {
			t.Errorf("it has %s", l.addresses("a"))
		}
		for i := 1; i <= maxClaims; i++ {
			if d := send(i); d != "passed=1" {
				t.Errorf("address %d after that: %s", i, d)
			}
		}
	})
}

// Link-local addresses are on the guest's own link: two guests may have the same one.
func TestLinkLocalIsOfEachLink(t *testing.T) {
	inLab(t, Config{Between: true}, func(l *lab) {
		a, b := l.two()
		a.send(dad(macA, netip.MustParseAddr("fe80::77")))
		b.send(dad(macB, netip.MustParseAddr("fe80::77")))
		synctest.Wait()
		if len(a.take())+len(b.take()) != 0 {
			t.Error("a conflict")
		}
		ping := icmp6(64, "fe800000000000000000000000000077", hexLocal, "80000000 00070001")
		b.send(ipFrame(macB, ping))
		synctest.Wait()
		if len(a.take()) != 0 || len(b.take()) != 1 {
			t.Error("the answer went elsewhere")
		}
	})
}
