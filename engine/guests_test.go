package engine

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sheaf/netstack"
)

// Packets go from guests to this host, and back, with host = true only; never to or from a
// guest's address that is not the guest's, and what lies behind a peer goes there.
func TestGuestsAndHost(t *testing.T) {
	const guest, sensor, server, stand, elsewhere = "10.1.0.11", "10.1.0.9", "10.2.0.1", "10.8.0.1", "192.0.2.1"
	for _, tt := range []struct {
		name     string
		from     ingress
		src, dst string
		host     bool
		device   bool
		crosses  bool
		lane     bool
		spoofed  uint64
	}{
		{"guest to a peer's", fromGuests, guest, server, false, false, false, true, 0},
		{"guest to a peer's, with host", fromGuests, guest, server, true, true, false, true, 0},
		{"guest to the device", fromGuests, guest, elsewhere, false, true, false, false, 0},
		{"guest to the device, with host", fromGuests, guest, elsewhere, true, true, true, false, 0},
		{"guest to the stack", fromGuests, guest, stand, false, false, false, false, 0},
		{"guest to the stack, with host", fromGuests, guest, stand, true, false, true, false, 0},
		{"guest past the stack", fromGuests, guest, elsewhere, true, false, false, false, 0},
		{"guest to one without a NIC", fromGuests, guest, sensor, true, false, true, false, 0},
		{"guest to one without a NIC, without host", fromGuests, guest, sensor, false, false, false, false, 0},
		{"host to a guest", fromHost, elsewhere, guest, false, true, false, false, 0},
		{"host to a guest, with host", fromHost, elsewhere, guest, true, true, true, false, 0},
		{"host as a guest", fromHost, guest, server, true, true, false, false, 1},
		{"one without a NIC to a peer's", fromHost, sensor, server, false, false, false, true, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g, _ := hub(t, map[string]string{"broker": "10.2.0.0/24"})
			for i := range g.peers["broker"].lanes {
				g.peers["broker"].lanes[i] = &laneRunner{stall: time.Hour, queue: newQueue(1<<20, time.Hour)}
			}
			g.replies = newReplies()
			g.guests = testGuests(t, &VM{Address: Prefixes{{netip.MustParsePrefix("10.1.0.1/24")}}, Host: tt.host})
			g.guests.beside, g.guests.device = true, tt.device
			g.guests.standIns = []netip.Prefix{netip.MustParsePrefix("10.8.0.0/24")}
			g.guests.ports.stack.Store(&inStack{has: map[netip.Addr]bool{netip.MustParseAddr(sensor): true}})
			l := g.laneOf(0, tt.from, datagram(tt.src, tt.dst))
			if got := len(g.crossing) == 1; got != tt.crosses || (l != nil) != tt.lane || g.guests.spoofed.Load() != tt.spoofed {
				t.Errorf("crosses %v, lane %v, spoofed %d", got, l != nil, g.guests.spoofed.Load())
			}
		})
	}
}

// testGuests returns guests of a [vm] without ports.
func testGuests(t *testing.T, vm *VM) *guests {
	t.Helper()
	g := &Gateway{cfg: &Config{VM: vm}, log: (&record{}).log()}
	if err := g.openGuests(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g.guests
}

// What comes out of the tunnel goes to guests or to the host by its destination, in order;
// nothing comes from a peer with a guest's address.
func TestGuestsBesideAPort(t *testing.T) {
	g, out := hub(t, map[string]string{"broker": "10.0.0.0/8"})
	g.log = (&record{}).log()
	g.guests = testGuests(t, &VM{Address: Prefixes{{netip.MustParsePrefix("10.1.0.1/24")}}})
	g.guests.beside = true
	about := netstack.AppendUnreachable(nil, datagram("192.0.2.1", "10.2.0.9"), netstack.NoHost, netip.MustParseAddr("10.1.0.11"))
	g.deliver(g.peers["broker"], [][]byte{
		datagram("10.2.0.1", "192.0.2.1"), datagram("10.2.0.2", "10.1.0.11"), datagram("10.2.0.3", "10.1.0.12"),
		datagram("10.2.0.4", "192.0.2.2"), datagram("10.1.0.11", "192.0.2.3"), about,
	})
	var got []string
	for _, p := range out.packets {
		got = append(got, netip.AddrFrom4([4]byte(p[12:16])).String())
	}
	// the router answers about guests that are not there, and is not read here
	if text := strings.Join(got, " "); text != "10.2.0.1 10.2.0.4" || g.peers["broker"].refused.Load() != 2 || g.guests.spoofed.Load() != 2 {
		t.Errorf("the host got those of %s, %d refused, %d spoofed", text, g.peers["broker"].refused.Load(), g.guests.spoofed.Load())
	}
	if err := g.AddRoute(Route{Prefix: netip.MustParsePrefix("10.1.0.64/26"), Peer: "broker"}); err == nil || !strings.Contains(err.Error(), "lies in the guests' network 10.1.0.0/24 of [vm]") {
		t.Error(err)
	}
}

// A guest reaches what [terminate] stands for on its own host, with host = true.
func TestGuestReachesItsHost(t *testing.T) {
	server := echoServer(t)
	tables := "[terminate]\nprefixes = [\"10.8.0.1/32\"]\nmap = { \"10.8.0.1:7\" = \"" + server.String() + "\" }\n"
	hypervisor, _, sockets := guestSites(t, server, 0, "", tables)
	cfg := *hypervisor.g.cfg
	hypervisor.stop()
	vm := *cfg.VM
	vm.Host, vm.Ports = true, []VMPort{{Name: "m1", At: "stream:" + filepath.Join(sockets, "m1")}}
	cfg.VM = &vm
	hypervisor = startConfig(t, &cfg, (&record{}).log(), func(*Gateway) {})
	if err := exchange(startGuest(t, filepath.Join(sockets, "m1"), 11).dial(t, "10.8.0.1:7"), "to the host"); err != nil {
		t.Error(err)
	}
	if s := hypervisor.g.Status(); s.Stack.Terminal.Opened != 1 || s.Peers[0].Sent.Packets != 0 {
		t.Errorf("%+v", s.Stack)
	}
}
