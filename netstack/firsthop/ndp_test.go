package firsthop

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"sheaf/parsers/ip"
)

// Addresses as they are in packets.
const (
	hexA      = "fd010000000000000000000000000011"
	hexB      = "fd010000000000000000000000000012"
	hexNobody = "fd010000000000000000000000000099"
	hexALocal = "fe80000000000000505400fffe12340a"
	hexRouter = "fd010000000000000000000000000001"
	hexLocal  = "fe800000000000000000000000000001"
	hexNodes  = "ff020000000000000000000000000001"
	hexRtrs   = "ff020000000000000000000000000002"
	hexZero   = "00000000000000000000000000000000"
	nodesMAC  = "333300000001 "
)

// icmp6 returns an IPv6 packet with a message, whose checksum is filled in.
func icmp6(hop byte, src, dst, message string) []byte {
	m := unhex(message)
	p := unhex("60000000 0000 3a 00" + src + dst)
	binary.BigEndian.PutUint16(p[4:], uint16(len(m)))
	p[7] = hop
	p = append(p, m...)
	var h ip.Header
	if err := h.Parse(p); err != nil {
		panic(err)
	}
	binary.BigEndian.PutUint16(p[42:], ^checksum.Checksum(p[40:], pseudoHeader(&h, len(m))))
	return p
}

func ns(target string, options ...string) string {
	return "87000000 00000000" + target + strings.Join(options, "")
}

func na(flags, target string, options ...string) string {
	return "88000000" + flags + "000000" + target + strings.Join(options, "")
}

const (
	slla    = "0101" + fromA
	slla2   = "0101 525400123463"
	tlla    = "0201" + fromA
	ourTLLA = "0201" + sheaf
)

// solicitedNode returns the group in which an address is asked for, and its MAC address.
func solicitedNode(target string) (group, mac string) {
	return "ff0200000000000000000001ff" + target[26:], "3333ff" + target[26:]
}

