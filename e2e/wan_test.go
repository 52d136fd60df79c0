package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// A link of 20 ms each way that loses one frame in a hundred: all arrives.
func TestLossAndDelay(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto()
	defer l.relay(wire{Delay: 20 * time.Millisecond, Loss: 0.01})()
	f := fanout{subscribers: 100, rate: 20, length: 4 * time.Second, settle: 3 * time.Second}
	l.plainly(f)
	gateways := l.tunnel(tunnelOptions{offload: true})
	for qos := range byte(2) {
		f.qos, f.length = qos, seconds(6, 5)
		m := l.fanOut(f)
		m.report(t, map[byte]string{0: "QoS 0", 1: "QoS 1"}[qos])
		m.wantComplete(t, f.subscribers)
	}
	wantNothingLost(t, gateways...)
}

// A link of 20 ms each way. A broker that waits for acknowledgements before it
// sends a small segment (Nagle; mosquitto's default) sends a message every 50 ms
// in time only if the acknowledgements are not held back; one that is late makes
// the next ones late. The limit without it is twice that of a link without delay:
// whoever has slept for 20 ms takes longer to wake.
func TestDelay(t *testing.T) {
	for _, c := range []struct {
		name, line string
		limit      time.Duration
		claim      string // README's row
	}{
		{"nodelay", "set_tcp_nodelay true", 4 * time.Millisecond, "the same over 20 ms each way, the broker without Nagle's algorithm"},
		{"nagle", "set_tcp_nodelay false", 20 * time.Millisecond, "the same over 20 ms each way"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 2)
			l.broker().mosquitto(c.line)
			defer l.relay(wire{Delay: 20 * time.Millisecond})()
			f := fanout{subscribers: 100, rate: 20, length: 4 * time.Second}
			l.tunnel(tunnelOptions{offload: true})
			judge(t, func(a *attempt) {
				plain := l.plainly(f)
				m := l.fanOut(f)
				m.report(t, "sheaf")
				m.wantComplete(t, f.subscribers)
				a.atMost("fan-out to 100", m.perMessage(), slack*claimed(t, c.claim))
				a.within("added at p50", m.Latency.P50-plain.Latency.P50, c.limit)
			})
		})
	}
}

// A link that is cut for a while: the epochs end, and all arrives once it is back.
func TestCut(t *testing.T) {
	for _, cut := range []time.Duration{time.Second, 4 * time.Second} {
		t.Run(cut.String(), func(t *testing.T) {
			l := newLab(t, 2)
			l.broker().mosquitto()
			gateways := l.tunnel(tunnelOptions{offload: true})
			f := fanout{subscribers: 100, rate: 20, length: cut + 4*time.Second, settle: 2*cut + 2*time.Second}
			var back time.Duration
			m := l.fanOutWith(f, func() {
				port := l.clients().port
				l.wan.ip("link set " + port + " nomaster")
				time.Sleep(cut)
				l.wan.ip("link set " + port + " master br0")
				begin := time.Now()
				l.waitUp(gateways...)
				back = time.Since(begin)
			})
			m.report(t, "cut for "+cut.String())
			m.wantComplete(t, f.subscribers)
			t.Logf("lanes up %v after the link was", back.Round(time.Millisecond))
			for _, g := range gateways {
				for _, lane := range g.mustStatus().Peers[0].Lanes {
					t.Logf("%s: %s: %d epochs, %d dropped, %s", g.site.gw.name, lane.Class, lane.Epochs, lane.Dropped, lane.Ended)
				}
			}
			// Hosts send again when their timers say so, at worst as long after the
			// cut as it was long.
			wantWithin(t, "the latest message", m.Latency.Max, 2*cut+3*time.Second, m)
		})
	}
}

// A message to 500 subscribers over 1 Mbit/s: plain, it takes 740 ms of the link.
func TestNarrowLink(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto()
	l.shape(1_000_000, 200*time.Millisecond)
	gateways := l.tunnel(tunnelOptions{offload: true})
	f := fanout{subscribers: 500, rate: 2, length: seconds(10, 6), settle: time.Second}
	defer wantNothingLost(t, gateways...)
	judge(t, func(a *attempt) {
		m := l.fanOut(f)
		m.report(t, "1 Mbit/s")
		m.wantComplete(t, f.subscribers)
		a.atMost("fan-out to 500", m.perMessage(), slack*claimed(t, "mosquitto, fan-out to 500 on 1 Mbit/s"))
		// At p90: of 20 messages one or two may meet what else the machine does.
		a.within("until the last subscriber", m.Last.P90, 60*time.Millisecond)
	})
}

// shape holds the link between the first two sites to a rate in bits a second of
// Ethernet frames, each way, and to a queue of that length.
func (l *lab) shape(rate int, backlog time.Duration) {
	l.t.Helper()
	for _, s := range l.sites[:2] {
		l.wan.run("tc", "qdisc", "add", "dev", s.port, "root", "tbf",
			"rate", fmt.Sprintf("%dbit", rate), "burst", "1600", "latency", backlog.String())
	}
}

// Where UDP does not pass, the tunnel runs over TCP.
func TestNoUDP(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto()
	defer l.relay(wire{NoUDP: true})()
	begin := time.Now()
	gateways := l.tunnel(tunnelOptions{offload: true})
	t.Logf("up after %v", time.Since(begin).Round(10*time.Millisecond))
	for _, g := range gateways {
		if p := g.mustStatus().Peers[0]; p.Carrier != "tls" {
			t.Errorf("%s: the carrier is %q", g.name, p.Carrier)
		}
	}
	f := fanout{subscribers: 100, rate: 20, length: 4 * time.Second}
	m := l.fanOut(f)
	m.report(t, "TLS over TCP")
	m.wantComplete(t, f.subscribers)
	wantNothingLost(t, gateways...)
}

