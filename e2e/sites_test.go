package e2e

import (
	"testing"
	"time"
)

// Three sites of clients at one broker's gateway.
func TestSites(t *testing.T) {
	l := newLab(t, 4)
	l.broker().mosquitto()
	gateways := l.tunnel(tunnelOptions{offload: true})
	const each = 50
	sites := []*site{l.sites[0], l.sites[2], l.sites[3]}
	var subs []*helper
	for _, s := range sites {
		subs = append(subs, s.lan.help("subscribe", subscribers{Broker: l.brokerAddress(), First: s.host4, Count: each, Topic: "plant/line-3/state"}))
	}
	// The publisher is a client of the last site.
	last := sites[2]
	pub := last.lan.help("publish", publisher{
		Broker: l.brokerAddress(), From: addressAfter(last.host4, each), Topic: "plant/line-3/state", Rate: 20, For: 5 * time.Second,
	})
	sent0, got0 := l.broker().wanCount()
	var p published
	pub.wait(&p)
	time.Sleep(500 * time.Millisecond)
	sent1, got1 := l.broker().wanCount()
	delivered := 0
	for i, h := range subs {
		m := &measurement{sent: p.Sent}
		h.finish(&m.deliveries)
		t.Logf("site %d: %v", sites[i].number, m.Latency)
		m.wantComplete(t, each)
		delivered += m.Received
	}
	bytes := sent1.sub(sent0).bytes + got1.sub(got0).bytes
	t.Logf("%d deliveries, %.2f bytes each at the broker's gateway", delivered, float64(bytes)/float64(delivered))
	if float64(bytes) > 10*float64(delivered) {
		t.Errorf("%d bytes for %d deliveries, more than 10 each", bytes, delivered)
	}
	wantNothingLost(t, gateways...)
	for _, a := range sites { // what is behind one site is not for another: no route
		for _, b := range sites {
			if a != b {
				a.lan.ping(false, "-c", "1", b.host4.String())
			}
		}
	}
}

// What 10,000 open connections cost a gateway.
func TestManyConnections(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto()
	gateways := l.tunnel(tunnelOptions{offload: true})
	a := connections{Broker: l.brokerAddress(), First: addressAfter(l.clients().host4, 256), Sources: 1000, Count: 10_000}
	h := l.clients().lan.help("connect", a)
	for _, g := range gateways {
		rss := g.memory()
		t.Logf("%s: %d MB resident", g.site.gw.name, rss>>20)
		if rss > 200<<20 {
			t.Errorf("%s: %d MB resident, more than 200", g.name, rss>>20)
		}
	}
	f := fanout{subscribers: 20, rate: 20, length: 2 * time.Second}
	m := l.fanOut(f) // others are served beside the idle ones
	m.wantComplete(t, f.subscribers)
	var c connected
	h.finish(&c)
	t.Logf("%d connections in %v; %v beside them", c.Open, c.Took.Round(10*time.Millisecond), m.Latency)
	if c.Open != a.Count || c.Lost > 0 {
		t.Errorf("%d of %d connections open, %d lost", c.Open, a.Count, c.Lost)
	}
	wantNothingLost(t, gateways...)
}
