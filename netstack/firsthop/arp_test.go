package firsthop

import (
	"bytes"
	"testing"
	"testing/synctest"
)

// The frames are written out: Ethernet head, then the ARP packet of RFC 826.
const (
	arpHead = "0001 0800 06 04 "
	fromA   = "52540012340a "
	toAll   = "ffffffffffff "
	zeroMAC = "000000000000 "
	sheaf   = "027368656166 "
)

func TestARP(t *testing.T) {
	request := func(sender, target string) string {
		return toAll + fromA + "0806" + arpHead + "0001" + fromA + sender + zeroMAC + target
	}
	answer := func(target, asker string) string {
		return fromA + sheaf + "0806" + arpHead + "0002" + sheaf + target + fromA + asker
	}
	for _, tt := range []struct {
		name, frame, answer string
		changed             string
	}{
		{"for the router", request("0a01000b", "0a010001"), answer("0a010001", "0a01000b"), "answered=1"},
		{"padded to 60 bytes", request("0a01000b", "0a010001") + "000000000000000000000000000000000000", answer("0a010001", "0a01000b"), "answered=1"},
		{"unicast", sheaf + request("0a01000b", "0a010001")[len(toAll):], answer("0a010001", "0a01000b"), "answered=1"},
		{"for another guest", request("0a01000b", "0a01000c"), answer("0a01000c", "0a01000b"), "answered=1"},
		{"for nobody in the prefix", request("0a01000b", "0a010063"), answer("0a010063", "0a01000b"), "answered=1"},
		{"for its own address", request("0a01000b", "0a01000b"), "", ""},
		{"outside of the prefix", request("0a01000b", "0a02000a"), "", ""},
		{"for the broadcast address", request("0a01000b", "0a0100ff"), "", ""},
		{"for the network", request("0a01000b", "0a010000"), "", ""},
		{"link-local", request("a9fe0101", "a9fe0101"), "", "local=1"},
		{"link-local probe", request("00000000", "a9fe0101"), "", "local=1"},
		{"probe for its own address", request("00000000", "0a01000b"), "", ""},
		{"probe for the router's", request("00000000", "0a010001"), answer("0a010001", "00000000"), "answered=1"},
		{"probe for another guest's", request("00000000", "0a01000c"), answer("0a01000c", "00000000"), "answered=1"},
		{"probe for nobody's, which it may not have", request("00000000", "0a010063"), answer("0a010063", "00000000"), "answered=1"},
		{"announcement, a request", request("0a01000b", "0a01000b"), "", ""},
		{"announcement, an answer", toAll + fromA + "0806" + arpHead + "0002" + fromA + "0a01000b" + fromA + "0a01000b", "", ""},
		{"an answer to the router", sheaf + fromA + "0806" + arpHead + "0002" + fromA + "0a01000b" + sheaf + "0a010001", "", ""},

		{"from another's address", request("0a01000c", "0a010001"), "", "spoofed.arp=1"},
		{"from the router's", request("0a010001", "0a01000c"), "", "spoofed.arp=1"},
		{"announcement of the router's", request("0a010001", "0a010001"), "", "spoofed.arp=1"},
		{"an answer for another's", sheaf + fromA + "0806" + arpHead + "0002" + fromA + "0a01000c" + sheaf + "0a010001", "", "spoofed.arp=1"},
		{"from elsewhere", request("0a02000a", "0a010001"), "", "spoofed.arp=1"},
		{"another MAC address inside", toAll + fromA + "0806" + arpHead + "0001" + "525400123463" + "0a01000b" + zeroMAC + "0a010001", "", "spoofed.arp=1"},
		{"another MAC address outside", toAll + "525400123463" + "0806" + arpHead + "0001" + fromA + "0a01000b" + zeroMAC + "0a010001", "", "spoofed.mac=1"},

		{"to another MAC address", "525400123463" + request("0a01000b", "0a010001")[len(toAll):], "", "foreign=1"},
		{"a byte short", request("0a01000b", "0a0100"), "", "malformed=1"},
		{"not Ethernet", toAll + fromA + "0806" + "0006 0800 06 04 0001" + fromA + "0a01000b" + zeroMAC + "0a010001", "", "malformed=1"},
		{"not IPv4", toAll + fromA + "0806" + "0001 86dd 06 04 0001" + fromA + "0a01000b" + zeroMAC + "0a010001", "", "malformed=1"},
		{"lengths of others", toAll + fromA + "0806" + "0001 0800 ff ff 0001" + fromA + "0a01000b" + zeroMAC + "0a010001", "", "malformed=1"},
		{"RARP", toAll + fromA + "8035" + arpHead + "0003" + fromA + "00000000" + fromA + "00000000", "", "foreign=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inLab(t, Config{}, func(l *lab) {
				a, b := l.two()
				if d := l.changed("a", func() { a.send(unhex(tt.frame)) }); d != tt.changed {
					t.Errorf("changed %q, want %q", d, tt.changed)
				}
				if got := only(t, a.take()); !bytes.Equal(got, unhex(tt.answer)) {
					t.Errorf("answer %x, want %x", got, unhex(tt.answer))
				}
				if other := b.take(); len(other) != 0 || len(l.left()) != 0 {
					t.Errorf("others heard of it: %x", other)
				}
			})
		})
	}
}

