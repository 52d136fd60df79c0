package firsthop

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/time/rate"
	"pgregory.net/rapid"

	"sheaf/parsers/ip"
)

// A still is a Router whose ports do nothing by themselves: frames are put into them and what
// comes of them is looked at, one at a time.
type still struct {
	*Router
	ports []*port
}

// newStill returns a Router with a guest with addresses by configuration, one whose are
// leased and claimed, and one of which nothing is known.
func newStill(t interface{ Fatal(...any) }, between bool) *still {
	r, err := New(Config{Addresses: testPrefixes, Between: between})
	if err != nil {
		t.Fatal(err)
	}
	s := &still{Router: r}
	for i, cfg := range []PortConfig{{MAC: macA[:], Addresses: testGuest}, {MAC: macB[:]}, {}} {
		r.mu.Lock()
		p, err := r.plug(fmt.Sprint(i), newWire(), cfg)
		r.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		s.ports = append(s.ports, p)
	}
	return s
}

// drain returns the frames that wait for a guest.
func (p *port) drain() (frames [][]byte) {
	p.queue.mu.Lock()
	waiting := p.queue.n
	p.queue.mu.Unlock()
	if waiting == 0 {
		return nil
	}
	taken := p.queue.take(make([]*frame, 0, waiting))
	for _, f := range taken {
		frames = append(frames, slices.Clone(f.buf))
	}
	p.queue.giveBack(taken)
	return frames
}

// step puts a frame into a port and holds what must be so, whatever the frame: what leaves or
// reaches another guest is from an address that is the sender's alone, and is cut from its
// frame; at most one answer comes; each frame counts once.
func (s *still) step(t interface{ Fatalf(string, ...any) }, p *port, frame []byte) {
	before := p.count().read()
	packet := p.input(slices.Clone(frame))
	after := p.count().read()
	passed := [][]byte{}
	if packet != nil {
		passed = append(passed, packet)
	}
	for _, q := range s.ports {
		for _, f := range q.drain() {
			if q == p && [6]byte(f[6:]) == routerMAC && after.Answered == before.Answered+1 {
				before.Answered++ // this is it
				continue
			}
			if q == p || [6]byte(f) != q.identity.Load().mac {
				if q.identity.Load().known { // else it is asked who it is
					t.Fatalf("port %s got %x of %x", q.name, f, frame)
				}
				continue
			}
			passed = append(passed, f[headLen:])
		}
	}
	if after.Answered != before.Answered {
		t.Fatalf("%d answers to %x", after.Answered-before.Answered, frame)
	}
	if len(passed) > 1 {
		t.Fatalf("%d packets of %x", len(passed), frame)
	}
	for _, b := range passed {
		s.check(t, p, b, frame)
	}
	if n := total(after) - total(before); n > 1 {
		t.Fatalf("counted %d times: %s: %x", n, difference(before, after), frame)
	}
}

// total sums what a frame of a guest is counted as, one of which it must be at most.
func total(c Counters) uint64 {
	return c.Passed + c.Spoofed.MAC + c.Spoofed.IPv4 + c.Spoofed.IPv6 + c.Spoofed.ARP + c.Spoofed.NDP + c.Spoofed.DHCP +
		c.Malformed + c.VLAN + c.Foreign + c.Group + c.Local + c.Isolated + c.TooBig + c.Unserved + c.Queries
}

// check holds what is so of a packet that passed.
func (s *still) check(t interface{ Fatalf(string, ...any) }, p *port, b, frame []byte) {
	var h ip.Header
	_ = h.Parse(b)
	src, dst := h.Src(), h.Dst()
	id := p.identity.Load()
	if !src.IsValid() || !id.owns(src) || s.holder(src) != p {
		t.Fatalf("from %v, which is not of port %s: %x", src, p.name, frame)
	}
	if [6]byte(frame[6:]) != id.mac || [6]byte(frame) != routerMAC {
		t.Fatalf("MAC addresses of a packet that passed: %x", frame)
	}
	if len(b) != h.Total() || len(b) > len(frame)-headLen || string(b) != string(frame[headLen:headLen+len(b)]) || len(b) > s.mtu {
		t.Fatalf("%x passed, of %x", b, frame)
	}
	if special(dst) || dst.IsMulticast() || dst.IsLinkLocalUnicast() || dst == router4 || dst == router6 || isDiscovery(&h) {
		t.Fatalf("to %v: %x", dst, frame)
	}
}