func TestNDP(t *testing.T) {
	ask := func(src, target string, options ...string) string {
		group, mac := solicitedNode(target)
		return mac + fromA + "86dd" + fmt.Sprintf("%x", icmp6(255, src, group, ns(target, options...)))
	}
	to := func(mac string, p []byte) string { return mac + fromA + "86dd" + fmt.Sprintf("%x", p) }
	answer := func(src, dst, message string) string {
		return fromA + sheaf + "86dd" + fmt.Sprintf("%x", icmp6(255, src, dst, message))
	}
	conflict := func(target string) string {
		return nodesMAC + sheaf + "86dd" + fmt.Sprintf("%x", icmp6(255, target, hexNodes, na("a0", target, ourTLLA)))
	}
	wrong := icmp6(255, hexA, hexRouter, ns(hexRouter, slla))
	wrong[42] ^= 1
	fragmented := slices.Concat(unhex("60000000 0028 2c ff"+hexA+hexRouter+"3a00000100000001"), icmp6(255, hexA, hexRouter, ns(hexRouter, slla))[40:])
	for _, tt := range []struct{ name, frame, answer, changed string }{
		{"for the router", ask(hexA, hexRouter, slla), answer(hexRouter, hexA, na("e0", hexRouter, ourTLLA)), "answered=1"},
		{"for its link-local address", ask(hexA, hexLocal, slla), answer(hexLocal, hexA, na("e0", hexLocal, ourTLLA)), "answered=1"},
		{"from a link-local address", ask(hexALocal, hexLocal, slla), answer(hexLocal, hexALocal, na("e0", hexLocal, ourTLLA)), "answered=1"},
		{"unicast, is it still there", to(sheaf, icmp6(255, hexA, hexRouter, ns(hexRouter))), answer(hexRouter, hexA, na("e0", hexRouter, ourTLLA)), "answered=1"},
		{"for another guest", ask(hexA, hexB, slla), answer(hexB, hexA, na("c0", hexB, ourTLLA)), "answered=1"},
		{"unicast for another guest", to(sheaf, icmp6(255, hexA, hexB, ns(hexB))), answer(hexB, hexA, na("c0", hexB, ourTLLA)), "answered=1"},
		{"for nobody in the prefix", ask(hexA, hexNobody, slla), answer(hexNobody, hexA, na("c0", hexNobody, ourTLLA)), "answered=1"},
		{"for its own", ask(hexA, hexA, slla), "", ""},
		{"for its own link-local", ask(hexA, hexALocal, slla), "", ""},
		{"outside of the prefix", ask(hexA, "fd020000000000000000000000000010", slla), "", ""},

		{"probe for its own", ask(hexZero, hexA), "", ""},
		{"probe for its link-local", ask(hexZero, hexALocal), "", ""},
		{"probe for the router's link-local", ask(hexZero, hexLocal), conflict(hexLocal), "answered=1"},
		{"probe for the router's", ask(hexZero, hexRouter), conflict(hexRouter), "answered=1"},
		{"probe for another guest's", ask(hexZero, hexB), conflict(hexB), "answered=1"},
		{"probe for nobody's, which it may not have", ask(hexZero, hexNobody), conflict(hexNobody), "answered=1"},

		{"it tells of itself", to(nodesMAC, icmp6(255, hexA, hexNodes, na("20", hexA, tlla))), "", ""},
		{"it answers", to(sheaf, icmp6(255, hexALocal, hexRouter, na("60", hexA, tlla))), "", ""},

		{"from another's address", ask(hexB, hexRouter, slla), "", "spoofed.ndp=1"},
		{"from the router's link-local", ask(hexLocal, hexRouter, slla), "", "spoofed.ndp=1"},
		{"from elsewhere", ask("fd020000000000000000000000000010", hexRouter, slla), "", "spoofed.ndp=1"},
		{"another MAC address inside", ask(hexA, hexRouter, slla2), "", "spoofed.ndp=1"},
		{"it tells of another", to(nodesMAC, icmp6(255, hexA, hexNodes, na("20", hexB, tlla))), "", "spoofed.ndp=1"},
		{"it tells of the router", to(nodesMAC, icmp6(255, hexALocal, hexNodes, na("20", hexLocal, tlla))), "", "spoofed.ndp=1"},
		{"it tells of another MAC address", to(nodesMAC, icmp6(255, hexA, hexNodes, na("20", hexA, "0201 525400123463"))), "", "spoofed.ndp=1"},
		{"it poses as a router", to(nodesMAC, icmp6(255, hexALocal, hexNodes, "86000000 40 00 0708 00000000 00000000")), "", "spoofed.ndp=1"},
		{"it redirects", to(sheaf, icmp6(255, hexALocal, hexB, "89000000 00000000"+hexB+hexA)), "", "spoofed.ndp=1"},

		{"a router has passed it on", to(sheaf, icmp6(254, hexA, hexRouter, ns(hexRouter, slla))), "", "malformed=1"},
		{"checksum", to(sheaf, wrong), "", "malformed=1"},
		{"code", to(sheaf, icmp6(255, hexA, hexRouter, "8701"+ns(hexRouter)[4:])), "", "malformed=1"},
		{"too short", to(sheaf, icmp6(255, hexA, hexRouter, ns(hexRouter[:30]))), "", "malformed=1"},
		{"an option of no length", to(sheaf, icmp6(255, hexA, hexRouter, ns(hexRouter, "0100000000000000"))), "", "malformed=1"},
		{"multicast target", to(sheaf, icmp6(255, hexA, hexRouter, ns(hexNodes))), "", "malformed=1"},
		{"fragmented", to(sheaf, fragmented), "", "malformed=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inLab(t, Config{}, func(l *lab) {
				a, b := l.two()
				if d := l.changed("a", func() { a.send(unhex(tt.frame)) }); d != tt.changed {
					t.Errorf("changed %q, want %q", d, tt.changed)
				}
				if got := only(t, a.take()); !bytes.Equal(got, unhex(tt.answer)) {
					t.Errorf("answer\n%x, want\n%x", got, unhex(tt.answer))
				}
				if other := b.take(); len(other) != 0 || len(l.left()) != 0 {
					t.Errorf("others heard of it: %x", other)
				}
			})
		})
	}
}

// advertisement returns the frame in which the router tells of itself, whose checksum is
// written out.
func advertisement(mac, dst, sum, flags string, options ...string) []byte {
	tail := strings.Join(options, "")
	length := fmt.Sprintf("%04x", 16+8+8+32+len(strings.Join(strings.Fields(tail), ""))/2)
	return unhex(mac + sheaf + "86dd" + "60000000" + length + "3aff" + hexLocal + dst +
		"8600" + sum + "40 00 0708 00000000 00000000" + // hop limit 64, neither M nor O, 1800 s
		"0101" + sheaf + "0501 0000 000005dc" +
		"0304 40" + flags + "00015180 00003840 00000000 fd010000000000000000000000000000" + tail)
}

