package firsthop

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"
)

var (
	anyone   = netip.MustParseAddrPort("0.0.0.0:68")
	everyone = netip.MustParseAddrPort("255.255.255.255:67")
)

// A dhcpMessage is one of a client, without what it leaves out.
type dhcpMessage struct {
	kind              dhcpv4.MessageType
	mac               [6]byte
	requested, client string
	server            string
	broadcast         bool
	gateway           string
}

func (m dhcpMessage) bytes() []byte {
	d, err := dhcpv4.New(dhcpv4.WithMessageType(m.kind), dhcpv4.WithHwAddr(m.mac[:]), dhcpv4.WithTransactionID(dhcpv4.TransactionID{1, 2, 3, 4}))
	if err != nil {
		panic(err)
	}
	d.HWType = iana.HWTypeEthernet
	if m.requested != "" {
		d.UpdateOption(dhcpv4.OptRequestedIPAddress(net.ParseIP(m.requested)))
	}
	if m.server != "" {
		d.UpdateOption(dhcpv4.OptServerIdentifier(net.ParseIP(m.server)))
	}
	if m.client != "" {
		d.ClientIPAddr = net.ParseIP(m.client)
	}
	if m.gateway != "" {
		d.GatewayIPAddr = net.ParseIP(m.gateway)
	}
	if m.broadcast {
		d.SetBroadcast()
	}
	return d.ToBytes()
}

// frame returns the message as it is broadcast.
func (m dhcpMessage) frame() []byte {
	return set6(ipFrame(m.mac, datagram(anyone, everyone, m.bytes())), broadcast[:])
}

// said returns what a frame of the router's says, in a line: kind, address, where to.
func said(t *testing.T, frame []byte) string {
	t.Helper()
	if frame == nil {
		return ""
	}
	if len(frame) < headLen+28 {
		t.Fatalf("%x", frame)
	}
	d, err := dhcpv4.FromBytes(frame[headLen+28:])
	if err != nil {
		t.Fatalf("%v: %x", err, frame)
	}
	if d.TransactionID != (dhcpv4.TransactionID{1, 2, 3, 4}) || d.ServerIdentifier().String() != "10.1.0.1" || d.OpCode != dhcpv4.OpcodeBootReply {
		t.Errorf("not an answer: %s", d.Summary())
	}
	to := "to " + netip.AddrFrom4([4]byte(frame[headLen+16:])).String()
	if [6]byte(frame) == broadcast {
		to += " broadcast"
	}
	return strings.TrimSpace(fmt.Sprint(d.MessageType(), " ", d.YourIPAddr, " ", to))
}

// dhcp sends a message and returns what was said.
func (l *lab) dhcp(name string, m dhcpMessage) string {
	l.t.Helper()
	w := l.wires[name]
	w.send(m.frame())
	synctest.Wait()
	return said(l.t, only(l.t, w.take()))
}

// An offer to the last byte: RFC 2131 figure 1, and the options in order of their numbers.
func TestOffer(t *testing.T) {
	resolver := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53")}
	inLab(t, Config{DNS: resolver}, func(l *lab) {
		a := l.plug("a", PortConfig{MAC: macA[:], Addresses: []netip.Addr{a4}})
		a.send(dhcpMessage{kind: dhcpv4.MessageTypeDiscover, mac: macA}.frame())
		synctest.Wait()
		got := only(t, a.take())
		want := unhex(fromA + sheaf + "0800" +
			"4500 0148 0000 4000 40 11 2598 0a010001 0a01000b" + "0043 0044 0134 d944" +
			"02 01 06 00 01020304 0000 0000 00000000 0a01000b 00000000 00000000" + fromA + strings.Repeat("00", 10+64+128) +
			"63825363" + "01 04 ffffff00" + "03 04 0a010001" + "06 04 0a010001" + "1a 02 05dc" + "33 04 00000e10" + "35 01 02" + "36 04 0a010001" + "ff")
		want = append(want, make([]byte, headLen+28+300-len(want))...) // RFC 1542 section 2.1
		if !bytes.Equal(got, want) {
			t.Errorf("\n%x, want\n%x", got, want)
		}
	})
}