// A gateway whose address changes, as behind a mobile network: nothing ends.
func TestAddressChange(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto()
	gateways := l.tunnel(tunnelOptions{offload: true})
	f := fanout{subscribers: 100, rate: 20, length: 4 * time.Second, settle: time.Second}
	m := l.fanOutWith(f, func() {
		l.clients().gw.ip("addr add 192.0.2.101/24 dev wan0", "addr del 192.0.2.1/24 dev wan0")
		// where the kernel takes the addresses of a subnet away with its first
		_, _ = l.clients().gw.try("ip", "addr", "add", "192.0.2.101/24", "dev", "wan0")
	})
	m.report(t, "with a change of address")
	m.wantComplete(t, f.subscribers)
	wantNothingLost(t, gateways...)
	if remote := gateways[1].mustStatus().Peers[0].Remote; !strings.HasPrefix(remote, "192.0.2.101:") {
		t.Errorf("the broker's gateway has its peer at %s", remote)
	}
}

// A broker's gateway that moves to another address: the others find it by its
// name, as soon as that stands for the new one.
func TestBrokerAddressChange(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto()
	caller := l.clients().gw
	caller.hosts("192.0.2.2 broker.example")
	gateways := l.tunnel(tunnelOptions{offload: true, endpoint: "broker.example:4747"})
	f := fanout{subscribers: 100, rate: 20, length: 4 * time.Second, settle: 8 * time.Second}
	var back time.Duration
	m := l.fanOutWith(f, func() {
		l.broker().gw.ip("addr add 192.0.2.102/24 dev wan0", "addr del 192.0.2.2/24 dev wan0")
		_, _ = l.broker().gw.try("ip", "addr", "add", "192.0.2.102/24", "dev", "wan0")
		caller.hosts("192.0.2.102 broker.example")
		begin := time.Now()
		eventually(t, 20*time.Second, func() string {
			p := gateways[0].mustStatus().Peers[0]
			return missingUnless(p.Up && strings.HasPrefix(p.Remote, "192.0.2.102:"), "not connected to the new address, but "+p.Remote)
		})
		l.waitUp(gateways...)
		back = time.Since(begin)
	})
	m.report(t, "with the broker's gateway moved")
	t.Logf("connected anew after %v", back.Round(10*time.Millisecond))
	m.wantComplete(t, f.subscribers)
}

// Bulk beside messages: they have lanes of their own. Bulk is as fast as half of
// wireguard-go at least, and costs the messages little.
func TestBulk(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto("set_tcp_nodelay true")
	l.plainRoutes(true)
	l.bulkBeside("plain")
	l.plainRoutes(false)
	end := l.wireguard()
	wireguard := l.bulkBeside("wireguard-go")
	end()
	l.tunnel(tunnelOptions{offload: true})
	inTime(t, func(within func(string, time.Duration, time.Duration)) {
		b := l.bulkBeside("sheaf")
		within("bulk adds at p99", b.beside.Latency.P99-b.alone.Latency.P99, 20*time.Millisecond)
		if b.rate < wireguard.rate/2 {
			t.Errorf("bulk: %.0f Mbit/s, less than half of wireguard-go's %.0f", b.rate/1e6, wireguard.rate/1e6)
		}
	})
}

// On a narrow link bulk fills the link's own queue, here of 50 ms, in which
// messages wait like everything else; what is before it they overtake.
func TestBulkOnNarrowLink(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto("set_tcp_nodelay true")
	backlog := 50 * time.Millisecond
	defer l.relay(wire{Rate: 20_000_000, Backlog: backlog, Delay: 5 * time.Millisecond})()
	l.plainRoutes(true)
	l.bulkBeside("plain")
	l.plainRoutes(false)
	l.tunnel(tunnelOptions{offload: true})
	inTime(t, func(within func(string, time.Duration, time.Duration)) {
		b := l.bulkBeside("sheaf")
		within("bulk adds at p99", b.beside.Latency.P99-b.alone.Latency.P99, backlog+20*time.Millisecond)
	})
}

// A bulk is a fan-out alone, and beside a bulk transfer that comes from where the
// messages come from.
type bulk struct {
	alone, beside *measurement
	rate          float64 // of the transfer, bits a second
}

func (l *lab) bulkBeside(what string) *bulk {
	t := l.t
	t.Helper()
	f := fanout{subscribers: 100, rate: 20, length: 3 * time.Second, settle: time.Second}
	b := &bulk{alone: l.fanOut(f)}
	b.alone.report(t, what+", alone")
	b.alone.wantComplete(t, f.subscribers)
	var transfer sync.WaitGroup
	b.beside = l.fanOutWith(f, func() {
		transfer.Go(func() {
			out := l.iperf(l.clients(), l.broker(), "-t", "2", "-R")
			var report struct {
				End struct {
					Received struct {
						Rate float64 `json:"bits_per_second"`
					} `json:"sum_received"`
					Sent struct {
						Retransmits int `json:"retransmits"`
					} `json:"sum_sent"`
				}
			}
			if err := json.Unmarshal(out, &report); err != nil {
				t.Errorf("iperf3: %v", err)
			}
			b.rate = report.End.Received.Rate
			t.Logf("%s: bulk: %.1f Mbit/s, %d segments resent", what, b.rate/1e6, report.End.Sent.Retransmits)
		})
	})
	transfer.Wait()
	b.beside.report(t, what+", beside bulk")
	b.beside.wantComplete(t, f.subscribers)
	t.Logf("%s: bulk adds %.1f ms at p50, %.1f ms at p99", what,
		ms(b.beside.Latency.P50-b.alone.Latency.P50), ms(b.beside.Latency.P99-b.alone.Latency.P99))
	return b
}
