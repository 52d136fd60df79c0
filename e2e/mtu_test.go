package e2e

import (
	"fmt"
	"testing"
	"time"
)

// narrow is the MTU that a path falls to, of 1500.
const narrow = 1300

// A path whose MTU falls while the gateways are connected, as when an uplink gives
// way to another one: large messages come through all the same, and small ones wait
// for them once, for as long as it takes to notice.
//
//   - A router that tells of it (ICMP) is heard, and so is the gateway's own device,
//     when nothing got through for half a second.
//   - One that does not is found out when the lane stalls, after 2 s. Hosts that got no
//     answer for that long try again after as long, at worst.
//   - Over TCP segments are small from the beginning, and nothing happens.
func TestPathMTUFalls(t *testing.T) {
	for _, c := range []struct {
		name    string
		carrier string
		o       tunnelOptions
		silent  bool // the router
		fall    func(l *lab)
		latest  time.Duration // of the small messages
	}{
		{"quic", "quic", tunnelOptions{}, false, (*lab).narrowPath, 2500 * time.Millisecond},
		{"quic over IPv6", "quic", tunnelOptions{outside6: true}, false, (*lab).narrowPath, 2500 * time.Millisecond},
		{"quic, own device", "quic", tunnelOptions{}, true, (*lab).narrowDevice, 2500 * time.Millisecond},
		{"quic, no ICMP", "quic", tunnelOptions{}, true, (*lab).narrowPath, 5 * time.Second},
		{"tls", "tls", tunnelOptions{}, false, (*lab).narrowPath, 2 * time.Second},
		{"tls, no ICMP", "tls", tunnelOptions{}, true, (*lab).narrowPath, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 2)
			l.broker().mosquitto()
			l.router(c.silent)
			c.o.offload, c.o.top = true, fmt.Sprintf("carrier = [%q]", c.carrier)
			gateways := l.tunnel(c.o)
			small, large := l.besideLarge(func() { c.fall(l) })
			small.report(t, "small messages")
			large.report(t, "large messages")
			small.wantComplete(t, smallSubscribers)
			large.wantComplete(t, largeSubscribers)
			t.Logf("later than 1 s: %.1f %% of the small messages", 100*float64(small.Late)/float64(max(small.Received, 1)))
			for _, g := range gateways {
				for _, lane := range g.mustStatus().Peers[0].Lanes {
					t.Logf("%s: %s: %d epochs, %d dropped, %s", g.site.gw.name, lane.Class, lane.Epochs, lane.Dropped, lane.Ended)
				}
			}
			wantWithin(t, "the latest small message", small.Latency.Max, c.latest, small)
		})
	}
}

const smallSubscribers, largeSubscribers = 20, 3

// besideLarge measures small messages, and large ones that are sent beside them to
// other subscribers. 2 s after it begins, fall is called.
func (l *lab) besideLarge(fall func()) (small, large *measurement) {
	l.t.Helper()
	const length, trace = 7 * time.Second, 6000
	topic := "plant/line-3/trace"
	subs := l.clients().lan.help("subscribe", subscribers{
		Broker: l.brokerAddress(), First: addressAfter(l.clients().host4, 1000), Count: largeSubscribers, Topic: topic,
	})
	pub := l.broker().lan.help("publish", publisher{
		Broker: l.brokerAddress(), From: addressAfter(l.broker().host4, 2), Topic: topic, Rate: 4, For: length, Trace: trace,
	})
	small = l.fanOutWith(fanout{subscribers: smallSubscribers, rate: 20, length: length - time.Second, settle: 3 * time.Second}, fall)
	large = &measurement{held: small.held}
	var p published
	pub.wait(&p)
	large.sent, large.bodies = p.Sent, p.Bodies
	subs.finish(&large.deliveries)
	return small, large
}

// router puts a router in the place of the bridge between the first two sites. A
// silent one sends no ICMP.
func (l *lab) router(silent bool) {
	l.t.Helper()
	l.wan.sysctl("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", "net.ipv4.conf.all.rp_filter=0")
	l.wan.ip("addr add 192.0.2.254/32 dev lo", "addr add fd00:ff::fe/128 dev lo")
	for i, s := range l.sites[:2] {
		o := l.sites[1-i]
		l.wan.sysctl("net.ipv4.conf."+s.port+".proxy_arp=1", "net.ipv4.conf."+s.port+".rp_filter=0",
			"net.ipv4.neigh."+s.port+".proxy_delay=0", "net.ipv6.conf."+s.port+".proxy_ndp=1",
			"net.ipv6.neigh."+s.port+".proxy_delay=0")
		l.wan.ip("link set "+s.port+" nomaster",
			fmt.Sprintf("route add %s/32 dev %s", s.wan4, s.port),
			fmt.Sprintf("route add %s/128 dev %s", s.wan6, s.port),
			fmt.Sprintf("neigh add proxy %s dev %s", o.wan6, s.port))
	}
	if silent {
		for _, version := range []string{"-4", "-6"} {
			l.wan.run("ip", version, "rule", "add", "pref", "1", "ipproto", "icmp", "blackhole")
		}
	}
}

// narrowPath has the router carry smaller packets only from now on.
func (l *lab) narrowPath() {
	l.t.Helper()
	for _, s := range l.sites[:2] {
		l.wan.ip(fmt.Sprintf("route replace %s/32 dev %s mtu lock %d", s.wan4, s.port, narrow),
			fmt.Sprintf("route replace %s/128 dev %s mtu %d", s.wan6, s.port, narrow))
	}
}

// narrowDevice makes the gateways' own devices take smaller packets only.
func (l *lab) narrowDevice() {
	l.t.Helper()
	for _, s := range l.sites[:2] {
		s.gw.ip(fmt.Sprintf("link set wan0 mtu %d", narrow))
	}
}
