package e2e

import (
	"cmp"
	"net/netip"
	"testing"
	"time"
)

// A fanout is one topic with many subscribers.
type fanout struct {
	protocol    string // of protocols; MQTT where it says nothing
	topic       string // plant/line-3/state where it says nothing
	far         bool   // the publisher is beside the clients, not beside the broker
	subscribers int
	rate        int
	qos         byte
	length      time.Duration
	settle      time.Duration  // after the last message, until all must be there
	broker      netip.AddrPort // the protocol's port on the broker's host where it says nothing
	tls         *credentials   // nil for none
	front       bool           // broker is a gateway in front of the protocol's port, where the publisher goes
}

// A measurement is what a fan-out took.
type measurement struct {
	deliveries
	sent     int
	bodies   uint64        // digest of those that were sent
	up, down count         // at the clients' gateway
	held     time.Duration // longest that the machine did not let a ready process run
}

// perMessage returns the WAN's IP bytes for each delivered message.
func (m *measurement) perMessage() float64 {
	return float64(m.up.bytes+m.down.bytes) / float64(max(m.Received, 1))
}

// fanOut runs a fan-out between the broker and the clients' site and measures
// it. The publisher is beside the broker.
func (l *lab) fanOut(f fanout) *measurement {
	l.t.Helper()
	return l.fanOutWith(f, func() {})
}

// fanOutWith is fanOut with something done a third of its time after it began.
func (l *lab) fanOutWith(f fanout, meanwhile func()) *measurement {
	l.t.Helper()
	topic := cmp.Or(f.topic, "plant/line-3/state")
	plain := netip.AddrPortFrom(l.broker().host4, protocolOf(f.protocol).Port)
	broker := cmp.Or(f.broker, plain)
	publishAt, publishTLS := broker, f.tls
	if f.front {
		publishAt, publishTLS = plain, nil
	}
	subs := l.clients().lan.help("subscribe", subscribers{
		Protocol: f.protocol, Broker: broker, First: l.clients().host4, Count: f.subscribers, Topic: topic, QoS: f.qos, TLS: f.tls,
	})
	time.Sleep(500 * time.Millisecond) // the last acknowledgements of the subscriptions
	held := newPulse()
	sent0, got0 := l.clients().wanCount()
	beside, from := l.broker(), addressAfter(l.broker().host4, 1)
	if f.far {
		beside, from = l.clients(), addressAfter(l.clients().host4, f.subscribers)
	}
	pub := beside.lan.help("publish", publisher{
		Protocol: f.protocol, Broker: publishAt, From: from, Topic: topic, QoS: f.qos, Rate: f.rate, For: f.length, TLS: publishTLS,
	})
	time.Sleep(f.length / 3)
	meanwhile()
	var p published
	pub.wait(&p)
	time.Sleep(max(f.settle, 500*time.Millisecond))
	if h := held.longest(); h > steady {
		time.Sleep(3 * h) // connections that lost their lane wait for their timers
	}
	sent1, got1 := l.clients().wanCount()
	m := &measurement{sent: p.Sent, bodies: p.Bodies, up: sent1.sub(sent0), down: got1.sub(got0), held: held.stop()}
	subs.finish(&m.deliveries)
	return m
}

// plainly measures a fan-out that goes around the tunnel.
func (l *lab) plainly(f fanout) *measurement {
	l.t.Helper()
	l.plainRoutes(true)
	defer l.plainRoutes(false)
	m := l.fanOut(f)
	m.report(l.t, "plain")
	m.wantComplete(l.t, f.subscribers)
	return m
}

// wantWithin fails the test if a time is over its limit, or skips what is left of
// it where the machine may be to blame. What is to happen in any case comes before
// it or is deferred.
func wantWithin(t *testing.T, what string, got, limit time.Duration, of *measurement) {
	t.Helper()
	switch {
	case got <= limit:
	case of.held > steady:
		t.Logf("%s: %v, more than %v, while the machine stood still for %v", what, got, limit, of.held)
		t.Skip(tooSlow)
	default:
		t.Errorf("%s: %v, more than %v", what, got, limit)
	}
}

// wantComplete fails the test unless every message came to every subscriber
// once and in order, over connections that never broke.
func (m *measurement) wantComplete(t *testing.T, subscribers int) {
	t.Helper()
	if m.sent == 0 || m.Received != m.sent*subscribers || m.Least != m.sent || m.Twice > 0 || m.Gaps > 0 || m.LostConns > 0 {
		t.Errorf("%d messages to %d subscribers: %d deliveries (the least %d), %d twice or out of order, %d left out, %d connections lost",
			m.sent, subscribers, m.Received, m.Least, m.Twice, m.Gaps, m.LostConns)
	}
}

