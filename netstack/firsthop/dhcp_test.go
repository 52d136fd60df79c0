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
