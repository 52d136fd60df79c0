package firsthop

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sheaf/netstack"
	"sheaf/parsers/ip"
)

// packet6 returns an IPv6 packet of a next header and what follows.
func packet6(src, dst netip.Addr, next byte, rest ...byte) []byte {
	p := slices.Concat([]byte{0x60, 0, 0, 0, 0, 0, next, 64}, src.AsSlice(), dst.AsSlice(), rest)
	binary.BigEndian.PutUint16(p[4:], uint16(len(rest)))
	return p
}

// packet4 returns an IPv4 packet of a protocol with the fragment fields and options.
func packet4(src, dst netip.Addr, proto byte, fields uint16, options []byte, rest ...byte) []byte {
	p := slices.Concat([]byte{0x40 | byte(5+len(options)/4), 0, 0, 0, 0, 7, byte(fields >> 8), byte(fields), 64, proto, 0, 0}, src.AsSlice(), dst.AsSlice(), options, rest)
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	return p
}

// Packets of a guest to elsewhere leave to the last byte as they are in the frame, whatever
// follows their addresses.
func TestPacketsLeave(t *testing.T) {
	ports := []byte{0x9c, 0x40, 0x07, 0x5b, 0, 12, 0, 0, 1, 2, 3, 4}
	ext := []byte{17, 0, 1, 4, 0, 0, 0, 0}
	for name, p := range map[string][]byte{
		"UDP":                     udp(a4, far4, 10),
		"UDP over IPv6":           udp(a6, far6, 10),
		"as long as the MTU":      udp(a4, far4, 1500-28),
		"as long, IPv6":           udp(a6, far6, 1500-48),
		"options":                 packet4(a4, far4, 17, 0, []byte{0x94, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 0}, ports...),
		"first fragment":          packet4(a4, far4, 17, 0x2000, nil, ports...),
		"later fragment":          packet4(a4, far4, 17, 0x0007, nil, ports...),
		"hop limit 1":             set(packet4(a4, far4, 17, 0, nil, ports...), 8, 1),
		"a protocol of no layout": packet4(a4, far4, 253, 0, nil),
		"wrong checksum":          set(udp(a4, far4, 10), 10, 77),
		"ping":                    packet4(a4, far4, 1, 0, nil, 8, 0, 0, 0, 0, 1, 0, 1),
		"IPv6 ping":               packet6(a6, far6, 58, 128, 0, 0, 0, 0, 1, 0, 1),
		"hop-by-hop":              packet6(a6, far6, 0, append(ext, ports...)...),
		"routing":                 packet6(a6, far6, 43, append(ext, ports...)...),
		"destination options":     packet6(a6, far6, 60, append(ext, ports...)...),
		"IPv6 first fragment":     packet6(a6, far6, 44, append([]byte{17, 0, 0, 1, 0, 0, 0, 9}, ports...)...),
		"IPv6 later fragment":     packet6(a6, far6, 44, append([]byte{58, 0, 0, 9, 0, 0, 0, 9}, 135, 0, 0, 0)...),
		"IPv6 headers cut off":    packet6(a6, far6, 0, 17, 4, 0, 0),
		"no next header":          packet6(a6, far6, 59),
		"to nobody in the prefix": udp(a4, netip.MustParseAddr("10.1.0.99"), 10),
		"IPv6, the same":          udp(a6, netip.MustParseAddr("fd01::99"), 10),
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, Config{}, func(l *lab) {
				a, b := l.two()
				frame := ipFrame(macA, p)
				padded := append(slices.Clone(frame), make([]byte, max(60-len(frame), 4))...)
				for _, f := range [][]byte{frame, padded} {
					if d := l.changed("a", func() { a.send(f) }); d != "passed=1" {
						t.Errorf("changed %q", d)
					}
					if out := only(t, l.left()); !bytes.Equal(out, p) {
						t.Errorf("%x, want %x", out, p)
					}
				}
				if len(a.take()) != 0 || len(b.take()) != 0 {
					t.Error("a guest got something")
				}
			})
		})
	}
}

