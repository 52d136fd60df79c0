package tunnel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"
)

// connGood is how long a connection must have lasted for the next one to be
// dialed at once. It keeps two gateways that were given the same key, each of
// which takes the other's place, from doing so at the speed of the network.
const connGood = 5 * time.Second

// retryFirst is how long after a less preferred carrier was taken the first choice
// is tried again, at first; then ever later, up to Config.RetryPreferred. An attempt
// costs some packets, and a network that drops UDP mostly does so for good.
const retryFirst = 10 * time.Second

// dialLoop calls the peer's endpoint whenever a lane is wanted that nothing else
// provides. A peer that was connected before and does not answer is called all the
// time; one that refuses, or never answered, with ever longer pauses.
func (p *Peer) dialLoop() {
	t := p.t
	pause := backoff{min: t.cfg.BackoffMin, max: t.cfg.BackoffMax}
	again := backoff{min: t.cfg.BackoffMin, max: min(callEvery, t.cfg.BackoffMax)}
	for t.ctx.Err() == nil {
		p.mu.Lock()
		what, wait := p.need(time.Now())
		changed, lastConn := p.changed, p.lastConn
		if what != nil && what.quic {
			p.lastConn = time.Time{}
		}
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
		if what.quic && !lastConn.IsZero() {
			if time.Since(lastConn) < connGood {
				again.wait(t.ctx, nil)
				continue // look again: the need may be over
			}
			again.reset()
		}
		err := p.connect(what)
		switch {
		case t.ctx.Err() != nil:
		case err == nil:
			pause.reset()
		case what.upgrade:
			p.mu.Lock()
			p.retryLater(time.Now())
			p.mu.Unlock()
		default:
			p.failed(err)
			p.mu.Lock()
			p.settled = 0 // the network may be another one: begin with the first choice
			reached := p.worked != 0
			p.mu.Unlock()
			if !reached || isRefusal(err) {
				pause.wait(t.ctx, nil)
			}
		}
	}
}

// A need is a reason to dial.
type need struct {
	class    Class     // of the lane that a TCP carrier brings
	carriers []Carrier // to be tried, in order of preference
	quic     bool      // QUIC is among them
	upgrade  bool      // only to leave a less preferred carrier
}

// need returns what has to be dialed, or nil and the time after which to look
// again, 0 for never. mu is held.
func (p *Peer) need(now time.Time) (*need, time.Duration) {
	all := p.t.cfg.Carriers
	switch {
	case p.closed || p.conn != nil && !p.conn.doubted:
		return nil, 0
	case p.conn != nil: // silent: call anew beside it, before it is given up
		return &need{carriers: all, quic: true}, 0
	}
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
		n.quic = slices.Contains(n.carriers, QUIC)
		if d := p.pace[class].ready().Sub(now); d > 0 && !n.quic {
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
			return &need{carriers: before, quic: slices.Contains(before, QUIC), upgrade: true}, 0
		}
		if d := p.retryAt.Sub(now); wait == 0 || d < wait {
			wait = d
		}
	}
	return nil, wait
}

// fallback returns how long a preferred carrier is called alone: less, the longer
// the peer has been away, since the first to hear of its return may be any. mu is
// held.
func (p *Peer) fallback(now time.Time) time.Duration {
	d := p.t.cfg.FallbackDelay
	switch {
	case p.connected || p.settled != 0: // over a carrier that stays in the race
		return 0
	case p.worked != 0:
		d -= now.Sub(p.since)
	}
	return max(d, 0)
}

// spacing returns the pauses between the starts of calls over one carrier. The
// second call is for a peer that is just being restarted; an answer to the first
// takes a round trip. mu is held.
func (p *Peer) spacing(n *need) backoff {
	longest := min(callEvery, p.t.cfg.BackoffMax)
	switch {
	case n.upgrade:
		return backoff{min: 2 * longest, max: 2 * longest} // nobody waits for it
	case p.worked == 0 || p.attempts >= sparingAfter:
		return backoff{min: longest, max: longest}
	case p.conn != nil:
		p.rtt = p.conn.ConnectionStats().SmoothedRTT
	}
	return backoff{min: min(max(p.t.cfg.BackoffMin, 3*p.rtt), longest), max: longest}
}

// sparingAfter is after how many attempts in vain calls repeat nothing that is not
// answered: there is another one every second, and a peer may be away for days.
const sparingAfter = 2

// retryLater puts off the next attempt at a preferred carrier: each time for twice
// as long, and up to a tenth more, so that many gateways fall out of step. mu is
// held.
func (p *Peer) retryLater(now time.Time) {
	longest := p.t.cfg.RetryPreferred
	p.retryIn = min(max(2*p.retryIn, retryFirst), longest)
	p.retryAt = now.Add(p.retryIn + rand.N(p.retryIn/10+1))
}

// connect calls the endpoint over the carriers and uses the first that succeeds.
func (p *Peer) connect(n *need) error {
	ctx, cancel := context.WithTimeout(p.t.ctx, p.t.cfg.DialTimeout)
	defer cancel()
	p.mu.Lock()
	p.cancelDial = cancel
	sparing := n.upgrade || p.attempts >= sparingAfter
	r := race{
		carriers: n.carriers, fallback: p.fallback(time.Now()), worked: p.worked, pause: p.spacing(n),
		call: func(ctx context.Context, c call) candidate { return p.call(ctx, c, sparing) },
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.cancelDial, p.opening = nil, false
		p.mu.Unlock()
	}()
	c, err := r.run(ctx)
	if err == nil {
		if err = p.take(ctx, &c, n.class); err == nil {
			return nil
		}
		err = fmt.Errorf("%v: %w", c.carrier, err)
	}
	return &PeerError{p.cfg.Name, "dial " + p.cfg.Endpoint, err}
}

// take makes a finished call the way to the peer. A TCP carrier brings a lane of the
// class.
func (p *Peer) take(ctx context.Context, c *candidate, class Class) (err error) {
	if c.conn == nil {
		err = p.openFirst(ctx, c.tcp, class)
	} else if err = p.adopt(c.conn, nil); err == nil {
		p.t.spawn(func() { c.conn.watch(p) })
	}
	if err != nil {
		c.close(reasonOf(err))
		return dialError(err, p.t.Fingerprint())
	}
	return nil
}

// openFirst opens a lane over a TCP carrier.
func (p *Peer) openFirst(ctx context.Context, c *tcpCall, class Class) error {
	p.mu.Lock()
	if err := ctx.Err(); err != nil {
		p.mu.Unlock()
		return err
	}
	p.opening = true // from here on the other end may know of it
	p.epoch++
	h := header{class: class, instance: p.t.instance, epoch: p.epoch}
	p.mu.Unlock()
	l, err := c.open(ctx, p, h)
	if err == nil {
		err = p.offer(l, h)
	}
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.settled != l.carrier || !now.Before(p.retryAt) {
		p.settled = l.carrier
		p.retryLater(now)
	}
	return nil
}

// call makes one call. Later ones begin with other addresses. One that is sparing
// repeats nothing that is not answered.
func (p *Peer) call(ctx context.Context, c call, sparing bool) candidate {
	r := candidate{carrier: c.carrier}
	if c.carrier == QUIC {
		r.conn, r.err = p.dialQUIC(ctx, c, sparing)
	} else {
		r.tcp, r.err = p.dialTCP(ctx, c)
	}
	if r.err != nil {
		r.err = dialError(r.err, p.t.Fingerprint())
	}
	return r
}

// maxAddresses is how many of an endpoint's addresses one attempt tries. Each gets its
// share of the attempt's time, so that more of them would be too short for a handshake.
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
