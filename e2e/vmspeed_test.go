package e2e

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"sheaf/e2e/order"
)

// sink is what the sink role does: it counts the datagrams that come to an address.
type sink struct{ At netip.AddrPort }

func countDatagrams(a sink) (int, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(a.At))
	if err != nil {
		return 0, err
	}
	_ = c.SetReadBuffer(8 << 20)
	got := make(chan int)
	go func() {
		n, b := 0, make([]byte, 2048)
		for {
			if _, _, err := c.ReadFromUDPAddrPort(b); err != nil {
				got <- n
				return
			}
			n++
		}
	}()
	sayReady()
	untilTold()
	c.Close()
	return <-got, nil
}

// A pace is what a guest's NIC bears.
type pace struct {
	perSecond float64 // frames of 162 bytes from the guest
	arrived   int     // of paced
	echo      order.Quantiles
}

// paced is how many datagrams a flood has.
const paced = 30000

// How many frames a second a guest sends, to the gateway by each kind of port and to the
// emulator's own user-mode network. Under emulation most of what a frame takes is the
// guest's.
func TestGuestPace(t *testing.T) {
	l := newLab(t, 2)
	gateways := l.configure(tunnelOptions{ports: map[*site]string{l.clients(): l.guestTables(1, 1, "")}})
	l.withoutRoot(gateways[0])
	for _, g := range gateways {
		g.start()
	}
	l.waitUp(gateways...)
	at := seat{1, 1}
	user := kind{"user", 8}
	g := l.clients().gw.boot(machine{name: "paced", nics: append(l.nics(at), nic{kind: user.name, mac: at.mac(user)})})
	measure := func(k kind) pace {
		to, echo := netip.AddrPortFrom(at.routers(k)[0], 9), at.routers(k)[0]
		received := func() int { return int(l.port(gateways[0], at.port(k)).Link.Received) }
		var counter *helper
		if k == user {
			to, echo = netip.AddrPortFrom(userRouter, 9999), userRouter
			counter = l.clients().gw.help("sink", sink{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), 9999)})
			g.ask("net", order.Net{MAC: at.mac(user), Addresses: []netip.Prefix{netip.PrefixFrom(userAddress, 24)}, Routers: []netip.Addr{userRouter}}, nil)
		} else {
			g.ask("net", at.net(k), nil)
		}
		var p order.Pinged
		g.ask("ping", order.Ping{To: echo, Count: 200, Every: 5 * time.Millisecond, Wait: 5 * time.Second}, &p)
		before := 0
		if k != user {
			before = received()
		}
		var f order.Flooded
		g.ask("flood", order.Flood{To: to, Size: 120, Count: paced}, &f)
		time.Sleep(500 * time.Millisecond)
		m := pace{perSecond: float64(f.Sent) / f.Took.Seconds(), echo: p.Took}
		if k == user {
			counter.finish(&m.arrived)
		} else {
			m.arrived = received() - before
		}
		t.Logf("%-10s %6.0f frames/s from the guest, %d of %d arrived; echo p50 %.2f ms, p99 %.2f ms, %d of 200", k.name, m.perSecond, m.arrived, paced, ms(p.Took.P50), ms(p.Took.P99), p.Got)
		return m
	}
	slirp := measure(user)
	for _, k := range kinds {
		m := measure(k)
		t.Logf("%-10s %.2f times as many frames as the user-mode network", k.name, m.perSecond/slirp.perSecond)
		if m.arrived < paced {
			t.Errorf("%s: %d of %d frames arrived", k.name, m.arrived, paced)
		}
	}
}
