package engine

import (
	"errors"
	"fmt"
	"time"

	"sheaf/engine/wire"
	"sheaf/netstack"
	"sheaf/parsers/ip"
)

// The way of packets through the gateway: pump, route and put on the way to a peer,
// deliver on the way from it.

// pump reads a port until it fails.
func (g *Gateway) pump(port Port, from ingress) error {
	n := port.BatchSize()
	bufs, sizes, packets := make([][]byte, n), make([]int, n), make([][]byte, 0, n)
	for i := range bufs {
		bufs[i] = make([]byte, wire.MaxPacket)
	}
	for {
		got, err := port.Read(bufs, sizes)
		packets = packets[:0]
		for i := range got {
			packets = append(packets, bufs[i][:sizes[i]])
		}
		g.in.Lock()
		g.route(time.Since(g.since), from, packets...)
		g.in.Unlock()
		if err != nil {
			return fmt.Errorf("read packets: %w", err)
		}
	}
}

// route queues the packets of one read, borrowed for the call, for their lanes: a
// lane's together, so that its lock is taken and its writer woken once a read. Those that
// stay on this host, from one of its ports to the other, go on at once.
func (g *Gateway) route(now time.Duration, from ingress, packets ...[]byte) {
	for _, packet := range packets {
		l := g.laneOf(now, from, packet)
		if l == nil {
			continue
		}
		if len(l.read) == 0 {
			g.filled = append(g.filled, l)
		}
		l.read = append(l.read, packet)
	}
	for _, l := range g.filled {
		l.queue.put(now, l.read...)
		l.read = l.read[:0]
	}
	g.filled = g.filled[:0]
	if len(g.crossing) > 0 {
		_ = g.handOut(g.crossing) // as a router drops what a link does not take
		g.crossing = g.crossing[:0]
	}
}

// laneOf returns the lane that a packet goes to, or nil: what stays on this host is put
// aside, and what cannot be carried is counted, and refused.
func (g *Gateway) laneOf(now time.Duration, from ingress, packet []byte) *laneRunner {
	var h ip.Header
	_ = h.Parse(packet) // whatever follows the addresses is carried
	if h.Version == 0 {
		g.malformed.Add(1)
		return nil
	}
	if from == fromHost && g.guests.spoofs(&h) {
		return nil
	}
	p := g.router.to(h.Dst())
	if g.guests.crosses(from, &h, p != nil) {
		g.crossing = append(g.crossing, packet)
		return nil
	}
	if p == nil {
		g.unroutable.Add(1)
		g.refuse(now, &h)
		return nil
	}
	l := p.lanes[g.router.class(&h)]
	if l.health.away(now) > l.stall {
		g.refuse(now, &h)
		return nil
	}
	return l
}

// refuse answers a packet that cannot be carried as a router would. The answer is
// as from where the packet was going: the kernel takes no packet from its own
// addresses that comes from outside.
func (g *Gateway) refuse(now time.Duration, h *ip.Header) {
	if !g.replies.allow(now, h) {
		return
	}
	if b := netstack.AppendUnreachable(g.reply[:0], h.Packet, netstack.NoRoute, h.Dst()); b != nil {
		g.reply = b
		_ = g.handOut([][]byte{b})
	}
}

// handOut hands packets, borrowed for the call, to where they end.
func (g *Gateway) handOut(packets [][]byte) error {
	if g.aside != nil {
		packets = g.aside.take(packets)
	}
	g.out.Lock()
	defer g.out.Unlock()
	var err error
	if g.guests != nil && g.guests.beside {
		packets, err = g.guests.take(packets)
	}
	if len(packets) == 0 {
		return err
	}
	return errors.Join(err, g.port.Write(packets))
}

// deliver hands out packets that a peer sent, if it may send them.
func (g *Gateway) deliver(p *peer, packets [][]byte) {
	var h ip.Header
	allowed := p.allowed.Load()
	keep := packets[:0]
	for _, b := range packets {
		_ = h.Parse(b)
		if h.Version == 0 || !allowed.Contains(h.Src()) && !g.router.reports(p, b) || g.guests.spoofs(&h) {
			p.refused.Add(1)
			continue
		}
		keep = append(keep, b)
	}
	if err := g.handOut(keep); err != nil && !closed(err) {
		g.undelivered.Do(func() { g.log.Warn("packets not delivered", "peer", p.name, "packets", len(keep), "err", err) })
	}
}
