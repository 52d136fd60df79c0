package e2e

import (
	"encoding/json"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"sheaf/engine"
)

// sheaf runs a subcommand on the gateway's machine and returns its output.
func (g *gateway) sheaf(args ...string) (string, error) {
	g.t.Helper()
	return g.site.gw.try(sheaf(g.t), args...)
}

// What an administrator does to a running gateway.
func TestCommands(t *testing.T) {
	l := newLab(t, 2)
	gateways := l.tunnel(tunnelOptions{offload: true})
	a, b := l.clients(), l.broker()
	l.broker().mosquitto()
	a.lan.run("mosquitto_pub", "-h", b.host4.String(), "-t", "plant/state", "-m", "running")
	ga, gb := gateways[0], gateways[1]
	do := func(g *gateway, args ...string) string {
		t.Helper()
		out, err := g.sheaf(append(args, "--control", g.control)...)
		if err != nil {
			t.Errorf("sheaf %v: %v\n%s", args, err, out)
		}
		return out
	}

	t.Run("status", func(t *testing.T) {
		var s engine.Status
		if out := do(ga, "status", "--json"); json.Unmarshal([]byte(out), &s) != nil || len(s.Peers) != 1 || !s.Peers[0].Up ||
			s.Device != "sheaf0" || s.Peers[0].Sent.Bytes <= s.Peers[0].Sent.BytesFrames {
			t.Errorf("status --json: %s", out)
		}
		out := do(ga, "status")
		for _, want := range []string{"gw2", "plant/state", "quic"} {
			if !strings.Contains(out, want) {
				t.Errorf("status does not tell of %s:\n%s", want, out)
			}
		}
	})

	// A subnet that the configuration does not have, behind the broker's gateway.
	t.Run("route", func(t *testing.T) {
		extra := netip.MustParseAddr("10.2.50.10")
		b.lan.ip("addr add " + extra.String() + "/32 dev eth0")
		b.gw.ip("route add 10.2.50.0/24 via 172.16.2.2")
		a.lan.ping(false, "-c", "1", extra.String())
		do(ga, "route", "add", "10.2.50.0/24", "gw2")
		a.lan.ping(true, extra.String())
		if out := do(ga, "route", "list"); !strings.Contains(out, "10.2.50.0/24") {
			t.Errorf("route list:\n%s", out)
		}
		do(ga, "route", "del", "10.2.50.0/24")
		a.lan.ping(false, "-c", "1", extra.String())
	})

	t.Run("reload", func(t *testing.T) {
		text, err := os.ReadFile(ga.config)
		if err != nil {
			t.Fatal(err)
		}
		more := strings.Replace(string(text), `"10.2.0.0/24"`, `"10.2.0.0/24", "10.2.50.0/24"`, 1)
		for _, step := range []struct {
			text string
			want bool
		}{{more, true}, {string(text), false}} {
			if err := os.WriteFile(ga.config, []byte(step.text), 0o600); err != nil {
				t.Fatal(err)
			}
			_ = ga.cmd.Process.Signal(syscall.SIGHUP)
			eventually(t, 5*time.Second, func() string {
				out := a.gw.run("ip", "route", "show", "dev", "sheaf0")
				return missingUnless(strings.Contains(out, "10.2.50.0/24") == step.want, "the routes are\n"+out)
			})
			a.lan.ping(step.want, "-c", "1", "10.2.50.10")
		}
		for _, lane := range ga.mustStatus().Peers[0].Lanes {
			if lane.Epochs != 1 {
				t.Errorf("reload ended an epoch: %+v", lane)
			}
		}
	})

	t.Run("doctor", func(t *testing.T) {
		for _, g := range []*gateway{ga, gb} {
			if out, err := g.sheaf("doctor", "-c", g.config); err != nil {
				t.Errorf("doctor on a gateway that works: %v\n%s", err, out)
			}
		}
		a.gw.sysctl("net.ipv4.ip_forward=0")
		if out, err := ga.sheaf("doctor", "-c", ga.config); err == nil && !strings.Contains(out, "warn") {
			t.Errorf("doctor does not see that forwarding is off:\n%s", out)
		}
		a.gw.sysctl("net.ipv4.ip_forward=1")
	})
}