// report logs the figures.
func (m *measurement) report(t *testing.T, what string) {
	t.Helper()
	t.Logf("%s: %d messages, %d deliveries; WAN up %d packets %d bytes, down %d packets %d bytes: %.2f bytes per delivery; %v; to the last: %v",
		what, m.sent, m.Received, m.up.packets, m.up.bytes, m.down.packets, m.down.bytes, m.perMessage(), m.Latency, m.Last)
}

// window is how long a segment may wait, the default.
const window = 5 * time.Millisecond

// usual is how long a notification to one of 100 subscribers takes over plain
// forwarding at the median, at most, on a machine with two cores to itself.
const usual = 3500 * time.Microsecond

// What a notification to 100 subscribers takes on the link, and how much later
// it comes than over plain forwarding.
func TestFanOut(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto()
	gateways := l.tunnel(tunnelOptions{offload: true})
	defer wantNothingLost(t, gateways...)
	judge(t, func(a *attempt) {
		f := fanout{subscribers: 100, rate: 20, length: 5 * time.Second}
		plain := l.plainly(f)
		f.length = seconds(30, 10)
		m := l.fanOut(f)
		m.report(t, "sheaf")
		m.wantComplete(t, f.subscribers)
		t.Logf("%.1f times fewer bytes", plain.perMessage()/m.perMessage())
		a.atMost("fan-out to 100", m.perMessage(), slack*claimed(t, "mosquitto, fan-out to 100, QoS 0"))
		// Where plain forwarding takes longer than usual, all else does.
		slow := max(1, float64(plain.Latency.P50)/float64(usual))
		a.within("added at p50", m.Latency.P50-plain.Latency.P50, time.Duration(slow*float64(2*time.Millisecond)))
		a.within("added at p99", m.Latency.P99-plain.Latency.P99, time.Duration(slow*float64(window+5*time.Millisecond)))
	})
	reportGateways(t, gateways...)
}

// What an acknowledged reading of one of 200 devices takes on the link.
func TestTelemetry(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto()
	a := reporters{Broker: l.brokerAddress(), First: l.clients().host4, Count: 200, Every: 2 * time.Second, For: seconds(6, 4)}
	l.plainRoutes(true)
	plain := l.telemetry("plain", a)
	l.plainRoutes(false)
	gateways := l.tunnel(tunnelOptions{offload: true})
	defer wantNothingLost(t, gateways...)
	a.For = seconds(20, 10)
	judge(t, func(try *attempt) {
		b := l.telemetry("sheaf", a)
		t.Logf("%.1f times fewer bytes", plain/b)
		try.atMost("telemetry", b, slack*claimed(t, "mosquitto, telemetry of 200 devices, QoS 1"))
	})
	reportGateways(t, gateways...)
}

// telemetry has devices report, and returns the WAN's IP bytes for each of their
// messages.
func (l *lab) telemetry(what string, a reporters) (bytes float64) {
	t := l.t
	t.Helper()
	var p published
	h := l.clients().lan.help("report", a)
	time.Sleep(500 * time.Millisecond)
	sent0, got0 := l.clients().wanCount()
	h.finish(&p)
	time.Sleep(500 * time.Millisecond)
	sent1, got1 := l.clients().wanCount()
	up, down := sent1.sub(sent0), got1.sub(got0)
	bytes = float64(up.bytes+down.bytes) / float64(p.Sent)
	t.Logf("%s: %d messages; WAN up %d packets %d bytes, down %d packets %d bytes: %.1f bytes per message; acknowledged after %v",
		what, p.Sent, up.packets, up.bytes, down.packets, down.bytes, bytes, p.Latency)
	if p.Sent == 0 || p.Failed > 0 {
		t.Errorf("%s: %d of %d not acknowledged", what, p.Failed, p.Sent)
	}
	return bytes
}

// reportGateways logs what the gateways count.
func reportGateways(t *testing.T, gateways ...*gateway) {
	t.Helper()
	for _, g := range gateways {
		t.Logf("%s: %v of a processor, %d MB resident", g.site.gw.name, g.processor(), g.memory()>>20)
		for _, p := range g.mustStatus().Peers {
			for _, lane := range p.Lanes {
				flushes := map[string]uint64{}
				for why, n := range lane.Flushes {
					if n > 0 {
						flushes[why] = n
					}
				}
				t.Logf("%s to %s: %s flushes %v, verbatim %d", g.site.gw.name, p.Name, lane.Class, flushes, lane.Verbatim)
				if lane.TLS.Connections > 0 {
					t.Logf("%s to %s: %s TLS %+v", g.site.gw.name, p.Name, lane.Class, lane.TLS)
				}
			}
			t.Logf("%s to %s: sent %+v", g.site.gw.name, p.Name, p.Sent)
		}
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
