package e2e

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sheaf/e2e/order"
	"sheaf/engine"
)

// useMixed has each guest use a NIC of another kind.
func (h *hypervisor) useMixed() {
	h.t.Helper()
	h.together(func(number int, g *guest) error { return g.try("net", seat{1, number}.net(mixed(number)), nil) })
}

// mixed is the kind that a guest uses then.
func mixed(number int) kind { return kinds[(number-1)%len(kinds)] }

// port returns what a gateway tells of a port.
func (l *lab) port(g *gateway, name string) engine.PortStatus {
	l.t.Helper()
	s := g.mustStatus()
	if s.Guests == nil {
		l.t.Fatal("status tells of no guests")
	}
	for _, p := range s.Guests.Ports {
		if p.Name == name {
			return p
		}
	}
	l.t.Fatalf("no port %q in %+v", name, s.Guests.Ports)
	return engine.PortStatus{}
}

// reaches tells whether a guest gets answers from an address.
func (h *hypervisor) reaches(g *guest, a netip.Addr) bool {
	h.t.Helper()
	var p order.Pinged
	g.ask("ping", order.Ping{To: a, Count: 3, Every: 20 * time.Millisecond, Wait: time.Second, First: true}, &p)
	return p.Got > 0
}

// lastGuest is the number of the guest that parts of the test treat otherwise than the others.
const lastGuest = guestCount

// withoutLast has f do with the last guest what it likes, while h.guests are the others. It
// returns the last guest, which may be another one then.
func (h *hypervisor) withoutLast(f func(g *guest) *guest) {
	g := h.guests[lastGuest-1]
	h.guests = h.guests[:lastGuest-1]
	defer func() { h.guests = append(h.guests, g) }()
	g = f(g)
}

// lastSeat is that guest's seat.
var lastSeat = seat{1, lastGuest}

// A guest reaches what lies behind the peer and its router, and neither another guest nor
// the hypervisor's host.
func (h *hypervisor) apart(t *testing.T) {
	h.useMixed()
	g := h.guests[0]
	for _, a := range append(seat{1, 1}.routers(mixed(1)), h.broker().host4, h.broker().host6) {
		eventually(t, 10*time.Second, func() string { return missingUnless(h.reaches(g, a), fmt.Sprintf("%v does not answer", a)) })
	}
	s := h.host.site
	for _, a := range append(seat{1, 2}.addresses(mixed(2)), s.wan4, s.wan6, s.host4, netip.MustParseAddr("172.16.1.1")) {
		if h.reaches(g, a) {
			t.Errorf("%v answers a guest", a)
		}
	}
}

// A guest sends from no address but its own, and what is another's comes to no one else.
func (h *hypervisor) spoofs(t *testing.T) {
	h.useMixed()
	g, own, k := h.guests[0], seat{1, 1}, mixed(1)
	other, theirs, ko := h.guests[1], seat{1, 2}, mixed(2)
	before := h.lab.port(h.host, own.port(k)).Counters.Spoofed
	for _, a := range theirs.routers(ko) { // who know the other then
		eventually(t, 10*time.Second, func() string {
			return missingUnless(h.reaches(other, a), fmt.Sprintf("%v does not answer", a))
		})
	}
	heard := make(chan [][]byte, 1)
	go func() {
		var got [][]byte
		if err := other.try("hear", order.Hear{MAC: theirs.mac(ko), For: 2 * time.Second}, &got); err != nil {
			t.Error(err)
		}
		heard <- got
	}()
	time.Sleep(300 * time.Millisecond)
	frames := spoofedFrames(own.mac(k), theirs.mac(ko), theirs.addresses(ko), own.routers(k)[0])
	g.ask("frames", order.Frames{MAC: own.mac(k), Frames: frames}, nil)
	mac, _ := net.ParseMAC(own.mac(k))
	for _, f := range <-heard {
		if bytes.Contains(f, mac) || bytes.Contains(f, spoofed) {
			t.Errorf("the other guest got %x", f)
		}
	}
	after := h.lab.port(h.host, own.port(k)).Counters.Spoofed
	t.Logf("spoofed: %+v before, %+v after", before, after)
	if after.MAC <= before.MAC || after.IPv4 <= before.IPv4 || after.IPv6 <= before.IPv6 || after.ARP <= before.ARP {
		t.Errorf("spoofed: %+v before, %+v after %d frames", before, after, len(frames))
	}
	if !h.reaches(other, theirs.routers(ko)[0]) {
		t.Error("the router does not answer the other guest any more")
	}
}

