package engine

import (
	"encoding/binary"
	"testing"
	"time"

	"sheaf/parsers/ip"
)

// syn returns a packet of one of many flows.
func syn(flow int) []byte {
	p := datagram("10.1.0.7", "10.2.0.10")
	p[9] = ip.TCP
	binary.BigEndian.PutUint16(p[20:], uint16(flow))
	return p
}

// headerOf reads the header of a packet.
func headerOf(p []byte) *ip.Header {
	var h ip.Header
	_ = h.Parse(p)
	return &h
}

func TestRepliesToOneFlow(t *testing.T) {
	for _, p := range [][]byte{syn(1), datagram("10.1.0.7", "10.2.0.10"), datagram("fd01::7", "fd02::10"), icmp4("10.1.0.7", "10.2.0.10")} {
		r, n, h := newReplies(), 0, headerOf(p)
		now := 5 * time.Second
		for range 1000 {
			if r.allow(now, h) {
				n++
			}
		}
		if n != replyBurst {
			t.Errorf("%d answers at once", n)
		}
		if r.allow(now+replyEvery-1, h) || !r.allow(now+replyEvery, h) || r.allow(now+replyEvery, h) {
			t.Error("not one more after 100 ms")
		}
		n = 0
		for i := range 10_000 { // a packet each millisecond
			if r.allow(now+2*replyEvery+time.Duration(i)*time.Millisecond, h) {
				n++
			}
		}
		if n < 99 || n > 100+replyBurst {
			t.Errorf("%d answers in 10 s", n)
		}
	}
}

// All clients of a link that ended are told, and told again when they try again.
func TestRepliesToMany(t *testing.T) {
	r := newReplies()
	const clients = 2000
	for round := range 5 {
		now := time.Duration(round) * time.Second
		n := 0
		for c := range clients {
			if r.allow(now, headerOf(syn(c))) {
				n++
			}
		}
		if n < clients-2 { // a dozen would have to meet in one bucket
			t.Errorf("round %d: %d of %d answered", round, n, clients)
		}
	}
}

// However many flows there are, no more is answered than the bound, and they take
// no more memory.
func TestRepliesToAll(t *testing.T) {
	r := newReplies()
	n := 0
	flood := func(now time.Duration) {
		for c := range 1 << 16 {
			if r.allow(now, headerOf(syn(c))) {
				n++
			}
		}
	}
	flood(0)
	if n != allReplyBurst {
		t.Errorf("%d answers at once", n)
	}
	flood(500 * time.Millisecond)
	if want := allReplyBurst + 5000; n != want {
		t.Errorf("%d answers after half a second, want %d", n, want)
	}
	h := headerOf(syn(1))
	if allocs := testing.AllocsPerRun(1000, func() { r.allow(time.Hour, h) }); allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// A packet that cannot be carried is answered; one that must not be is not, nor is
// what floods.
func TestRefuse(t *testing.T) {
	g, out := hub(t, nil)
	g.replies = newReplies()
	for range 20 {
		g.route(time.Second, fromHost, syn(1))
	}
	g.route(time.Second, fromHost, icmpError4())
	g.route(time.Second, fromHost, syn(1)[:19])
	g.route(time.Second, fromHost, nil)
	if got := g.deviceLosses(); got.Malformed != 2 || got.Reasons()["malformed"] != 2 {
		t.Errorf("%+v", got)
	}
	if len(out.packets) != replyBurst || g.unroutable.Load() != 21 {
		t.Errorf("%d answers, %d unroutable", len(out.packets), g.unroutable.Load())
	}
	for _, b := range out.packets {
		if h := headerOf(b); h.Src().String() != "10.2.0.10" || h.Dst().String() != "10.1.0.7" || b[20] != 3 || b[21] != 0 {
			t.Errorf("answered with % x", b)
		}
	}
}

// icmp4 returns a ping, and icmpError4 an error.
func icmp4(src, dst string) []byte {
	p := datagram(src, dst)
	p[9], p[20] = ip.ICMP, 8
	return p
}

func icmpError4() []byte {
	p := icmp4("10.1.0.7", "10.2.0.10")
	p[20] = 3
	return p
}
