package e2e

import (
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// besides lets the two sites talk from their cables' addresses past the tunnel, and
// returns the ways to the broker through it and past it.
func (l *lab) besides() []reachingWay {
	l.clients().gw.ip(fmt.Sprintf("route add 172.16.2.0/30 via %s", l.broker().wan4))
	l.broker().gw.ip(fmt.Sprintf("route add 172.16.1.0/30 via %s", l.clients().wan4))
	return []reachingWay{
		{l.brokerAddress(), l.clients().host4},
		{netip.MustParseAddrPort("172.16.2.2:1883"), netip.MustParseAddr("172.16.1.2")},
	}
}

// A link that was away for half a minute is in use about as soon as it is without a tunnel: a
// new client gets its first answer.
func TestLinkReturns(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto("listener 1883 172.16.2.2")
	l.tunnel(tunnelOptions{offload: true})
	ways := l.besides()
	inTime(t, func(within func(string, time.Duration, time.Duration)) {
		h := l.clients().lan.help("reach", reaching{ways, 200 * time.Millisecond})
		time.Sleep(time.Second)
		port := l.clients().port
		l.wan.ip("link set " + port + " nomaster")
		time.Sleep(32 * time.Second) // as calls of 5 s with ever longer pauses would pause
		l.wan.ip("link set " + port + " master br0")
		back := time.Now()
		time.Sleep(8 * time.Second)
		var r reached
		h.finish(&r)
		took := []time.Duration{0, 0}
		for way := range took {
			var err error
			if took[way], err = r.firstAfter(back, way); err != nil {
				took[way] = 8 * time.Second
			}
		}
		t.Logf("first answer after %v, plain after %v", took[0].Round(time.Millisecond), took[1].Round(time.Millisecond))
		within("first answer", took[0], 2*time.Second)
		within("first answer, later than plain", took[0]-took[1], 1500*time.Millisecond)
	})
}

// dropUDP has a gateway's host drop, or not drop any more, what comes from the WAN
// over UDP.
func (s *site) dropUDP(yes bool) {
	if !yes {
		s.gw.run("nft", "delete table inet noudp")
		return
	}
	s.gw.run("nft", `add table inet noudp;
		add chain inet noudp in { type filter hook prerouting priority -300; };
		add rule inet noudp in iifname "wan0" meta l4proto udp drop`)
}

// UDP is blocked in the middle, and after a while is not any more. TLS takes over,
// also where only the broker's side has something to send, and QUIC is back soon.
func TestUDPBlocked(t *testing.T) {
	for _, from := range []string{"broker", "clients"} {
		t.Run("the "+from+"' side sends", func(t *testing.T) {
			l := newLab(t, 2)
			l.broker().mosquitto()
			gateways := l.tunnel(tunnelOptions{offload: true})
			carried := func(carrier string, limit time.Duration) time.Duration {
				begin := time.Now()
				eventually(t, limit, func() string {
					for _, g := range gateways {
						p := g.mustStatus().Peers[0]
						for _, lane := range p.Lanes {
							if p.Carrier != carrier || !lane.Up {
								return fmt.Sprintf("%s: carrier %q, lane %s up: %v", g.name, p.Carrier, lane.Class, lane.Up)
							}
						}
					}
					return ""
				})
				return time.Since(begin)
			}
			inTime(t, func(within func(string, time.Duration, time.Duration)) {
				carried("quic", 60*time.Second)
				f := fanout{subscribers: 20, rate: 5, length: 12 * time.Second, settle: 5 * time.Second, far: from == "clients"}
				var tls, quic time.Duration
				m := l.fanOutWith(f, func() {
					for _, s := range l.sites {
						s.dropUDP(true)
					}
					tls = carried("tls", 60*time.Second)
					for _, s := range l.sites {
						s.dropUDP(false)
					}
					quic = carried("quic", 60*time.Second)
				})
				m.report(t, "UDP blocked")
				m.wantComplete(t, f.subscribers)
				t.Logf("TLS carries after %v, QUIC again after %v", tls.Round(time.Millisecond), quic.Round(time.Millisecond))
				within("TLS carries", tls, 4*time.Second)
				within("QUIC carries again", quic, 14*time.Second)
			})
		})
	}
}

// A gateway that is ended in order and started again is back as soon as one that was
// killed.
func TestCleanRestart(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto()
	gateways := l.tunnel(tunnelOptions{offload: true})
	way := []reachingWay{{l.brokerAddress(), l.clients().host4}}
	for _, g := range gateways {
		inTime(t, func(within func(string, time.Duration, time.Duration)) {
			h := l.clients().lan.help("reach", reaching{way, 50 * time.Millisecond})
			var started []time.Time
			for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
				time.Sleep(2 * time.Second) // no connection that has only begun
				g.end(sig)
				time.Sleep(600 * time.Millisecond) // a call then repeats itself a second later only
				started = append(started, time.Now())
				g.start()
				l.waitUp(gateways...)
			}
			time.Sleep(time.Second)
			var r reached
			h.finish(&r)
			var took [2]time.Duration
			for i, at := range started {
				var err error
				if took[i], err = r.firstAfter(at, 0); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%s: first answer %v after a start behind SIGKILL, %v behind SIGTERM", g.name, took[0], took[1])
			within("after SIGTERM", took[1], 700*time.Millisecond)
			within("after SIGTERM, later than after SIGKILL", took[1]-took[0], 400*time.Millisecond)
		})
	}
}
