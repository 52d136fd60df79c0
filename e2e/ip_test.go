package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// ping pings from a node and returns what ping said. Fails unless it is
// answered, or unless it is not, as want says.
func (n *node) ping(want bool, args ...string) string {
	n.lab.t.Helper()
	out, err := n.try("ping", append([]string{"-c", "3", "-i", "0.1", "-W", "2"}, args...)...)
	if (err == nil) != want {
		n.lab.t.Errorf("%s: ping %v: %v\n%s", n.name, args, err, out)
	}
	return out
}

// Both versions of IP, outside and inside.
func TestIPVersions(t *testing.T) {
	for _, outside6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("outside6=%v", outside6), func(t *testing.T) {
			l := newLab(t, 2)
			gateways := l.tunnel(tunnelOptions{offload: true, outside6: outside6})
			a, b := l.clients(), l.broker()
			if remote := netip.MustParseAddrPort(gateways[0].mustStatus().Peers[0].Remote); remote.Addr().Is6() != outside6 {
				t.Errorf("the peer is at %v", remote)
			}
			for _, host := range []netip.Addr{b.host4, b.host6, b.own4, b.own6} {
				a.lan.ping(true, host.String())
				a.gw.ping(true, host.String())
			}
			// The MTU inside is the device's, whatever the path's is.
			a.lan.ping(true, "-M", "do", "-s", "1472", b.host4.String())
			a.lan.ping(true, "-M", "do", "-s", "1452", b.host6.String())
			a.lan.ping(true, "-s", "20000", b.host4.String())
			b.lan.ping(true, a.host4.String())
			b.lan.ping(true, a.host6.String())
			l.iperf(a, b, "-n", "200K", "-b", "2M", "-u", "-l", "1000")
			wantNothingLost(t, gateways...)
		})
	}
}

// A peer may send only from what is allowed to it.
func TestForeignSourceIsRefused(t *testing.T) {
	l := newLab(t, 2)
	gateways := l.tunnel(tunnelOptions{})
	a, b := l.clients(), l.broker()
	at := b.capture(2048)
	odd := oddities{
		From: netip.MustParseAddr("10.7.0.9"), From6: netip.MustParseAddr("fd00:7::9"),
		To: b.host4, To6: b.host6, Count: 40,
	}
	a.lan.help("odd", odd).wait(nil)
	a.lan.ping(true, b.host4.String())
	packets, _ := at.stop()
	for _, p := range packets {
		if f, _ := flowOf(p); f.src == odd.From || f.src == odd.From6 {
			t.Fatalf("came out: %x", p)
		}
	}
	if got := gateways[1].mustStatus().Peers[0].Refused; got != uint64(2*odd.Count) {
		t.Errorf("%d packets refused, not %d", got, 2*odd.Count)
	}
	if got := gateways[1].mustStatus().Peers[0].Lanes; got[0].Epochs != 1 || got[1].Epochs != 1 {
		t.Errorf("an epoch ended: %+v", got)
	}
}

// Where nothing can go, a gateway says so as a router does.
func TestUnreachable(t *testing.T) {
	l := newLab(t, 2)
	gateways := l.tunnel(tunnelOptions{offload: true})
	a, b := l.clients(), l.broker()
	a.lan.ping(true, b.host4.String())
	gateways[1].terminate()
	eventually(t, 5*time.Second, func() string {
		return missingUnless(!gateways[0].mustStatus().Peers[0].Up, "the peer is still up")
	})
	time.Sleep(2 * time.Second) // stall: for as long a new epoch is waited for
	for _, host := range []netip.Addr{b.host4, b.host6} {
		if out := a.lan.ping(false, host.String()); !strings.Contains(strings.ToLower(out), "unreachable") {
			t.Errorf("ping %v:\n%s", host, out)
		}
	}
	begin := time.Now()
	out, err := a.lan.try("timeout", "10", "mosquitto_pub", "-h", b.host4.String(), "-t", "x", "-m", "x")
	if err == nil || !strings.Contains(out, "unreachable") && !strings.Contains(out, "No route") {
		t.Errorf("mosquitto_pub: %v: %s", err, out)
	}
	t.Logf("mosquitto_pub knew after %v: %s", time.Since(begin).Round(time.Millisecond), strings.TrimSpace(out))

	gateways[1].start()
	l.waitUp(gateways...)
	a.lan.ping(true, b.host4.String())
	a.lan.ping(true, b.host6.String())
}

// A smaller device is a smaller path, and hosts are told.
func TestPacketTooBig(t *testing.T) {
	l := newLab(t, 2)
	gateways := l.tunnel(tunnelOptions{offload: true, mtu: 1300})
	a, b := l.clients(), l.broker()
	if out := a.lan.ping(false, "-M", "do", "-s", "1400", b.host4.String()); !strings.Contains(out, "mtu = 1300") && !strings.Contains(out, "mtu=1300") {
		t.Errorf("IPv4:\n%s", out)
	}
	if out := a.lan.ping(false, "-M", "do", "-s", "1400", b.host6.String()); !strings.Contains(out, "mtu = 1300") && !strings.Contains(out, "mtu=1300") {
		t.Errorf("IPv6:\n%s", out)
	}
	l.iperf(a, b, "-n", "1M", "-b", "20M")
	l.iperf(a, b, "-n", "1M", "-b", "20M", "-R")
	wantNothingLost(t, gateways...)
}
