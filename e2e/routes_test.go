package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What others take from the device comes back, and so does traffic. The log says
// what it was.
func TestDeviceIsKept(t *testing.T) {
	l := newLab(t, 2)
	a, b := l.clients(), l.broker()
	gateways := l.tunnel(tunnelOptions{offload: true})
	g := gateways[0]
	for i, damage := range []string{
		"link set sheaf0 down", "link set sheaf0 down\nlink set sheaf0 up", "route flush dev sheaf0", "addr flush dev sheaf0",
		"route flush proto static\nroute flush proto 115",
	} {
		a.gw.ip(strings.Split(damage, "\n")...)
		if damage == "route flush dev sheaf0" {
			a.gw.run("ip", "-6", "route", "flush", "dev", "sheaf0")
		}
		begin := time.Now()
		limit := 2 * time.Second
		if i > 1 {
			limit = 5 * time.Second // the pauses have grown
		}
		for _, host := range []string{b.host4.String(), b.host6.String()} {
			eventually(t, limit, func() string {
				out, err := a.lan.try("ping", "-c", "1", "-W", "1", "-i", "0.1", host)
				return missingUnless(err == nil, damage+": ping "+out)
			})
		}
		t.Logf("%s: traffic again after %v", strings.ReplaceAll(damage, "\n", "; "), time.Since(begin).Round(time.Millisecond))
		eventually(t, 3*time.Second, func() string {
			return missingUnless(len(g.mustStatus().Faults) == 0, fmt.Sprintf("%s: faults %q", damage, g.mustStatus().Faults))
		})
	}
	if n := strings.Count(g.log.String(), `level=WARN msg="somebody changed this host's network`); n < 5 {
		t.Errorf("the log tells of %d repairs", n)
	}

	// What is not the gateway's to mend is told.
	half := halves(b.net4)[1].String()
	doctor := func() string {
		out, _ := a.gw.try(sheaf(t), "doctor", "-c", g.config)
		return out
	}
	list := func() string { return a.gw.run(sheaf(t), "route", "list", "--control", g.control) }
	if out := doctor(); strings.Contains(out, "FAIL") {
		t.Errorf("doctor:\n%s", out)
	}
	a.gw.ip("route add " + half + " dev wan0")
	for what, out := range map[string]string{"doctor": doctor(), "route list": list(), "status": a.gw.run(sheaf(t), "status", "--control", g.control)} {
		if !strings.Contains(out, "device wan0 has "+half+" inside it") {
			t.Errorf("%s says nothing of it:\n%s", what, out)
		}
	}
	a.gw.ip("route del " + half + " dev wan0")
	if out := list(); strings.Contains(out, "but") {
		t.Errorf("route list:\n%s", out)
	}

	// A device that is gone is not made again, and the gateway does not stay on without.
	a.gw.ip("link del sheaf0")
	eventually(t, 5*time.Second, func() string { return missingUnless(!g.running(), "the gateway runs on") })
	if g.err == nil || !strings.Contains(g.log.String(), "removed by somebody else") {
		t.Errorf("it ended with %v:\n%s", g.err, g.log.String())
	}
}

// While no gateway runs its packets do not leave in the clear, unless they may.
func TestFallback(t *testing.T) {
	for _, fallback := range []string{"refuse", "route"} {
		t.Run(fallback, func(t *testing.T) {
			l := newLab(t, 2)
			a, b := l.clients(), l.broker()
			// The host's way to everywhere else, where what leaves is counted.
			a.gw.ip("link add clear type veth peer name from-clear netns "+l.wan.ns,
				"link set clear arp off", "link set clear addrgenmode none") // neither asks nor announces
			l.wan.ip("link set from-clear addrgenmode none up")
			a.gw.ip("link set clear up", "route add default dev clear")
			a.gw.run("ip", "-6", "route", "add", "default", "dev", "clear")
			seen := launch(t, "tcpdump on clear", a.gw.command("tcpdump", "-i", "clear", "-n", "-l", "--immediate-mode", "icmp or icmp6"))
			eventually(t, 10*time.Second, func() string { return missingUnless(strings.Contains(seen.log.String(), "listening on"), "tcpdump") })
			left := func() int { return strings.Count(seen.log.String(), "echo request") }
			gateways := l.configure(tunnelOptions{offload: true, fallback: fallback})
			g := gateways[0]
			refused := a.gw.run(sheaf(t), "up", "--refuse", "-c", g.config) // as at boot
			if want := map[string]string{"refuse": "4 subnets", "route": "0 subnets"}[fallback]; !strings.HasPrefix(refused, want) {
				t.Error(refused)
			}
			a.lan.ping(false, b.host4.String())
			gateways[1].start()
			for _, how := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
				g.start()
				l.waitUp(gateways...)
				a.lan.ping(true, b.host4.String())
				a.lan.ping(true, b.host6.String())
				g.end(how)
				for _, host := range []string{b.host4.String(), b.host6.String()} {
					out := a.lan.ping(false, host)
					if said := strings.Contains(strings.ToLower(out), "unreachable"); said != (fallback == "refuse") {
						t.Errorf("%v: ping %s:\n%s", how, host, out)
					}
				}
			}
			a.lan.ping(false, "203.0.113.1") // other packets leave as ever
			want := map[string]int{"refuse": 3, "route": 3 + 3 + 2*2*3}[fallback]
			eventually(t, 2*time.Second, func() string {
				return missingUnless(left() >= want, fmt.Sprintf("tcpdump saw %d packets, not %d", left(), want))
			})
			if got := left(); got != want {
				t.Errorf("%d packets left by the default route, not %d", got, want)
			}

			down := func() string { return a.gw.run(sheaf(t), "down", "-c", g.config) }
			switch out := down(); {
			case fallback == "route" && out != "nothing was left behind\n":
				t.Error(out)
			case fallback == "refuse" && strings.Count(out, " is refused no longer\n") != 4:
				t.Error(out)
			}
			if out := down(); out != "nothing was left behind\n" {
				t.Error(out)
			}
			if fallback == "route" {
				return
			}
			// A start with fallback = "route", or without the prefix, removes them as well.
			g.start()
			l.waitUp(gateways...)
			if out, err := a.gw.try(sheaf(t), "down", "-c", g.config); err == nil || !strings.Contains(out, "a gateway is running") {
				t.Errorf("down: %v\n%s", err, out)
			}
			g.kill()
			text, err := os.ReadFile(g.config)
			if err != nil {
				t.Fatal(err)
			}
			other := strings.Replace(string(text), fmt.Sprintf("%q, ", b.net4.String()), "", 1)
			g.config = filepath.Join(l.dir, "other.toml")
			if err := os.WriteFile(g.config, []byte(other), 0o600); err != nil || other == string(text) {
				t.Fatal(err)
			}
			g.start()
			l.waitUp(gateways...)
			if out := a.gw.run("ip", "route", "show", "proto", "115"); strings.Contains(out, b.net4.String()) || !strings.Contains(out, b.own4.String()) {
				t.Errorf("fallback routes:\n%s", out)
			}
		})
	}
}
