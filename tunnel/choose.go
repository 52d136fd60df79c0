package tunnel

import (
	"slices"
	"time"
)

// Which of several connections is the way to the peer, both ends decide by the same
// rules. The end that dialed chooses among its own, for instance among calls that
// were answered at the same moment over different carriers: it opens a lane on one,
// and the numbers of lanes tell the other end which choice is the latest. A
// connection on which there never was a lane counts for nothing. Where both ends
// dialed, the newer one counts, unless both began within crossing: then the one from
// the smaller fingerprint does.

// crossing is how long after a connection began another one from the other end is
// taken for having been dialed at the same moment: as long as a handshake may take.
// Later it means that the other end has lost the first.
const crossing = 5 * time.Second

// yields reports whether a connection that began at since, dialed by this end or
// not, makes way for a new one.
func (p *Peer) yields(dialed bool, since time.Time, newDialed bool) bool {
	if dialed == newDialed || time.Since(since) > crossing {
		return true
	}
	return newDialed == p.keepsOwn()
}

// keepsOwn reports whether of two connections dialed at the same moment the one
// from this end is kept: that of the smaller fingerprint.
func (p *Peer) keepsOwn() bool {
	own := p.t.Fingerprint()
	return string(own[:]) < string(p.cfg.Fingerprint[:])
}

// refusesFrom says why no connection may be taken that this end dialed or the
// other one, if so. mu is held.
func (p *Peer) refusesFrom(dialed bool, lanes []*Lane) error {
	switch {
	case p.closed:
		return ReasonShutdown
	case !dialed && p.opening && p.keepsOwn():
		return ReasonDuplicate // the other end gets to see the lane, and yields
	case p.conn != nil && !p.yields(p.conn.dialed, p.conn.since, dialed):
		return ReasonDuplicate
	}
	for _, l := range lanes {
		if l != nil && l.conn == nil && !p.yields(l.dialed, l.since, dialed) {
			return ReasonDuplicate
		}
	}
	return nil
}

// outdated reports whether the peer has opened a lane after the one with the
// header h. mu is held.
func (p *Peer) outdated(h header) bool {
	for _, seen := range p.seen {
		if seen.instance == h.instance && seen.epoch >= h.epoch {
			return true
		}
	}
	return false
}

// maxWaiting is how many connections of a peer may wait for their first lane: as
// many as it makes calls at a time.
const maxWaiting = maxCalls

// expect remembers a connection that the peer dialed, until a lane comes or it ends.
func (p *Peer) expect(k *quicConn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ReasonShutdown
	}
	if len(p.waiting) == maxWaiting {
		oldest := p.waiting[0]
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.t.spawn(func() { oldest.close(ReasonSuperseded) })
	}
	p.waiting = append(p.waiting, k)
	return nil
}

// waitsNoMore takes k off the list of expect. mu is held.
func (p *Peer) waitsNoMore(k *quicConn) {
	p.waiting = slices.DeleteFunc(p.waiting, func(o *quicConn) bool { return o == k })
}

// adopt makes k the connection to the peer, or says why not. h is the header of the
// lane by which the peer has chosen k, nil for a connection of this end.
func (p *Peer) adopt(k *quicConn, h *header) error {
	p.mu.Lock()
	old := p.conn
	if old == k {
		p.mu.Unlock()
		return nil
	}
	lanes := append(p.lanes[:], p.offered[:]...)
	err := p.refusesFrom(k.dialed, lanes)
	if err == nil && h != nil && p.outdated(*h) {
		err = ReasonSuperseded
	}
	if err != nil {
		p.mu.Unlock()
		return err
	}
	p.waitsNoMore(k)
	victims := p.takeAll()
	k.since = time.Now()
	p.conn, p.settled, p.retryAt = k, 0, time.Time{}
	for class := range p.pace {
		p.pace[class].hurry()
	}
	if k.dialed {
		p.lastConn = k.since
	} else if p.cancelDial != nil {
		p.cancelDial()
	}
	p.note(QUIC, k.RemoteAddr(), k.dialed)
	p.mu.Unlock()
	endAll(victims, ReasonMoved)
	if old != nil {
		old.close(ReasonSuperseded)
	}
	return nil
}

// heed does what the pulse of k says: a connection that is doubted is called anew
// beside, and a lost one is given up.
func (p *Peer) heed(k *quicConn, v verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != k {
		return
	}
	k.doubted = v == doubted
	switch {
	case v == lost:
		p.drop(k, &ResetError{Reason: ReasonLost})
	case v == alive && p.cancelDial != nil && !p.opening:
		p.cancelDial()
	}
	p.broadcast()
}

// offer makes l the next lane of its class, or says why not. A lane of a TCP
// carrier is a connection too, and competes with the others as one.
func (p *Peer) offer(l *Lane, h header) error {
	p.mu.Lock()
	err := p.refuses(l, h)
	if err != nil {
		p.mu.Unlock()
		return err
	}
	var victims []*Lane
	var old *quicConn
	if l.conn == nil && p.conn != nil {
		old, p.conn = p.conn, nil
		victims = p.takeAll()
	} else {
		victims = append(victims, p.lanes[h.class], p.offered[h.class])
	}
	p.offered[h.class] = l
	if !l.dialed {
		p.seen[h.class] = h
		if l.conn == nil && p.cancelDial != nil {
			p.cancelDial()
		}
	}
	if l.conn == nil {
		p.note(l.carrier, l.remote, l.dialed)
	}
	p.broadcast()
	p.mu.Unlock()
	endAll(victims, ReasonSuperseded)
	if old != nil {
		old.close(ReasonSuperseded)
	}
	return nil
}

// admits says whether l could be offered now.
func (p *Peer) admits(l *Lane, h header) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refuses(l, h)
}

// refuses says why l cannot be offered, if so. mu is held.
func (p *Peer) refuses(l *Lane, h header) error {
	seen := p.seen[h.class]
	switch {
	case !l.dialed && seen.instance == h.instance && h.epoch <= seen.epoch:
		return ReasonSuperseded // overtaken on the way by a later one
	case l.conn == nil && !l.dialed && p.conn != nil && !p.conn.dialed && p.outdated(h):
		return ReasonSuperseded // the peer has chosen another carrier since
	case l.conn != nil && l.conn != p.conn:
		return ReasonSuperseded
	case l.conn != nil:
		if p.closed {
			return ReasonShutdown
		}
		return nil
	}
	return p.refusesFrom(l.dialed, []*Lane{p.lanes[h.class], p.offered[h.class]})
}