// A guest whose address is leased gets, without DHCP, the one that it probes for (RFC 5227),
// if nobody has it; and no second one.
func TestProbeTakesAnAddress(t *testing.T) {
	probe := func(target string) []byte {
		return unhex(toAll + fromA + "0806" + arpHead + "0001" + fromA + "00000000" + zeroMAC + target)
	}
	inLab(t, Config{}, func(l *lab) {
		a := l.plug("a", PortConfig{MAC: macA[:]})
		l.plug("b", PortConfig{MAC: macB[:]}).send(ipFrame(macB, udp(b4, far4, 0)))
		synctest.Wait()
		for _, tt := range []struct {
			target   string
			answered int
			has      string
		}{
			{"0a01000c", 1, ""}, // b's
			{"0a01000b", 0, "10.1.0.11 "},
			{"0a01000b", 0, "10.1.0.11 "},
			{"0a010063", 1, "10.1.0.11 "},
		} {
			a.send(probe(tt.target))
			synctest.Wait()
			if n := len(a.take()); n != tt.answered || l.addresses("a") != tt.has+"fd01::5054:ff:fe12:340a" {
				t.Errorf("probe for %s: %d answers, it has %s", tt.target, n, l.addresses("a"))
			}
		}
	})
}

// The router asks for the MAC address of a guest that has not been heard of, once a second.
func TestAsk(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		w := l.plug("a", PortConfig{Addresses: testGuest})
		for _, tt := range []struct{ packet, question []byte }{
			{udp(far4, a4, 0), unhex(toAll + sheaf + "0806" + arpHead + "0001" + sheaf + "0a010001" + zeroMAC + "0a01000b")},
			{udp(far6, a6, 0), unhex("3333ff000011" + sheaf + "86dd" +
				"6000000000203aff" + "fe800000000000000000000000000001" + "ff0200000000000000000001ff000011" +
				"8700b1ba 00000000 fd010000000000000000000000000011" + "0101" + sheaf)},
		} {
			sleepSecond()
			d := l.changed("a", func() {
				for range 3 {
					_ = l.Write([][]byte{tt.packet})
				}
			})
			if got := only(t, w.take()); d != "answered=1 unresolved=3" || !bytes.Equal(got, tt.question) {
				t.Errorf("changed %s; asked %x, want %x", d, got, tt.question)
			}
		}
		w.send(unhex(sheaf + fromA + "0806" + arpHead + "0002" + fromA + "0a01000b" + sheaf + "0a010001"))
		synctest.Wait()
		if d := l.changed("a", func() { _ = l.Write([][]byte{udp(far4, a4, 0)}) }); d != "sent=1" {
			t.Errorf("after its answer: %s", d)
		}
		if got := only(t, w.take()); !bytes.Equal(got, frameOf(routerMAC, macA, etherIPv4, udp(far4, a4, 0))) {
			t.Errorf("%x", got)
		}
	})
}