func TestRouterAdvertisement(t *testing.T) {
	resolver := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53")}
	solicit := func(src string) []byte {
		return unhex("333300000002" + fromA + "86dd" + fmt.Sprintf("%x", icmp6(255, src, hexRtrs, "85000000 00000000")))
	}
	for _, tt := range []struct {
		name  string
		cfg   Config
		port  PortConfig
		frame []byte
		want  []byte
	}{
		{"claims its addresses", Config{}, PortConfig{MAC: macA[:]}, solicit(hexALocal), advertisement(fromA, hexALocal, "0fe5", "40")},
		{"has no address yet", Config{}, PortConfig{MAC: macA[:]}, solicit(hexZero), advertisement(nodesMAC, hexNodes, "92d2", "40")},
		{"has its address by configuration", Config{}, PortConfig{MAC: macA[:], Addresses: testGuest}, solicit(hexALocal), advertisement(fromA, hexALocal, "1025", "00")},
		{"has that which it would make", Config{}, PortConfig{MAC: macA[:], Addresses: []netip.Addr{netip.MustParseAddr("fd01::5054:ff:fe12:340a")}}, solicit(hexALocal), advertisement(fromA, hexALocal, "0fe5", "40")},
		{"with DNS", Config{DNS: resolver}, PortConfig{MAC: macA[:]}, solicit(hexALocal), advertisement(fromA, hexALocal, "f2be", "40", "1903 0000 00000708"+hexRouter)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inLab(t, tt.cfg, func(l *lab) {
				a := l.plug("a", tt.port)
				a.send(tt.frame)
				synctest.Wait()
				if got := only(t, a.take()); !bytes.Equal(got, tt.want) {
					t.Errorf("\n%x, want\n%x", got, tt.want)
				}
			})
		})
	}
}

// Hosts cannot make addresses in a prefix that is not of 64 bits.
func TestRouterAdvertisementOfShortPrefix(t *testing.T) {
	inLab(t, Config{Addresses: []netip.Prefix{netip.MustParsePrefix("fd01::1/80")}}, func(l *lab) {
		a := l.plug("a", PortConfig{MAC: macA[:]})
		a.send(unhex("333300000002" + fromA + "86dd" + fmt.Sprintf("%x", icmp6(255, hexALocal, hexRtrs, "85000000 00000000"))))
		synctest.Wait()
		got := only(t, a.take())
		if at := headLen + 40 + 32; len(got) < at+32 || got[at] != 3 || got[at+2] != 80 || got[at+3] != 0 {
			t.Errorf("%x", got)
		}
		if d := l.changed("a", func() { a.send(ipFrame(macA, udp(netip.MustParseAddr("fd01::7"), far6, 0))) }); d != "spoofed.ipv6=1" {
			t.Errorf("an address that it took: %s", d)
		}
	})
}

// A port that is new is told, and all are told again before what they know runs out, whether
// their MAC address is known or not.
func TestRouterAdvertisesByItself(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		w := newWire()
		if err := l.Plug("a", w, PortConfig{}); err != nil {
			t.Fatal(err)
		}
		want := advertisement(nodesMAC, hexNodes, "92d2", "40")
		for i := range 4 {
			synctest.Wait()
			if got := only(t, w.take()); !bytes.Equal(got, want) {
				t.Errorf("number %d: %x, want %x", i, got, want)
			}
			time.Sleep(advertiseEvery - time.Second)
			synctest.Wait()
			if n := len(w.take()); n != 0 {
				t.Errorf("%d too early", n)
			}
			time.Sleep(time.Second)
		}
	})
	if 3*advertiseEvery > routerLifetime || routerLifetime > 9000*time.Second { // RFC 4861 section 6.2.1
		t.Error("lifetimes")
	}
}

// Without an IPv6 address there is no router for IPv6.
func TestNoIPv6(t *testing.T) {
	inLab(t, Config{Addresses: testPrefixes[:1]}, func(l *lab) {
		a := l.plug("a", PortConfig{MAC: macA[:]})
		for _, tt := range []struct{ frame, changed string }{
			{"333300000002" + fromA + "86dd" + fmt.Sprintf("%x", icmp6(255, hexALocal, hexRtrs, "85000000 00000000")), "unserved=1"},
			{sheaf + fromA + "86dd" + fmt.Sprintf("%x", icmp6(64, hexA, hexRouter, "80000000 00000000")), "spoofed.ipv6=1"},
			{sheaf + fromA + "86dd" + fmt.Sprintf("%x", icmp6(64, hexALocal, hexLocal, "80000000 00000000")), "local=1"},
		} {
			if d := l.changed("a", func() { a.send(unhex(tt.frame)) }); d != tt.changed || len(a.take()) != 0 {
				t.Errorf("%s: %s", tt.frame, d)
			}
		}
	})
}