func TestDHCP(t *testing.T) {
	discover, request, inform := dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeInform
	for _, tt := range []struct {
		name string
		m    dhcpMessage
		want string
	}{
		{"discover", dhcpMessage{kind: discover}, "OFFER 10.1.0.11 to 10.1.0.11"},
		{"discover, of another address", dhcpMessage{kind: discover, requested: "10.1.0.77"}, "OFFER 10.1.0.11 to 10.1.0.11"},
		{"discover, by broadcast", dhcpMessage{kind: discover, broadcast: true}, "OFFER 10.1.0.11 to 255.255.255.255 broadcast"},
		{"request of the offer", dhcpMessage{kind: request, requested: "10.1.0.11", server: "10.1.0.1"}, "ACK 10.1.0.11 to 10.1.0.11"},
		{"request of another", dhcpMessage{kind: request, requested: "10.1.0.77", server: "10.1.0.1"}, "NAK 0.0.0.0 to 255.255.255.255 broadcast"},
		{"request to another server", dhcpMessage{kind: request, requested: "10.1.0.11", server: "10.1.0.2"}, ""},
		{"after a boot", dhcpMessage{kind: request, requested: "10.1.0.11"}, "ACK 10.1.0.11 to 10.1.0.11"},
		{"after a boot, from another network", dhcpMessage{kind: request, requested: "192.168.1.7"}, "NAK 0.0.0.0 to 255.255.255.255 broadcast"},
		{"rebinding", dhcpMessage{kind: request, client: "10.1.0.11"}, "ACK 10.1.0.11 to 10.1.0.11"},
		{"rebinding, another address", dhcpMessage{kind: request, client: "10.1.0.12"}, "NAK 0.0.0.0 to 255.255.255.255 broadcast"},
		{"request of nothing", dhcpMessage{kind: request}, ""},
		{"inform", dhcpMessage{kind: inform, client: "10.1.0.11"}, "ACK 0.0.0.0 to 10.1.0.11"},
		{"inform of another's", dhcpMessage{kind: inform, client: "10.1.0.12"}, ""},
		{"release", dhcpMessage{kind: dhcpv4.MessageTypeRelease, client: "10.1.0.11", server: "10.1.0.1"}, ""},
		{"decline", dhcpMessage{kind: dhcpv4.MessageTypeDecline, requested: "10.1.0.11", server: "10.1.0.1"}, ""},
		{"an offer", dhcpMessage{kind: dhcpv4.MessageTypeOffer}, ""},
	} {
		inLab(t, Config{}, func(l *lab) {
			l.two()
			tt.m.mac = macA
			if got := l.dhcp("a", tt.m); got != tt.want {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
			if l.addresses("a") != "10.1.0.11 fd01::11" {
				t.Errorf("%s: it has %s now", tt.name, l.addresses("a"))
			}
		})
	}
}

// Renewing goes to the router's own address, and is answered there.
func TestRenew(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		a, _ := l.two()
		m := dhcpMessage{kind: dhcpv4.MessageTypeRequest, mac: macA, client: "10.1.0.11"}.bytes()
		a.send(ipFrame(macA, datagram(netip.AddrPortFrom(a4, 68), netip.AddrPortFrom(router4, 67), m)))
		synctest.Wait()
		if got := said(t, only(t, a.take())); got != "ACK 10.1.0.11 to 10.1.0.11" {
			t.Errorf("%q", got)
		}
	})
}

func TestDHCPRefuses(t *testing.T) {
	good := dhcpMessage{kind: dhcpv4.MessageTypeDiscover, mac: macA}
	other, relayed := good, good
	other.mac, relayed.gateway = macB, "10.1.0.11"
	payload := func(b []byte) []byte {
		return set6(ipFrame(macA, datagram(anyone, everyone, b)), broadcast[:])
	}
	reply := good.bytes()
	reply[0] = 2
	for _, tt := range []struct {
		name    string
		frame   []byte
		changed string
	}{
		{"hardware address of another", payload(other.bytes()), "spoofed.dhcp=1"},
		{"through a relay", payload(relayed.bytes()), "spoofed.dhcp=1"},
		{"an answer", payload(reply), "malformed=1"},
		{"nothing", payload(nil), "malformed=1"},
		{"cut off", payload(good.bytes()[:239]), "malformed=1"},
		{"not Ethernet", payload(set(good.bytes(), 1, 6)), "malformed=1"},
		{"shorter than UDP says", set6(ipFrame(macA, set(datagram(anyone, everyone, good.bytes()), 24, 9)), broadcast[:]), "malformed=1"},
		{"UDP length within its header", set6(ipFrame(macA, set(set(datagram(anyone, everyone, good.bytes()), 24, 0), 25, 7)), broadcast[:]), "malformed=1"},
		{"a fragment", set6(ipFrame(macA, set(datagram(anyone, everyone, good.bytes()), 6, 0x20)), broadcast[:]), "group=1"},
	} {
		inLab(t, Config{}, func(l *lab) {
			a, _ := l.two()
			if d := l.changed("a", func() { a.send(tt.frame) }); d != tt.changed || len(a.take()) != 0 {
				t.Errorf("%s: changed %q, want %q", tt.name, d, tt.changed)
			}
		})
	}
	inLab(t, Config{Addresses: testPrefixes[1:]}, func(l *lab) { // no IPv4
		a := l.plug("a", PortConfig{MAC: macA[:]})
		if d := l.changed("a", func() { a.send(good.frame()) }); d != "group=1" {
			t.Errorf("without IPv4: %s", d)
		}
	})
}

// A client's identifier comes back (RFC 6842).
func TestClientIdentifier(t *testing.T) {
	inLab(t, Config{}, func(l *lab) {
		a, _ := l.two()
		d, err := dhcpv4.FromBytes(dhcpMessage{kind: dhcpv4.MessageTypeDiscover, mac: macA}.bytes())
		if err != nil {
			t.Fatal(err)
		}
		d.UpdateOption(dhcpv4.OptClientIdentifier([]byte{255, 1, 2, 3}))
		a.send(set6(ipFrame(macA, datagram(anyone, everyone, d.ToBytes())), broadcast[:]))
		synctest.Wait()
		answer, err := dhcpv4.FromBytes(only(t, a.take())[headLen+28:])
		if err != nil || !bytes.Equal(answer.GetOneOption(dhcpv4.OptionClientIdentifier), []byte{255, 1, 2, 3}) {
			t.Errorf("%v %v", err, answer)
		}
	})
}

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