func set(p []byte, at int, value byte) []byte {
	p[at] = value
	return p
}

// What does not leave is counted for what it is, and only some of it is answered.
func TestGuards(t *testing.T) {
	addr := netip.MustParseAddr
	group := func(mac string, p []byte) []byte { return set6(ipFrame(macA, p), unhex(mac)) }
	igmp := packet4(a4, addr("224.0.0.22"), 2, 0, []byte{0x94, 4, 0, 0}, 0x22, 0, 0, 0)
	mld := packet6(netip.IPv6Unspecified(), addr("ff02::16"), 0, 58, 0, 5, 2, 0, 0, 1, 0, 143, 0, 0, 0, 0, 0, 0, 0)
	long := udp(a4, far4, 100)
	for _, tt := range []struct {
		name     string
		frame    []byte
		changed  string
		answered bool
	}{
		{"another guest's address", ipFrame(macA, udp(b4, far4, 0)), "spoofed.ipv4=1", false},
		{"another guest's IPv6 address", ipFrame(macA, udp(b6, far6, 0)), "spoofed.ipv6=1", false},
		{"the router's address", ipFrame(macA, udp(router4, far4, 0)), "spoofed.ipv4=1", false},
		{"the router's IPv6 address", ipFrame(macA, udp(router6, far6, 0)), "spoofed.ipv6=1", false},
		{"nobody's in the prefix", ipFrame(macA, udp(addr("10.1.0.99"), far4, 0)), "spoofed.ipv4=1", false},
		{"nobody's IPv6 in the prefix", ipFrame(macA, udp(addr("fd01::99"), far6, 0)), "spoofed.ipv6=1", false},
		{"from elsewhere", ipFrame(macA, udp(addr("10.9.0.1"), far4, 0)), "spoofed.ipv4=1", false},
		{"from elsewhere, IPv6", ipFrame(macA, udp(addr("fd09::1"), far6, 0)), "spoofed.ipv6=1", false},
		{"from multicast", ipFrame(macA, udp(addr("224.0.0.1"), far4, 0)), "spoofed.ipv4=1", false},
		{"from broadcast", ipFrame(macA, udp(addr("255.255.255.255"), far4, 0)), "spoofed.ipv4=1", false},
		{"from nobody", ipFrame(macA, udp(netip.IPv4Unspecified(), far4, 0)), "spoofed.ipv4=1", false},
		{"from nobody, IPv6", ipFrame(macA, udp(netip.IPv6Unspecified(), far6, 0)), "spoofed.ipv6=1", false},
		{"from loopback", ipFrame(macA, udp(addr("127.0.0.1"), far4, 0)), "spoofed.ipv4=1", false},
		{"IPv4-mapped", ipFrame(macA, udp(addr("::ffff:10.1.0.11"), far6, 0)), "spoofed.ipv6=1", false},
		{"another's to the router", ipFrame(macA, udp(b4, router4, 0)), "spoofed.ipv4=1", false},
		{"another's to another guest", ipFrame(macA, udp(far4, b4, 0)), "spoofed.ipv4=1", false},
		{"another MAC address", ipFrame(macB, udp(a4, far4, 0)), "spoofed.mac=1", false},
		{"a group's MAC address", ipFrame(broadcast, udp(a4, far4, 0)), "spoofed.mac=1", false},
		{"the router's MAC address", ipFrame(routerMAC, udp(a4, far4, 0)), "spoofed.mac=1", false},

		{"to another guest", ipFrame(macA, udp(a4, b4, 0)), "answered=1 isolated=1", true},
		{"to another guest, IPv6", ipFrame(macA, udp(a6, b6, 0)), "answered=1 isolated=1", true},
		{"to itself", ipFrame(macA, udp(a4, a4, 0)), "local=1", false},
		{"a link-local source", ipFrame(macA, udp(addr("169.254.1.1"), far4, 0)), "local=1", false},
		{"a link-local IPv6 source", ipFrame(macA, udp(aLocal, far6, 0)), "local=1", false},
		{"a link-local source to another guest", ipFrame(macA, udp(aLocal, b6, 0)), "local=1", false},
		{"the router's link-local address", ipFrame(macA, udp(routerLocal, router6, 0)), "local=1", false},
		{"to link-local", ipFrame(macA, udp(a4, addr("169.254.1.1"), 0)), "local=1", false},
		{"to link-local, IPv6", ipFrame(macA, udp(a6, addr("fe80::7"), 0)), "local=1", false},
		{"to loopback", ipFrame(macA, udp(a4, addr("127.0.0.1"), 0)), "local=1", false},
		{"to loopback, IPv6", ipFrame(macA, udp(a6, addr("::1"), 0)), "local=1", false},
		{"to nobody", ipFrame(macA, udp(a4, netip.IPv4Unspecified(), 0)), "local=1", false},
		{"to what is reserved", ipFrame(macA, udp(a4, addr("250.1.1.1"), 0)), "local=1", false},
		{"to an IPv4-mapped address", ipFrame(macA, udp(a6, addr("::ffff:10.2.0.10"), 0)), "local=1", false},

		{"mDNS", group("01005e0000fb", udp(a4, addr("224.0.0.251"), 0)), "group=1", false},
		{"mDNS before it has an address", group("01005e0000fb", udp(addr("169.254.9.9"), addr("224.0.0.251"), 0)), "group=1", false},
		{"mDNS, IPv6", group("3333000000fb", udp(aLocal, addr("ff02::fb"), 0)), "group=1", false},
		{"IGMP", group("01005e000016", igmp), "group=1", false},
		{"MLD from nobody", group("333300000016", mld), "group=1", false},
		{"broadcast", group(toAll, udp(a4, addr("255.255.255.255"), 0)), "group=1", false},
		{"broadcast of the prefix", group(toAll, udp(a4, addr("10.1.0.255"), 0)), "group=1", false},
		{"the network", group(toAll, udp(a4, addr("10.1.0.0"), 0)), "group=1", false},
		{"broadcast to the router's MAC address", ipFrame(macA, udp(a4, addr("10.1.0.255"), 0)), "group=1", false},
		{"it is a DHCP server", group(toAll, datagram(netip.AddrPortFrom(a4, 67), netip.MustParseAddrPort("255.255.255.255:68"), make([]byte, 300))), "group=1", false},
		{"for one host, in a broadcast frame", group(toAll, udp(a4, far4, 0)), "foreign=1", false},
		{"for the router, in a broadcast frame", group(toAll, udp(a4, router4, 0)), "foreign=1", false},
		{"to another MAC address", group("52540012340b", udp(a4, far4, 0)), "foreign=1", false},

		{"VLAN", toRouterFrom(macA, etherVLAN, append([]byte{0, 7, 8, 0}, udp(a4, far4, 0)...)), "vlan=1", false},
		{"VLAN inside VLAN", toRouterFrom(macA, etherQinQ, append([]byte{0, 7, 0x81, 0, 0, 8, 8, 0}, udp(a4, far4, 0)...)), "vlan=1", false},
		{"priority, VLAN 0", toRouterFrom(macA, etherVLAN, append([]byte{0xe0, 0, 8, 0}, udp(a4, far4, 0)...)), "vlan=1", false},
		{"LLDP", frameOf(macA, [6]byte{1, 0x80, 0xc2, 0, 0, 14}, 0x88cc, make([]byte, 46)), "foreign=1", false},
		{"802.3 with a length", frameOf(macA, [6]byte{1, 0x80, 0xc2}, 38, make([]byte, 46)), "foreign=1", false},

		{"no frame", []byte("13 bytes long"), "malformed=1", false},
		{"no packet", toRouterFrom(macA, etherIPv4, nil), "malformed=1", false},
		{"a byte short", ipFrame(macA, long[:len(long)-1]), "malformed=1", false},
		{"IPv6, a byte short", ipFrame(macA, udp(a6, far6, 9)[:40+8+8]), "malformed=1", false},
		{"IPv4 as IPv6", toRouterFrom(macA, etherIPv6, long), "malformed=1", false},
		{"IPv6 as IPv4", toRouterFrom(macA, etherIPv4, udp(a6, far6, 9)), "malformed=1", false},
		{"IPv4 header of 16 bytes", ipFrame(macA, set(udp(a4, far4, 0), 0, 0x44)), "malformed=1", false},
		{"IPv4 header longer than the packet", ipFrame(macA, set(packet4(a4, far4, 253, 0, nil), 0, 0x46)), "malformed=1", false},
		{"IPv4 length within the header", ipFrame(macA, set(udp(a4, far4, 0), 3, 19)), "malformed=1", false},

		{"longer than the MTU", ipFrame(macA, udp(a4, far4, 1501-28)), "answered=1 too_big=1", true},
		{"longer, IPv6", ipFrame(macA, udp(a6, far6, 1501-48)), "answered=1 too_big=1", true},
		{"longer, may be fragmented", ipFrame(macA, set(udp(a4, far4, 1501-28), 6, 0)), "too_big=1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inLab(t, Config{}, func(l *lab) {
				a, b := l.two()
				if d := l.changed("a", func() { a.send(tt.frame) }); d != tt.changed {
					t.Errorf("changed %q, want %q", d, tt.changed)
				}
				if out := l.left(); len(out) != 0 {
					t.Errorf("left: %x", out)
				}
				if got := a.take(); len(got) != 0 != tt.answered || len(got) > 1 {
					t.Errorf("answers: %x", got)
				}
				if d := l.changed("b", func() {}); d != "" || len(b.take()) != 0 {
					t.Errorf("the other guest: %s", d)
				}
			})
		})
	}
}