// own checks that all addresses are one port's, and that bounds hold.
func (s *still) own(t interface{ Fatalf(string, ...any) }) {
	for _, p := range s.ports {
		id := p.identity.Load()
		for _, a := range id.addresses {
			if s.holder(a) != p || !s.inPrefix(a) || special(a) || a == router4 || a == router6 {
				t.Fatalf("%v is port %s's, and %v", a, p.name, s.lookup(a))
			}
		}
		if len(p.claims) > maxClaims || len(p.declined) > maxDeclined || len(id.addresses) > len(p.configured)+2+maxClaims {
			t.Fatalf("port %s has %v", p.name, id.addresses)
		}
	}
}

// seeds are frames of each kind.
func seeds() [][]byte {
	all := [][]byte{
		ipFrame(macA, udp(a4, far4, 10)), ipFrame(macA, udp(a6, far6, 10)), ipFrame(macA, udp(b4, far4, 0)), ipFrame(macA, udp(a4, b4, 0)),
		ipFrame(macB, udp(b4, far4, 0)), ipFrame(macB, udp(netip.MustParseAddr("fd01::77"), far6, 0)), ipFrame(macB, udp(b4, a4, 0)),
		ipFrame(macA, udp(aLocal, router6, 0)), ipFrame(macA, packet4(a4, router4, 1, 0, nil, 8, 0, 0xf7, 0xff, 0, 0, 0, 0)),
		ipFrame(macA, packet4(a4, far4, 17, 0x2000, []byte{0x94, 4, 0, 0}, make([]byte, 16)...)),
		ipFrame(macA, packet6(a6, far6, 0, 44, 0, 1, 4, 0, 0, 0, 0, 58, 0, 0, 1, 0, 0, 0, 7, 135, 0, 0, 0)),
		dad(macA, a6), dad(macB, nth(1)), dad(macB2, a6),
		ipFrame(macA, icmp6(255, hexA, hexRouter, ns(hexRouter, slla))), ipFrame(macA, icmp6(255, hexA, hexNodes, na("20", hexA, tlla))),
		set6(ipFrame(macA, icmp6(255, hexALocal, hexRtrs, "85000000 00000000"+slla)), unhex("333300000002")),
		unhex(toAll + fromA + "0806" + arpHead + "0001" + fromA + "0a01000b" + zeroMAC + "0a010001"),
		unhex(toAll + fromA + "0806" + arpHead + "0001" + fromA + "00000000" + zeroMAC + "0a01000c"),
		toRouterFrom(macA, etherVLAN, make([]byte, 46)), []byte("short"),
		ipFrame(macA, datagram(netip.AddrPortFrom(a4, 4000), netip.AddrPortFrom(router4, 53), dnsQuery(7, "broker.example."))),
		ipFrame(macA, udp(a4, far4, 1500)), ipFrame(macA, udp(a6, far6, 1500)),
	}
	for _, kind := range []dhcpv4.MessageType{dhcpv4.MessageTypeDiscover, dhcpv4.MessageTypeRequest, dhcpv4.MessageTypeInform, dhcpv4.MessageTypeRelease, dhcpv4.MessageTypeDecline} {
		for _, mac := range [][6]byte{macA, macB} {
			all = append(all, dhcpMessage{kind: kind, mac: mac, requested: "10.1.0.12", server: "10.1.0.1", client: "10.1.0.12"}.frame())
		}
	}
	return all
}