// routerMAC is that of the guests' router, of every gateway.
var routerMAC = net.HardwareAddr{0x02, 's', 'h', 'e', 'a', 'f'}

// spoofed is what packets of spoofedFrames carry.
var spoofed = []byte("spoofed")

// spoofedFrames are frames of a guest that say they are of another: its MAC, its IPv4 and
// IPv6 addresses in packets to the broker, and its IPv4 address in ARP (RFC 826: a reply).
func spoofedFrames(own, theirs string, addresses []netip.Addr, router netip.Addr) [][]byte {
	mac, _ := net.ParseMAC(own)
	other, _ := net.ParseMAC(theirs)
	frame := func(from net.HardwareAddr, kind uint16, parts ...[]byte) []byte {
		f := binary.BigEndian.AppendUint16(append(slices.Clone(routerMAC), from...), kind)
		return append(f, slices.Concat(parts...)...)
	}
	v4 := slices.Concat([]byte{0x45, 0, 0, 35, 0, 0, 0, 0, 64, syscall.IPPROTO_UDP, 0, 0}, addresses[0].AsSlice(), []byte{10, 2, 0, 10})
	binary.BigEndian.PutUint16(v4[10:], headerSum(v4))
	to := netip.MustParseAddr("fd00:2::10")
	v6 := slices.Concat([]byte{0x60, 0, 0, 0, 0, 15, syscall.IPPROTO_UDP, 64}, addresses[1].AsSlice(), to.AsSlice())
	udp := slices.Concat([]byte{0, 9, 0, 9, 0, 15, 0, 0}, spoofed)
	arp := slices.Concat([]byte{0, 1, 8, 0, 6, 4, 0, 2}, mac, addresses[0].AsSlice(), routerMAC, router.AsSlice())
	return [][]byte{
		frame(other, syscall.ETH_P_IP, v4, udp),
		frame(mac, syscall.ETH_P_IP, v4, udp),
		frame(mac, syscall.ETH_P_IPV6, v6, udp),
		frame(mac, syscall.ETH_P_ARP, arp),
	}
}

// headerSum is the checksum of a header whose own is zero (RFC 1071).
func headerSum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum>>16 + sum)
}

// A guest that floods and sends rubbish harms no other, and is there afterwards. It does so
// by NICs of each kind, one after the other.
func (h *hypervisor) floods(t *testing.T) {
	h.withoutLast(func(g *guest) *guest {
		h.useMixed()
		c := h.converse("flooded", 1)
		for _, k := range kinds {
			h.flood(t, c, g, k)
		}
		c.end()
		return g
	})
}

// flood has a guest send rubbish and a flood by its NIC of a kind during a conversation.
func (h *hypervisor) flood(t *testing.T, c *conversation, bad *guest, k kind) {
	bad.ask("net", lastSeat.net(k), nil)
	var sending sync.WaitGroup
	sending.Go(func() {
		err := bad.try("frames", order.Frames{MAC: lastSeat.mac(k), Rubbish: 3000, To: routerMAC.String(), Seed: uint64(k.number)}, nil)
		if err == nil {
			err = bad.try("flood", order.Flood{To: netip.AddrPortFrom(h.broker().host4, 9), Size: 120, Count: 20000}, nil)
		}
		if err != nil {
			t.Error(err)
		}
	})
	c.publish(40, brisk)
	sending.Wait()
	own := c.settled(30 * time.Second)
	p := h.lab.port(h.host, lastSeat.port(k))
	t.Logf("%s: %+v; the others' messages: p50 %.2f ms, max %.2f ms", k.name, p.Counters, ms(own[0].P50), ms(own[0].Max))
	if p.Counters.Spoofed.MAC < 1000 || p.Counters.Malformed == 0 {
		t.Errorf("%s: the rubbish did not come: %+v", k.name, p.Counters)
	}
	eventually(t, 10*time.Second, func() string {
		return missingUnless(h.reaches(bad, lastSeat.routers(k)[0]), "the router does not answer the guest that flooded")
	})
}

// The connections of guests live on when the gateway is killed and started anew.
func (h *hypervisor) gatewayKilled(t *testing.T) {
	h.useMixed()
	c := h.converse("killed", 1)
	var worst time.Duration
	for range 10 {
		begin := time.Now()
		var published sync.WaitGroup
		published.Go(func() { c.publish(6, brisk) })
		time.Sleep(150 * time.Millisecond)
		h.host.kill()
		h.outside(h.host.start)
		h.waitUp(h.gateways...)
		published.Wait()
		c.settled(60 * time.Second)
		worst = max(worst, time.Since(begin))
	}
	t.Logf("10 times killed: all delivered after %v at most", worst.Round(time.Millisecond))
	c.end()
}

