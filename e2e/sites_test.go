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
	defer wantNothingLost(t, gateways...)
	sites := []*site{l.sites[0], l.sites[2], l.sites[3]}
	for _, a := range sites { // what is behind one site is not for another: no route
		for _, b := range sites {
			if a != b {
				a.lan.ping(false, "-c", "1", b.host4.String())
			}
		}
	}
	judge(t, func(a *attempt) {
		a.atMost("fan-out to 150", l.fanOutTo(sites, 50), slack*claimed(t, "mosquitto, fan-out to three sites of 50 each, at the broker's gateway"))
	})
}

// fanOutTo runs a fan-out to some subscribers of each site, and returns the bytes
// at the broker's gateway for each message delivered. The publisher is a client of
// the last site.
func (l *lab) fanOutTo(sites []*site, each int) float64 {
	t := l.t
	t.Helper()
	var subs []*helper
	for _, s := range sites {
		subs = append(subs, s.lan.help("subscribe", subscribers{Broker: l.brokerAddress(), First: s.host4, Count: each, Topic: "plant/line-3/state"}))
	}
	last := sites[len(sites)-1]
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
	return float64(sent1.sub(sent0).bytes+got1.sub(got0).bytes) / float64(delivered)
}

// What 10,000 open connections cost a gateway.
func TestManyConnections(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto()
	gateways := l.tunnel(tunnelOptions{offload: true})
	a := connections{Broker: l.brokerAddress(), First: addressAfter(l.clients().host4, 256), Sources: 1000, Count: 10_000}
	h := l.clients().lan.help("connect", a)
	most := slack * claimedMemory(t)
	for _, g := range gateways {
		mb := float64(g.memory()) / (1 << 20)
		t.Logf("%s: %.1f MB resident of %.1f", g.site.gw.name, mb, most)
		if mb > most {
			t.Errorf("%s: %.1f MB resident, more than %.1f", g.name, mb, most)
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
