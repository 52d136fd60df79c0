package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sheaf/e2e/order"
)

// A hypervisor is a lab in which the gateway of the first site is a hypervisor's: guests
// are its clients, each with a NIC at a port of each kind, and it has neither a device nor
// root. Beside them each guest has a NIC behind the gateway of the third site, which has a
// device: what the ports are compared with.
//
//	guest 1, 2, 3 --- ports ----- gw1 ---+--- gw2 ---- broker
//	              --- TAP, vms -- gw3 ---+
//
//	kind K, guest G    52:54:00:01:K:G, 10.1.0.K*10+G, fd00:1::K*10+G
//	behind the device  52:54:00:01:09:G, 10.3.200.G, fd00:3::200:G
type hypervisor struct {
	*lab
	outer    *testing.T // of the whole test; lab.t is that of the part which runs
	host     *gateway   // the hypervisor's
	far      *gateway
	device   *gateway
	guests   []*guest
	gateways []*gateway
	talks    int              // conversations so far, which have topics of their own
	behind   map[byte]float64 // bytes for each delivery behind the device, by QoS
}

// A kind is one of ports, or the device that they are compared with.
type kind struct {
	name   string
	number int
}

// device is what ports are compared with.
var device = kind{"tap", 9}

// kinds are those of ports that carry a NIC.
var kinds = []kind{{"vhost-user", 1}, {"stream", 2}, {"dgram", 3}}

// guestCount is how many guests there are at a time.
const guestCount = 3

// A seat is a guest's at the hypervisor of a site; both are numbered from 1.
type seat struct{ site, guest int }

// mac returns the MAC of the guest's NIC of a kind.
func (s seat) mac(k kind) string {
	return fmt.Sprintf("52:54:00:%02x:%02x:%02x", s.site, k.number, s.guest)
}

// addresses returns the guest's addresses of IPv4 and IPv6.
func (s seat) addresses(k kind) []netip.Addr {
	if k == device {
		return []netip.Addr{netip.AddrFrom4([4]byte{10, 3, 200, byte(s.guest)}), netip.MustParseAddr(fmt.Sprintf("fd00:3::200:%d", s.guest))}
	}
	n := 10*k.number + s.guest
	return []netip.Addr{netip.AddrFrom4([4]byte{10, byte(s.site), 0, byte(n)}), netip.MustParseAddr(fmt.Sprintf("fd00:%d::%d", s.site, n))}
}

// routers returns the gateway's addresses in the guests' network.
func (s seat) routers(k kind) []netip.Addr {
	if k == device {
		return []netip.Addr{netip.MustParseAddr("10.3.200.254"), netip.MustParseAddr("fd00:3::200:254")}
	}
	return []netip.Addr{netip.AddrFrom4([4]byte{10, byte(s.site), 0, 1}), netip.MustParseAddr(fmt.Sprintf("fd00:%d::1", s.site))}
}

// net is the order by which the guest uses its NIC of a kind.
func (s seat) net(k kind) order.Net {
	o := order.Net{MAC: s.mac(k), Routers: s.routers(k)}
	for _, a := range s.addresses(k) {
		bits := 24
		if a.Is6() {
			bits = 112
		}
		o.Addresses = append(o.Addresses, netip.PrefixFrom(a, bits))
	}
	return o
}

// dials tells whether the gateway calls the guest's emulator. A stream's it calls always,
// since QEMU 7.2 does not call a gateway again that was gone.
func (s seat) dials(k kind) bool { return k.name == "stream" || k.name == "vhost-user" && s.guest == 2 }

// port returns the name of the guest's port of a kind.
func (s seat) port(k kind) string { return fmt.Sprintf("%s-%d", k.name, s.guest) }

// socket returns the path of its socket.
func (l *lab) socket(s seat, k kind) string {
	return filepath.Join(l.dir, fmt.Sprintf("%d-%s", s.site, s.port(k)))
}

// nics returns a NIC of each kind of port for a guest.
func (l *lab) nics(s seat) (all []nic) {
	for _, k := range kinds {
		all = append(all, nic{kind: k.name, path: l.socket(s, k), mac: s.mac(k), dial: s.dials(k)})
	}
	return all
}