// set6 changes the destination of a frame.
func set6(frame, mac []byte) []byte {
	copy(frame, mac)
	return frame
}

// What the router answers packets with that do not go on, to the last byte.
func TestErrorsToGuest(t *testing.T) {
	long4, long6 := udp(a4, far4, 1501-28), udp(a6, far6, 1501-48)
	for _, tt := range []struct {
		name         string
		packet, want []byte
	}{
		{"to another guest", udp(a4, b4, 4), netstack.AppendUnreachable(nil, udp(a4, b4, 4), netstack.Prohibited, router4)},
		{"to another guest, IPv6", udp(a6, b6, 4), netstack.AppendUnreachable(nil, udp(a6, b6, 4), netstack.Prohibited, router6)},
		{"too big", long4, netstack.AppendTooBig(nil, long4, 1500, router4)},
		{"too big, IPv6", long6, netstack.AppendTooBig(nil, long6, 1500, router6)},
		{"no such service", udp(a4, router4, 4), netstack.AppendUnreachable(nil, udp(a4, router4, 4), netstack.NoPort, router4)},
		{"no DNS", datagram(netip.AddrPortFrom(a6, 4000), netip.AddrPortFrom(router6, 53), []byte("query")),
			netstack.AppendUnreachable(nil, datagram(netip.AddrPortFrom(a6, 4000), netip.AddrPortFrom(router6, 53), []byte("query")), netstack.NoPort, router6)},
		{"TCP", packet4(a4, router4, 6, 0, nil, make([]byte, 20)...), netstack.AppendUnreachable(nil, packet4(a4, router4, 6, 0, nil, make([]byte, 20)...), netstack.NoPort, router4)},
	} {
		inLab(t, Config{}, func(l *lab) {
			a, _ := l.two()
			a.send(ipFrame(macA, tt.packet))
			synctest.Wait()
			kind := etherIPv4
			if tt.want[0]>>4 == 6 {
				kind = etherIPv6
			}
			if got := only(t, a.take()); !bytes.Equal(got, frameOf(routerMAC, macA, kind, tt.want)) {
				t.Errorf("%s: %x, want %x", tt.name, got, tt.want)
			}
		})
	}
}

