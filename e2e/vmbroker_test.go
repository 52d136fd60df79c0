package e2e

import (
	"net/netip"
	"testing"
	"time"

	"sheaf/e2e/order"
)

// The broker is a guest as well, and there are clients at its gateway and at the other one:
// both gateways are hypervisors', without a device and without root.
func TestGuestBroker(t *testing.T) {
	l := newLab(t, 2)
	gateways := l.configure(tunnelOptions{ports: map[*site]string{
		l.clients(): l.guestTables(1, 1, ""), l.broker(): l.guestTables(2, 2, "between = true"),
	}})
	l.withoutRoot(gateways...)
	for _, g := range gateways {
		g.start()
	}
	l.waitUp(gateways...)
	far, near, seatOfBroker := seat{1, 1}, seat{2, 1}, seat{2, 2}
	h := &hypervisor{lab: l, outer: t, guests: []*guest{
		l.clients().gw.powerOn(machine{name: "far", nics: l.nics(far)}),
		l.broker().gw.powerOn(machine{name: "near", nics: l.nics(near)}),
	}}
	broker := l.broker().gw.boot(machine{name: "broker", nics: l.nics(seatOfBroker), broker: true})
	for _, g := range h.guests {
		g.awaitBoot()
	}
	broker.ask("run", order.Run{Argv: []string{"/mosquitto", "-c", "/etc/mosquitto.conf"}, Port: 1883, Wait: 30 * time.Second}, nil)
	for qos, k := range kinds {
		broker.ask("net", seatOfBroker.net(k), nil)
		h.together(func(number int, g *guest) error { return g.try("net", []seat{far, near}[number-1].net(k), nil) })
		c := &conversation{
			h: h, topic: "to-a-guest-" + k.name, qos: byte(qos),
			broker: netip.AddrPortFrom(seatOfBroker.addresses(k)[qos%2], 1883), // IPv6 for the second
		}
		c.connect()
		sent0, _ := l.clients().wanCount()
		c.publish(40, brisk)
		own := c.settled(20 * time.Second)
		sent1, _ := l.clients().wanCount()
		t.Logf("%s, QoS %d: far p50 %.2f ms, max %.2f ms; beside the broker p50 %.2f ms, max %.2f ms; WAN up %+v",
			k.name, qos, ms(own[0].P50), ms(own[0].Max), ms(own[1].P50), ms(own[1].Max), sent1.sub(sent0))
		c.end()
		for _, p := range []struct {
			g    *gateway
			port string
		}{{gateways[0], far.port(k)}, {gateways[1], near.port(k)}, {gateways[1], seatOfBroker.port(k)}} {
			if s := l.port(p.g, p.port); s.Link.Received == 0 || s.Link.Sent == 0 {
				t.Errorf("%s: %s: %+v", p.g.name, p.port, s.Link)
			}
		}
	}
	for _, g := range gateways {
		for _, p := range g.mustStatus().Peers {
			if p.Refused > 0 {
				t.Errorf("%s: %d packets refused", g.name, p.Refused)
			}
		}
	}
}
