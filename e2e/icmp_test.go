package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// behindRouters puts two routers between the site's gateway and its LAN, joined by
// a cable of the given MTU. Their addresses are in nobody's allowed:
//
//	gwB 172.16.2.1 -- .2 r1 172.17.2.1 -- mtu -- .2 r2 172.18.2.1 -- .2 broker
func (s *site) behindRouters(mtu int) {
	l := s.gw.lab
	l.t.Helper()
	r1, r2 := l.node("r1"), l.node("r2")
	i := s.number
	s.lan.ip("link del eth0")
	cable := func(a *node, aName string, b *node, bName string, net, mtu int) {
		a.ip(fmt.Sprintf("link add %s mtu %d type veth peer name %s mtu %d netns %s", aName, mtu, bName, mtu, b.ns))
		for j, n := range []*node{a, b} {
			name := []string{aName, bName}[j]
			n.plain(name)
			n.ip(fmt.Sprintf("link set %s up", name),
				fmt.Sprintf("addr add 172.%d.%d.%d/30 dev %s", net, i, j+1, name),
				fmt.Sprintf("addr add fd00:%d:%d::%d/64 dev %s nodad", net, i, j+1, name))
		}
	}
	cable(s.gw, "lan0", r1, "up0", 16, 1500)
	cable(r1, "down0", r2, "up0", 17, mtu)
	cable(r2, "down0", s.lan, "eth0", 18, 1500)
	for _, r := range []*node{r1, r2} {
		r.sysctl("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", "net.ipv4.conf.all.rp_filter=0")
	}
	s.gw.ip(fmt.Sprintf("route add %s via 172.16.%d.2", s.net4, i), fmt.Sprintf("route add %s via fd00:16:%d::2", s.net6, i))
	r1.ip(fmt.Sprintf("route add %s via 172.17.%d.2", s.net4, i), fmt.Sprintf("route add %s via fd00:17:%d::2", s.net6, i),
		fmt.Sprintf("route add default via 172.16.%d.1", i), fmt.Sprintf("route add default via fd00:16:%d::1", i))
	r2.ip(fmt.Sprintf("route add %s via 172.18.%d.2", s.net4, i), fmt.Sprintf("route add %s via fd00:18:%d::2", s.net6, i),
		fmt.Sprintf("route add default via 172.17.%d.1", i), fmt.Sprintf("route add default via fd00:17:%d::1", i))
	s.lan.ip(fmt.Sprintf("addr add %s/32 dev eth0", s.host4), fmt.Sprintf("addr add %s/128 dev eth0 nodad", s.host6),
		fmt.Sprintf("route add default via 172.18.%d.1 src %s", i, s.host4), fmt.Sprintf("route add default via fd00:18:%d::1 src %s", i, s.host6))
}

// Routers beyond a gateway say what is wrong with a packet, though no configuration
// names them: hosts learn the path's MTU, and traceroute finds its way.
func TestRoutersBeyond(t *testing.T) {
	l := newLab(t, 2)
	a, b := l.clients(), l.broker()
	b.behindRouters(1300)
	gateways := l.tunnel(tunnelOptions{offload: true, subnets: true})
	a.lan.ping(true, b.host4.String())
	a.lan.ping(true, b.host6.String())
	if out := a.lan.ping(false, "-M", "do", "-s", "1400", b.host4.String()); !strings.Contains(out, "mtu = 1300") && !strings.Contains(out, "mtu=1300") {
		t.Errorf("IPv4:\n%s", out)
	}
	if out := a.lan.ping(false, "-M", "do", "-s", "1400", b.host6.String()); !strings.Contains(out, "mtu = 1300") && !strings.Contains(out, "mtu=1300") {
		t.Errorf("IPv6:\n%s", out)
	}
	// What the pings found the hosts forget, so that TCP finds it by itself.
	for _, n := range []*node{a.lan, b.lan} {
		n.ip("route flush cache")
		n.run("ip", "-6", "route", "flush", "cache")
	}
	begin := time.Now()
	l.iperf(a, b, "-n", "1M", "-b", "20M")
	l.iperf(a, b, "-n", "1M", "-b", "20M", "-R")
	t.Logf("1 MB each way after %v", time.Since(begin).Round(time.Millisecond))

	wantHops := func(to netip.Addr, want ...string) {
		t.Helper()
		out := a.lan.run("traceroute", "-n", "-q", "1", "-N", "1", "-w", "2", "-m", "8", to.String())
		var hops []string
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 1 && f[0] != "traceroute" {
				hops = append(hops, f[1])
			}
		}
		if !slices.Equal(hops, want) {
			t.Errorf("hops %v, want %v\n%s", hops, want, out)
		}
	}
	wantHops(b.host4, "172.16.1.1", b.own4.String(), "172.16.2.2", "172.17.2.2", b.host4.String())
	wantHops(b.host6, "fd00:16:1::1", b.own6.String(), "fd00:16:2::2", "fd00:17:2::2", b.host6.String())
	for _, g := range gateways {
		if got := g.mustStatus().Peers[0].Refused; got != 0 {
			t.Errorf("%s: %d packets refused", g.name, got)
		}
	}
}

// dials is what the refused role does: it connects to where nothing can go, from many
// addresses at once.
type dials struct {
	To    netip.AddrPort
	First netip.Addr
	Count int
}

// refusals are how many learned that it is unreachable, and how many of them from
// their first SYN: the second comes after a second.
type refusals struct {
	Told, AtOnce int
	Last         time.Duration
}

func dialRefused(a dials) (*refusals, error) {
	var mu sync.Mutex
	var r refusals
	sayReady()
	return &r, inParallel(a.Count, func(i int) error {
		d := dialerFrom(addressAfter(a.First, i))
		d.Timeout = 5 * time.Second
		begin := time.Now()
		c, err := d.Dial("tcp", a.To.String())
		took := time.Since(begin)
		if err == nil {
			c.Close()
			return fmt.Errorf("dial %d: connected", i)
		}
		mu.Lock()
		defer mu.Unlock()
		if errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH) {
			r.Told++
			if took < time.Second {
				r.AtOnce++
			}
			r.Last = max(r.Last, took)
		}
		return nil
	})
}

// When the link is away, all clients that connect are told, however many there are,
// and none waits for its own timeout.
func TestAllAreTold(t *testing.T) {
	l := newLab(t, 2)
	a, b := l.clients(), l.broker()
	gateways := l.tunnel(tunnelOptions{offload: true})
	gateways[1].kill()
	eventually(t, 15*time.Second, func() string {
		return missingUnless(a.lan.command("ping", "-c", "1", "-W", "1", b.host4.String()).Run() != nil && !gateways[0].mustStatus().Peers[0].Up, "the peer is still up")
	})
	const clients = 1000
	var r refusals
	a.lan.help("refused", dials{l.brokerAddress(), addressAfter(a.host4, 1), clients}).wait(&r)
	t.Logf("of %d clients %d were told, %d of their first SYN, the last after %v", clients, r.Told, r.AtOnce, r.Last.Round(time.Millisecond))
	if r.Told < clients || r.AtOnce < clients*9/10 {
		t.Error("some waited")
	}
}