// A guest gets so many errors a second, and another guest its own.
func TestErrorsAreBounded(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		a, b := l.two()
		flood := func(w *wire, p []byte) int {
			for range portErrors + 50 {
				w.send(p)
			}
			synctest.Wait()
			return len(w.take())
		}
		if n := flood(a, ipFrame(macA, udp(a4, router4, 0))); n != portErrors {
			t.Errorf("%d errors at once, want %d", n, portErrors)
		}
		if n := flood(b, ipFrame(macB, udp(b4, router4, 0))); n != portErrors {
			t.Errorf("%d errors to the other, want %d", n, portErrors)
		}
		time.Sleep(time.Second / 2)
		if n := flood(a, ipFrame(macA, udp(a4, router4, 0))); n != portErrors/2 {
			t.Errorf("%d errors after half a second, want %d", n, portErrors/2)
		}
	})
}

// The router answers pings to each of its addresses, and to nobody else's.
func TestPing(t *testing.T) {
	ping6 := func(src, dst string) []byte { return icmp6(64, src, dst, "80000000 0007 0001"+"0102030405") }
	pong6 := func(src, dst string) []byte { return icmp6(64, src, dst, "81000000 0007 0001"+"0102030405") }
	ping4 := unhex("4500 0021 0007 4000 40 01 26c8 0a01000b 0a010001" + "0800 eef1 0007 0001 0102030405")
	pong4 := unhex("4500 0021 0000 4000 40 01 26cf 0a010001 0a01000b" + "0000 f6f1 0007 0001 0102030405")
	part := packet4(a4, router4, 1, 0x2000, nil, ping4[20:]...)
	for _, tt := range []struct {
		name         string
		packet, want []byte
		changed      string
	}{
		{"IPv4", ping4, pong4, "answered=1"},
		{"IPv6", ping6(hexA, hexRouter), pong6(hexRouter, hexA), "answered=1"},
		{"link-local", ping6(hexALocal, hexLocal), pong6(hexLocal, hexALocal), "answered=1"},
		{"from link-local", ping6(hexALocal, hexRouter), pong6(hexRouter, hexALocal), "answered=1"},
		{"the anycast address of routers", ping6(hexA, "fd010000000000000000000000000000"), pong6("fd010000000000000000000000000000", hexA), "answered=1"},
		{"checksum", set(bytes.Clone(ping4), 22, 7), nil, "unserved=1"},
		{"an answer", pong6(hexA, hexRouter), nil, "unserved=1"},
		{"a fragment", part, nil, "unserved=1"},
		{"too short", packet4(a4, router4, 1, 0, nil, 8, 0, 0xf7, 0xff), nil, "unserved=1"},
		{"ESP", packet4(a4, router4, 50, 0, nil, make([]byte, 20)...), nil, "unserved=1"},
		{"headers cut off", packet6(a6, router6, 0, 17, 4, 0, 0), nil, "unserved=1"},
	} {
		inLab(t, Config{}, func(l *lab) {
			a, _ := l.two()
			if d := l.changed("a", func() { a.send(ipFrame(macA, tt.packet)) }); d != tt.changed {
				t.Errorf("%s: changed %q, want %q", tt.name, d, tt.changed)
			}
			if got := only(t, a.take()); len(got) != 0 != (tt.want != nil) || tt.want != nil && !bytes.Equal(got[headLen:], tt.want) {
				t.Errorf("%s: %x, want %x", tt.name, got, tt.want)
			}
		})
	}
}