// guestTables is the configuration of the ports of a site's guests.
func (l *lab) guestTables(site, guests int, further string) string {
	b := &strings.Builder{}
	r := seat{site, 1}.routers(kinds[0])
	fmt.Fprintf(b, "[vm]\naddress = [\"%v/24\", \"%v/64\"]\n%s\n", r[0], r[1], further)
	for _, k := range kinds {
		for g := 1; g <= guests; g++ {
			s := seat{site, g}
			a := s.addresses(k)
			fmt.Fprintf(b, "[[vm.port]]\nname = %q\nat = \"%s:%s\"\ndial = %v\nmac = %q\naddress = [%q, %q]\n", s.port(k), k.name, l.socket(s, k), s.dials(k), s.mac(k), a[0], a[1])
		}
	}
	return b.String()
}

// withoutRoot has gateways run as nobody, who gets what is theirs.
func (l *lab) withoutRoot(gateways ...*gateway) {
	l.t.Helper()
	for _, g := range gateways {
		g.nobody = true
		for _, path := range []string{l.dir, g.config, filepath.Join(l.dir, g.site.gw.name+".key")} {
			if err := os.Chown(path, nobody, nobody); err != nil {
				l.t.Fatal(err)
			}
		}
	}
}

func tapName(guest int) string { return fmt.Sprintf("tap%d", guest) }

// newHypervisor makes the lab and starts its gateways, without guests.
func newHypervisor(t *testing.T) *hypervisor {
	t.Helper()
	h := &hypervisor{lab: newLab(t, 3), outer: t, behind: map[byte]float64{}}
	h.gateways = h.configure(tunnelOptions{ports: map[*site]string{h.clients(): h.guestTables(1, guestCount, fmt.Sprintf("dns = %q", beside.At))}})
	h.host, h.far, h.device = h.gateways[0], h.gateways[1], h.gateways[2]
	h.withoutRoot(h.host)
	r := seat{1, 1}.routers(device)
	h.device.site.gw.ip("link add vms type bridge forward_delay 0 mcast_snooping 0", "link set vms up",
		fmt.Sprintf("addr add %v/24 dev vms", r[0]), fmt.Sprintf("addr add %v/112 dev vms nodad", r[1]))
	h.broker().mosquitto("set_tcp_nodelay true") // or chance has more to say on how many packets there are
	for _, g := range h.gateways {
		g.start()
	}
	h.waitUp(h.gateways...)
	return h
}

// bootGuests boots the guests.
func (h *hypervisor) bootGuests() {
	h.t.Helper()
	for g := 1; g <= guestCount; g++ {
		h.guests = append(h.guests, h.powerOn(g))
	}
	for _, g := range h.guests {
		g.awaitBoot()
	}
}

// powerOn starts a guest, and moves its TAP behind the device once the emulator has it.
func (h *hypervisor) powerOn(number int) *guest {
	h.t.Helper()
	tap, at := tapName(number), seat{1, number}
	g := h.host.site.gw.powerOn(machine{
		name: fmt.Sprintf("guest-%d", number),
		nics: append(h.nics(at), nic{kind: "tap", path: tap, mac: at.mac(device)}),
	})
	eventually(h.t, bootLimit, func() string {
		if !g.running() {
			return "the emulator has ended: " + g.log.String()
		}
		out, err := h.host.site.gw.try("ip", "link", "show", "dev", tap)
		return missingUnless(err == nil, out)
	})
	h.host.site.gw.ip(fmt.Sprintf("link set %s netns %s", tap, h.device.site.gw.ns))
	h.device.site.gw.ip(fmt.Sprintf("link set %s master vms up", tap))
	return g
}

// part runs a part of the test, which what it starts does not outlive, but for what it
// starts with outside.
func (h *hypervisor) part(name string, f func(t *testing.T)) {
	h.outer.Run(name, func(t *testing.T) {
		h.belong(t)
		defer h.belong(h.outer)
		f(t)
	})
}

// outside has f start what is to outlive the part.
func (h *hypervisor) outside(f func()) {
	inner := h.t
	h.belong(h.outer)
	defer h.belong(inner)
	f()
}

// belong has what fails be a test's failure.
func (h *hypervisor) belong(t *testing.T) {
	h.t = t
	for _, g := range h.guests {
		g.t = t
	}
	for _, g := range h.gateways {
		g.t = t
	}
}