// Any frame of a guest, in any state, neither panics nor passes with an address that is not
// the guest's, and brings at most one answer. Input is a sequence of frames, each after a
// byte that says of which port it is and two of its length.
func FuzzFrame(f *testing.F) {
	script := func(port byte, frames ...[]byte) (b []byte) {
		for _, frame := range frames {
			b = append(append(b, port, byte(len(frame)>>8), byte(len(frame))), frame...)
		}
		return b
	}
	for _, frame := range seeds() {
		for port := range byte(3) {
			f.Add(script(port, frame), port&1 == 0)
		}
	}
	f.Add(slices.Concat(script(0, seeds()...), script(1, seeds()...), script(2, seeds()...)), true)
	f.Fuzz(func(t *testing.T, b []byte, between bool) {
		s := newStill(t, between)
		defer s.Close()
		for len(b) >= 3 {
			p, n := s.ports[int(b[0])%len(s.ports)], min(int(b[1])<<8|int(b[2]), len(b)-3)
			s.step(t, p, b[3:3+n])
			b = b[3+n:]
		}
		s.own(t)
	})
}

// Frames of all kinds, from any address of anybody, in any order and at any time.
func TestFrameProperties(t *testing.T) { rapid.Check(t, frameProperties) }

func frameProperties(t *rapid.T) {
	s := newStill(t, rapid.Bool().Draw(t, "between"))
	defer s.Close()
	macs := [][6]byte{macA, macB, macB2, routerMAC, broadcast}
	var addresses []netip.Addr
	for _, a := range []string{"0.0.0.0", "10.1.0.0", "10.1.0.1", "10.1.0.11", "10.1.0.12", "10.1.0.13", "10.1.0.255", "10.2.0.10", "169.254.0.7", "224.0.0.1", "255.255.255.255",
		"::", "fd01::", "fd01::1", "fd01::11", "fd01::77", "fd01::78", "fd01::5054:ff:fe12:340b", "fd02::10", "fe80::1", "fe80::77", "ff02::1", "::ffff:10.1.0.11"} {
		addresses = append(addresses, netip.MustParseAddr(a))
	}
	known := seeds()
	address := rapid.SampledFrom(addresses)
	frames := rapid.Custom(func(t *rapid.T) []byte {
		mac := rapid.SampledFrom(macs).Draw(t, "mac")
		src, dst := address.Draw(t, "src"), address.Draw(t, "dst")
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case kind == 0:
			return dad(mac, netip.AddrFrom16(dst.As16()))
		case kind == 1 && src.Is4() && dst.Is4():
			return arpFrame(mac, rapid.Uint16Range(1, 3).Draw(t, "operation"), src, dst)
		case kind == 2:
			message := rapid.SampledFrom([]dhcpv4.MessageType{1, 3, 4, 7, 8}).Draw(t, "message")
			return dhcpMessage{kind: message, mac: mac, requested: "10.1.0.12", client: rapid.SampledFrom([]string{"", "10.1.0.12"}).Draw(t, "client")}.frame()
		case kind == 3:
			return rapid.SampledFrom(known).Draw(t, "frame")
		case kind == 4:
			f := slices.Clone(rapid.SampledFrom(known).Draw(t, "frame"))
			f[rapid.IntRange(0, len(f)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
			return f
		case src.Is4() == dst.Is4():
			return ipFrame(mac, udp(src, dst, rapid.IntRange(0, 1600).Draw(t, "length")))
		}
		return rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "rubbish")
	})
	for range rapid.IntRange(1, 60).Draw(t, "frames") {
		p := s.ports[rapid.IntRange(0, len(s.ports)-1).Draw(t, "port")]
		s.step(t, p, frames.Draw(t, "frame"))
		if rapid.IntRange(0, 9).Draw(t, "pause") == 0 {
			p.claiming = rate.NewLimiter(rate.Every(claimEvery), maxClaims) // as after so long
		}
		s.own(t)
	}
}

// arpFrame returns an ARP packet of a guest with its own MAC address.
func arpFrame(mac [6]byte, operation uint16, sender, target netip.Addr) []byte {
	a := arpLayer(operation, sender, [6]byte{}, target)
	a.SourceHwAddress = mac[:]
	return frameOf(mac, broadcast, etherARP, serialize(a))
}