// back is how long after its NIC's coming up a guest may wait for its port.
const back = 2 * time.Second

// A guest that is killed, crashes or reboots disturbs no other, and has its ports back.
func (h *hypervisor) guestKilled(t *testing.T) {
	h.withoutLast(func(g *guest) *guest {
		h.useMixed()
		c := h.converse("disturbed", 1)
		var worst time.Duration
		for round := range 20 {
			switch round {
			case 18:
				_ = g.try("crash", struct{}{}, nil) // what is answered is that it has booted anew
			case 19:
				_ = g.try("reboot", struct{}{}, nil)
			default:
				g.end(syscall.SIGKILL)
				h.outside(func() { g = h.powerOn(lastGuest) })
				g.t = t
			}
			c.publish(10, brisk)
			g.awaitBoot()
			worst = max(worst, h.portBack(g, kinds[round%len(kinds)]))
			c.settled(10 * time.Second)
		}
		t.Logf("20 times started: the router answers after %v at most", worst.Round(time.Millisecond))
		c.end()
		return g
	})
}

// portBack brings the last guest's NIC of a kind up and returns how long it took until the
// router answered.
func (h *hypervisor) portBack(g *guest, k kind) time.Duration {
	t := h.t
	t.Helper()
	g.ask("net", lastSeat.net(k), nil)
	var p order.Pinged
	g.ask("ping", order.Ping{To: lastSeat.routers(k)[0], Count: 100, Every: 50 * time.Millisecond, Wait: 5 * time.Second, First: true}, &p)
	if p.Got == 0 || p.First > back {
		t.Errorf("%s: the router answers after %v: %+v", k.name, p.First, p)
	}
	return p.First
}

// Ports come and go by command while their guest runs, and others do: a port without an
// address leases one, and counts on under its name.
func (h *hypervisor) portsByCommand(t *testing.T) {
	h.withoutLast(func(g *guest) *guest {
		h.useMixed()
		c := h.converse("beside", 1)
		for _, k := range kinds {
			h.replug(t, g, k)
			c.publish(10, brisk)
			c.settled(10 * time.Second)
		}
		c.end()
		return g
	})
}

// replug takes the last guest's port of a kind out, plugs it in without addresses, and then
// as it was.
func (h *hypervisor) replug(t *testing.T, g *guest, k kind) {
	command := func(args ...string) string {
		return h.host.site.gw.run(sheaf(t), append([]string{"port", "--control", h.host.control}, args...)...)
	}
	name := lastSeat.port(k)
	where := fmt.Sprintf("%s:%s", k.name, h.socket(lastSeat, k))
	h.portBack(g, k)
	if list := command("list"); !strings.Contains(list, name) {
		t.Errorf("port list has no %s:\n%s", name, list)
	}
	received := h.lab.port(h.host, name).Link.Received
	command("del", name)
	if list := command("list"); strings.Contains(list, name) {
		t.Errorf("port list after port del:\n%s", list)
	}
	add := []string{"add", name, where, "--mac", lastSeat.mac(k)}
	if lastSeat.dials(k) {
		add = append(add, "--dial")
	}
	command(add...)
	eventually(t, 10*time.Second, func() string { return missingUnless(h.lab.port(h.host, name).Link.Up, name+" is not up") })
	var up order.Up
	g.ask("net", order.Net{MAC: lastSeat.mac(k), DHCP: true, RA: true}, &up)
	t.Logf("%s: leased %+v", name, up)
	for _, a := range []netip.Addr{lastSeat.routers(k)[0], h.broker().host4, h.broker().host6} {
		eventually(t, 10*time.Second, func() string { return missingUnless(h.reaches(g, a), fmt.Sprintf("%s: %v does not answer", name, a)) })
	}
	if now := h.lab.port(h.host, name); now.Link.Received <= received {
		t.Errorf("%s: %d frames received, of which %d before the port was taken out", name, now.Link.Received, received)
	}
	command("del", name)
	command(append(add, "--address", lastSeat.addresses(k)[0].String(), "--address", lastSeat.addresses(k)[1].String())...)
	eventually(t, 10*time.Second, func() string { return missingUnless(h.lab.port(h.host, name).Link.Up, name+" is not up") })
	h.portBack(g, k)
}
