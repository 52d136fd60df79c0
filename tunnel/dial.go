package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"
)

// linkGood is how long a connection must have lasted for the next one to be
// dialed at once. It keeps two gateways that were given the same key, each of
// which takes the other's place, from doing so at the speed of the network.
const linkGood = 5 * time.Second

// dialLoop calls the peer's endpoint whenever a lane is wanted that nothing else
// provides.
func (p *Peer) dialLoop() {
	t := p.t
	pause := backoff{min: t.cfg.BackoffMin, max: t.cfg.BackoffMax}
	for t.ctx.Err() == nil {
		p.mu.Lock()
		what, wait := p.need(time.Now())
		changed, lastLink := p.changed, p.lastLink
		p.mu.Unlock()
		if what == nil {
			var timer <-chan time.Time
			if wait > 0 {
				timer = time.After(wait)
			}
			select {
			case <-changed:
			case <-timer:
			case <-t.ctx.Done():
			}
			continue
		}
		if what.links && !lastLink.IsZero() {
			if time.Since(lastLink) < linkGood {
				pause.wait(t.ctx, nil)
			} else {
				pause.reset()
			}
			p.mu.Lock()
			p.lastLink = time.Time{}
			p.mu.Unlock()
			continue // look again: the need may be over
		}
		err := p.connect(what)
		switch {
		case t.ctx.Err() != nil:
		case what.upgrade:
			p.mu.Lock()
			p.retryAt = time.Now().Add(t.cfg.RetryPreferred)
			p.mu.Unlock()
		case err != nil:
			p.failed(err)
			p.mu.Lock()
			p.settled = 0 // the network may be another one: begin with the first choice
			p.mu.Unlock()
			pause.wait(t.ctx, nil)
		case !what.links:
			pause.reset()
		}
	}
}

// A need is a reason to dial.
type need struct {
	class    Class     // of the lane that a TCP carrier brings
	carriers []Carrier // to be tried, in order of preference
	links    bool      // QUIC is among them
	upgrade  bool      // only to leave a less preferred carrier
}

// need returns what has to be dialed, or nil and the time after which to look
// again, 0 for never. mu is held.
func (p *Peer) need(now time.Time) (*need, time.Duration) {
	if p.link != nil || p.closed {
		return nil, 0
	}
	all := p.t.cfg.Carriers
	before := all[:max(0, slices.Index(all, p.settled))] // preferred to the settled one
	settled := p.settled != 0 && now.Before(p.retryAt)
	var wait time.Duration
	for class := range NumClasses {
		if p.wanted[class] == 0 || p.offered[class] != nil {
			continue
		}
		n := &need{class: class, carriers: all}
		if settled {
			n.carriers = []Carrier{p.settled}
		}
		n.links = slices.Contains(n.carriers, QUIC)
		if d := p.pace[class].ready().Sub(now); d > 0 && !n.links {
			if wait == 0 || d < wait {
				wait = d
			}
			continue
		}
		return n, 0
	}
	// Everyone is served. If by less than the first choice, try that again.
	if l := p.anyLane(); l != nil && l.dialed && len(before) > 0 && p.settled != 0 {
		if !settled {
			return &need{carriers: before, links: slices.Contains(before, QUIC), upgrade: true}, 0
		}
		if d := p.retryAt.Sub(now); wait == 0 || d < wait {
			wait = d
		}
	}
	return nil, wait
}

// A candidate is a finished call: a link or, of a TCP carrier, a lane.
type candidate struct {
	carrier Carrier
	link    *link
	lane    *Lane
	header  header
	err     error
}

// connect calls the endpoint over the carriers: the first one at once, each next
// one FallbackDelay after the one before or when all before have failed (as RFC
// 8305 does it with addresses). The first that succeeds is used.
func (p *Peer) connect(n *need) error {
	ctx, cancel := context.WithTimeout(p.t.ctx, p.t.cfg.DialTimeout)
	defer cancel()
	p.mu.Lock()
	p.cancelDial = cancel
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.cancelDial = nil
		p.mu.Unlock()
	}()

	results := make(chan candidate, len(n.carriers))
	started, running := 0, 0
	start := func() {
		c := n.carriers[started]
		started++
		running++
		go func() { results <- p.call(ctx, c, n.class) }()
	}
	start()
	fallback := time.NewTicker(p.t.cfg.FallbackDelay)
	defer fallback.Stop()
	var won *candidate
	var errs []error
	for running > 0 {
		select {
		case <-fallback.C:
			if started < len(n.carriers) && ctx.Err() == nil {
				start()
			}
		case c := <-results:
			running--
			switch {
			case c.err != nil:
				errs = append(errs, &PeerError{p.cfg.Name, fmt.Sprintf("dial %v %s", c.carrier, p.cfg.Endpoint), c.err})
				if running == 0 && won == nil && started < len(n.carriers) && ctx.Err() == nil {
					start()
				}
			case won == nil:
				won = &c
				cancel()
			default:
				c.close(ReasonDuplicate)
			}
		}
	}
	if won == nil {
		return errors.Join(errs...)
	}
	return p.use(won)
}

// use makes the finished call the way to the peer.
func (p *Peer) use(c *candidate) error {
	var err error
	if c.link != nil {
		err = p.adopt(c.link)
	} else {
		err = p.offer(c.lane, c.header)
	}
	if err != nil {
		c.close(reasonOf(err))
		return &PeerError{p.cfg.Name, fmt.Sprintf("dial %v %s", c.carrier, p.cfg.Endpoint), err}
	}
	if c.link != nil {
		p.t.spawn(func() { c.link.watch(p) })
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.settled != c.carrier {
		p.settled, p.retryAt = c.carrier, time.Now().Add(p.t.cfg.RetryPreferred)
	}
	if !time.Now().Before(p.retryAt) {
		p.retryAt = time.Now().Add(p.t.cfg.RetryPreferred)
	}
	return nil
}

func (c *candidate) close(why Reason) {
	if c.link != nil {
		c.link.close(why)
	} else {
		c.lane.stream.abort(why)
	}
}

// call makes one call over one carrier.
func (p *Peer) call(ctx context.Context, c Carrier, class Class) candidate {
	r := candidate{carrier: c}
	if c == QUIC {
		r.link, r.err = p.dialQUIC(ctx)
	} else {
		p.mu.Lock()
		p.epoch++
		r.header = header{class: class, instance: p.t.instance, epoch: p.epoch}
		p.mu.Unlock()
		r.lane, r.err = p.dialTCP(ctx, c, r.header)
	}
	if r.err != nil {
		r.err = dialError(r.err, p.t.Fingerprint())
	}
	return r
}

// maxAddresses is how many of an endpoint's addresses one attempt tries.
const maxAddresses = 4

// resolve returns the addresses of the endpoint, asked for anew each time.
func (p *Peer) resolve(ctx context.Context) ([]netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(p.cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	n, err := net.DefaultResolver.LookupPort(ctx, "udp", port)
	if err != nil {
		return nil, err
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	var addrs []netip.AddrPort
	for _, ip := range ips[:min(len(ips), maxAddresses)] {
		addrs = append(addrs, netip.AddrPortFrom(ip.Unmap(), uint16(n)))
	}
	return addrs, nil
}