// With Between a packet goes from guest to guest as it is, and does not leave.
func TestBetween(t *testing.T) {
	inLab(t, Config{Between: true}, func(l *lab) {
		a, b := l.two()
		for _, p := range [][]byte{udp(a4, b4, 10), udp(a6, b6, 10), packet6(a6, b6, 0, 17, 4, 0, 0)} {
			if d := l.changed("a", func() { a.send(ipFrame(macA, p)) }); d != "passed=1" {
				t.Errorf("changed %q", d)
			}
			kind := etherIPv4
			if p[0]>>4 == 6 {
				kind = etherIPv6
			}
			if got := only(t, b.take()); !bytes.Equal(got, frameOf(routerMAC, macB, kind, p)) {
				t.Errorf("%x, want %x", got, p)
			}
		}
		for _, frame := range [][]byte{ipFrame(macA, udp(b4, b4, 10)), ipFrame(macA, udp(aLocal, b6, 10)), set6(ipFrame(macA, udp(a4, b4, 10)), macB[:])} {
			if d := l.changed("b", func() { a.send(frame) }); d != "" || len(b.take()) != 0 {
				t.Errorf("%x passed: %s", frame, d)
			}
		}
		if len(l.left()) != 0 {
			t.Error("something left")
		}
	})
}

// A guest's MAC address is that of its first frame, if a host can have it and no other port
// does, and then no other.
func TestMACAddressIsLearned(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		l.plug("b", PortConfig{MAC: macB[:]})
		a := l.plug("a", PortConfig{Addresses: testGuest})
		for _, tt := range []struct {
			mac     [6]byte
			changed string
		}{
			{broadcast, "spoofed.mac=1"},
			{[6]byte{}, "spoofed.mac=1"},
			{routerMAC, "spoofed.mac=1"},
			{macB, "spoofed.mac=1"},
			{macA, "passed=1"},
			{macB2, "spoofed.mac=1"}, // it has changed it
			{macA, "passed=1"},
		} {
			if d := l.changed("a", func() { a.send(ipFrame(tt.mac, udp(a4, far4, 0))) }); d != tt.changed {
				t.Errorf("from %x: changed %q, want %q", tt.mac, d, tt.changed)
			}
		}
		if err := l.Unplug("a"); err != nil {
			t.Fatal(err)
		}
		a = l.plug("a", PortConfig{Addresses: testGuest})
		if d := l.changed("a", func() { a.send(ipFrame(macB2, udp(a4, far4, 0))) }); d != "passed=1" {
			t.Errorf("after it was plugged in again: %q", d)
		}
	})
}

// A foreign address is refused in whatever the frame carries it, and nothing of it passes:
// each guest against each other's addresses.
func TestNobodyPosesAsAnother(t *testing.T) {
	inLab(t, Config{Between: true}, func(l *lab) {
		const guests = 8
		macs, addresses, wires := make([][6]byte, guests), make([]netip.Addr, guests), make([]*wire, guests)
		for i := range guests {
			macs[i], addresses[i] = [6]byte{0x52, 0x54, 0, 0, 0, byte(i)}, netip.AddrFrom4([4]byte{10, 1, 0, byte(20 + i)})
			wires[i] = l.plug(fmt.Sprint(i), PortConfig{MAC: macs[i][:], Addresses: addresses[i : i+1]})
		}
		for i := range guests {
			for j := range guests {
				for k := range guests {
					wires[i].send(ipFrame(macs[j], udp(addresses[k], far4, i)))
				}
			}
		}
		out := l.left()
		if len(out) != guests {
			t.Errorf("%d packets left, want %d", len(out), guests)
		}
		for _, p := range out {
			var h ip.Header
			if err := h.Parse(p); err != nil || h.Src() != addresses[len(p)-28] {
				t.Errorf("guest %d sent from %v", len(p)-28, h.Src())
			}
		}
	})
}
