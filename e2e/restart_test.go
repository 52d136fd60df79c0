package e2e

import (
	"os"
	"strings"
	"testing"
	"time"
)

// A gateway that is killed and comes back: the connections through it live on,
// and every message arrives, once and in order.
func TestRestart(t *testing.T) {
	for _, which := range []string{"broker", "clients"} {
		t.Run(which, func(t *testing.T) {
			l := newLab(t, 2)
			l.broker().mosquitto()
			gateways := l.tunnel(tunnelOptions{offload: true})
			g := gateways[1]
			if which == "clients" {
				g = gateways[0]
			}
			var down time.Duration
			f := fanout{subscribers: 100, rate: 20, length: 6 * time.Second, settle: 5 * time.Second}
			m := l.fanOutWith(f, func() {
				begin := time.Now()
				g.kill()
				if out, err := g.site.gw.try("ip", "link", "show", "sheaf0"); err == nil {
					t.Errorf("kill -9 left the device behind: %s", out)
				}
				g.start()
				l.waitUp(gateways...)
				down = time.Since(begin)
			})
			m.report(t, "with a restart")
			t.Logf("lanes up again after %v", down)
			m.wantComplete(t, f.subscribers)
			// A host's retransmission timer doubles while nothing answers; twice the
			// time without lanes is what the last one may add.
			wantWithin(t, "the latest message", m.Latency.Max, 3*down+2*time.Second, m)
		})
	}
}

// What a gateway made on its host is gone when it is, but for the routes that refuse
// its packets from then on; these go with sheaf down.
func TestNothingLeftBehind(t *testing.T) {
	l := newLab(t, 2)
	gateways := l.configure(tunnelOptions{offload: true})
	g := gateways[0]
	host := func(refused bool) string {
		var b strings.Builder
		for _, args := range []string{"-br link", "-br addr", "route show table all", "-6 route show table all", "rule", "-6 rule"} {
			for line := range strings.Lines(g.site.gw.run("ip", strings.Fields(args)...)) {
				if refused || !strings.HasPrefix(line, "unreachable ") || !strings.Contains(line, " proto 115 ") {
					b.WriteString(line)
				}
			}
		}
		return b.String()
	}
	before := host(true)
	gateways[1].start()
	for _, how := range []string{"kill -9", "SIGTERM"} {
		g.start()
		l.waitUp(gateways...)
		if host(false) == before {
			t.Fatal("the gateway made nothing")
		}
		if how == "SIGTERM" {
			g.terminate()
			if _, err := os.Stat(g.control); err == nil {
				t.Error("the control socket is still there")
			}
		} else {
			g.kill()
		}
		eventually(t, 2*time.Second, func() string {
			return missingUnless(host(false) == before, "left behind after "+how+":\nbefore\n"+before+"\nafter\n"+host(false))
		})
	}
	if host(true) == before {
		t.Error("nothing refuses packets")
	}
	g.site.gw.run(sheaf(t), "down", "-c", g.config)
	if after := host(true); after != before {
		t.Errorf("left behind after sheaf down:\nbefore\n%s\nafter\n%s", before, after)
	}
}
