package firsthop

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"sheaf/netstack"
	"sheaf/netstack/link"
	"sheaf/parsers/ip"
)

const (
	portErrors = 100              // ICMP errors a second to a guest, and at once: RFC 4443 section 2.4 (f)
	askEvery   = time.Second      // who has an address whose MAC address is not known: RFC 1122 section 2.3.2.1
	claimEvery = time.Second      // an IPv6 address of a guest, beside maxClaims at once
	warnEvery  = 10 * time.Second // of the same port
)

// A port is where a guest is plugged in.
type port struct {
	router  *Router
	name    string
	record  *record
	link    link.Link
	target  target
	queue   *queue
	outside share // of queue: what comes by Write
	own     share // the router's answers

	identity atomic.Pointer[identity]
	handed   chan struct{} // Read has copied batch
	batch    [][]byte      // packets to be read, in what receive read; receive's until it is handed off
	ctx      context.Context
	cancel   context.CancelFunc
	working  sync.WaitGroup

	errors   *rate.Limiter // of ICMP to the guest
	asking   *rate.Limiter
	claiming *rate.Limiter
	warning  rate.Sometimes
	queries  chan struct{}     // has a place for each DNS query that is under way
	shares   map[*queue]*share // of other guests' queues; receive's
	stack    *netstack.Stack   // for DNS over TCP, nil until it is used; receive's

	// The Router's mu guards the rest.
	mac        [6]byte
	known      bool         // mac
	configured []netip.Addr // what the guest may have, of a family that is here
	lease      netip.Addr   // IPv4, not valid without
	derived    netip.Addr   // IPv6, from its MAC address
	claims     []netip.Addr // IPv6, oldest first
	declined   []netip.Addr // IPv4, oldest first
	out        bool         // unplugged: it gets no address any more
}

// An identity is what a guest may send from. It is not changed once it is made.
type identity struct {
	mac       [6]byte
	known     bool // mac
	leased    bool // one of the addresses
	addresses []netip.Addr
}

func (id *identity) owns(a netip.Addr) bool { return slices.Contains(id.addresses, a) }

func newPort(r *Router, name string, l link.Link) *port {
	p := &port{
		router: r, name: name, link: l, queue: newQueue(), handed: make(chan struct{}, 1),
		errors: rate.NewLimiter(portErrors, portErrors), asking: rate.NewLimiter(rate.Every(askEvery), 1),
		claiming: rate.NewLimiter(rate.Every(claimEvery), maxClaims), warning: rate.Sometimes{First: 1, Interval: warnEvery},
		queries: make(chan struct{}, portQueries), shares: make(map[*queue]*share),
	}
	p.target = target{kind: toGuest, port: p}
	p.identity.Store(&identity{})
	p.ctx, p.cancel = context.WithCancel(r.ctx)
	return p
}

// publish makes what is known of the guest what its packets are held against. It is called
// under the Router's mu.
func (p *port) publish() {
	id := &identity{mac: p.mac, known: p.known, leased: p.lease.IsValid(), addresses: slices.Clone(p.configured)}
	for _, a := range []netip.Addr{p.lease, p.derived} {
		if a.IsValid() {
			id.addresses = append(id.addresses, a)
		}
	}
	id.addresses = append(id.addresses, p.claims...)
	p.identity.Store(id)
}

func (p *port) status() PortStatus {
	id := p.identity.Load()
	s := PortStatus{Name: p.name, Addresses: id.addresses, Link: p.link.Status(), Counters: p.count().read()}
	if id.known {
		s.MAC = net.HardwareAddr(id.mac[:]).String()
	}
	return s
}

// count returns the counters of the port's name.
func (p *port) count() *counters { return &p.record.count }

// receive takes what the guest sends until the link is closed. While packets wait to be
// read it reads no more, so that a guest that floods fills its own link, and waits for its
// turn as all do.
func (p *port) receive() {
	n := p.link.BatchSize()
	bufs, sizes := make([][]byte, n), make([]int, n)
	for i := range bufs {
		bufs[i] = make([]byte, link.MaxFrame)
	}
	packets := make([][]byte, 0, n)
	defer func() {
		if p.stack != nil {
			_ = p.stack.Close()
		}
	}()
	for {
		got, err := p.link.Read(bufs, sizes)
		packets = packets[:0]
		for i := range got {
			if packet := p.input(bufs[i][:sizes[i]]); packet != nil {
				packets = append(packets, packet)
			}
		}
		if len(packets) > 0 && !p.hand(packets) || err != nil {
			return
		}
	}
}

// hand waits until Read has copied packets, and says whether it has.
func (p *port) hand(packets [][]byte) bool {
	p.batch = packets
	select {
	case p.router.handoff <- p:
	case <-p.ctx.Done():
		return false
	}
	select {
	case <-p.handed:
		return true
	case <-p.ctx.Done():
		return false
	}
}

// send hands the guest what waits for it until the port is closed.
func (p *port) send() {
	n := p.link.BatchSize()
	taken, frames := make([]*frame, 0, n), make([][]byte, 0, n)
	for {
		taken = p.queue.take(taken)
		if len(taken) == 0 {
			return
		}
		frames = frames[:0]
		for _, f := range taken {
			frames = append(frames, f.buf)
		}
		err := p.link.Write(frames)
		p.queue.giveBack(taken)
		if err != nil {
			return
		}
	}
}

// close ends what the port does, and waits for it.
func (p *port) close() error {
	p.cancel()
	p.queue.close()
	err := p.link.Close()
	p.working.Wait()
	return err
}

// spoofed counts what had a source that is not the guest's own.
func (p *port) spoofed(what spoof) {
	p.count().spoofed[what].Add(1)
	p.warning.Do(func() {
		p.router.log.Warn("frames of a guest refused: not its own address", "port", p.name, "where", what.String())
	})
}

// answer queues a packet or message for the guest, as the router's.
func (p *port) answer(to [6]byte, kind etherType, packet []byte) {
	if len(packet) == 0 {
		return
	}
	head := headOf(to, kind)
	if !p.queue.put(&head, packet, &p.own) {
		p.count().dropped.Add(1)
		return
	}
	p.count().answered.Add(1)
}

// deliver queues a packet for the guest, in fragments where it is longer than the MTU. It
// returns false where the packet may not be taken apart, so that its sender is to be told.
func (p *port) deliver(h *ip.Header, from *share) bool {
	packet, mtu := h.Packet, p.router.mtu
	switch id := p.identity.Load(); {
	case !id.known:
		p.count().unresolved.Add(1)
		p.ask(h.Dst())
	case len(packet) <= mtu:
		p.enqueue(id, packet, from)
	case mayFragment(h):
		fragment(h, mtu, func(b []byte) { p.enqueue(id, b, from) })
	default:
		p.count().tooBig.Add(1)
		return false
	}
	return true
}

func (p *port) enqueue(id *identity, packet []byte, from *share) {
	kind := etherIPv4
	if packet[0]>>4 == 6 {
		kind = etherIPv6
	}
	head := headOf(id.mac, kind)
	if !p.queue.put(&head, packet, from) {
		p.count().dropped.Add(1)
		return
	}
	p.count().sent.Add(1)
}
