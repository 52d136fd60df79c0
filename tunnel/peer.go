package tunnel

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A Peer is another gateway, as this one knows it.
type Peer struct {
	t   *Tunnel
	cfg PeerConfig

	mu      sync.Mutex
	closed  bool
	changed chan struct{} // closed and replaced whenever anything below changes

	conn    *quicConn         // the QUIC connection in use, or nil
	waiting []*quicConn       // that the peer dialed, and opened no lane on yet
	offered [NumClasses]*Lane // opened, by whichever end, and not yet taken by Lane
	lanes   [NumClasses]*Lane // taken by Lane, and not yet over
	wanted  [NumClasses]int   // callers of Lane that wait
	seen    [NumClasses]header
	pace    [NumClasses]pacer
	epoch   uint64

	worked     Carrier            // the last one that did, or 0
	rtt        time.Duration      // of the last QUIC connection
	settled    Carrier            // the TCP carrier that worked when a preferred one did not, or 0
	retryAt    time.Time          // when a preferred one is tried again
	retryIn    time.Duration      // how long after the last attempt retryAt is
	cancelDial context.CancelFunc // of the attempt in progress, or nil
	opening    bool               // a lane is being asked for, over a TCP carrier

	attempts  int
	lastErr   error
	lastConn  time.Time // when the last connection began that this end dialed
	since     time.Time
	connected bool
}

// PeerStatus is what is known of a peer at one moment. Nothing in it changes afterwards.
type PeerStatus struct {
	Fingerprint Fingerprint
	Endpoint    string // as configured
	Connected   bool
	Since       time.Time // of the present state; zero if there was never another
	Carrier     Carrier   // 0 unless connected
	Remote      net.Addr  // nil unless connected
	Dialed      bool      // this end called
	RTT         time.Duration
	Attempts    int   // calls that failed since it was last connected
	LastError   error // of the last failed call or lost connection, also when connected again
}

func newPeer(t *Tunnel, cfg PeerConfig) *Peer {
	return &Peer{t: t, cfg: cfg, changed: make(chan struct{})}
}

// Name returns the configured name.
func (p *Peer) Name() string { return p.cfg.Name }

// Status returns what is known of the peer now.
func (p *Peer) Status() PeerStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := PeerStatus{
		Fingerprint: p.cfg.Fingerprint, Endpoint: p.cfg.Endpoint,
		Connected: p.connected, Since: p.since, Attempts: p.attempts, LastError: p.lastErr,
	}
	if p.conn != nil {
		s.Carrier, s.Remote, s.Dialed = QUIC, p.conn.RemoteAddr(), p.conn.dialed
		s.RTT = p.conn.ConnectionStats().SmoothedRTT
	} else if l := p.anyLane(); l != nil {
		s.Carrier, s.Remote, s.Dialed = l.carrier, l.remote, l.dialed
		s.RTT = l.stream.(*tcpStream).rtt()
	}
	return s
}

// Lane returns a lane of the class whose epoch is new at both ends. It blocks
// until there is one: it lets the endpoint be called, with backoff, or waits to
// be called. The lane of the class before it is reset, if it is still open, so
// only one goroutine should ask for each class.
//
// The error matches that of ctx, with the last failure to connect, or
// [ErrClosed].
func (p *Peer) Lane(ctx context.Context, class Class) (*Lane, error) {
	op := "open " + class.String() + " lane"
	if class >= NumClasses {
		return nil, &PeerError{p.cfg.Name, op, ErrConfig}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.lanes[class] != nil {
		old := p.lanes[class]
		p.mu.Unlock()
		old.end(ReasonSuperseded, &ResetError{Reason: ReasonSuperseded})
		p.mu.Lock()
	}
	p.wanted[class]++
	p.broadcast()
	defer func() { p.wanted[class]-- }()
	for {
		if p.closed {
			return nil, &PeerError{p.cfg.Name, op, ErrClosed}
		}
		if l := p.offered[class]; l != nil {
			p.offered[class], p.lanes[class] = nil, l
			p.pace[class].started(time.Now())
			p.broadcast()
			return l, nil
		}
		var pause <-chan time.Time
		if p.conn != nil && p.conn.dialed {
			wait := time.Until(p.pace[class].ready())
			if wait <= 0 {
				if l := p.openOn(ctx, p.conn, class); l != nil {
					return l, nil
				}
				if ctx.Err() == nil {
					continue
				}
			}
			pause = time.After(wait)
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-pause:
		case <-ctx.Done():
		}
		p.mu.Lock()
		if err := ctx.Err(); err != nil && p.offered[class] == nil {
			if p.lastErr != nil {
				err = fmt.Errorf("%w; last failure: %w", err, p.lastErr)
			}
			return nil, &PeerError{p.cfg.Name, op, err}
		}
	}
}

// openOn opens a lane on a QUIC connection that this end dialed. It gives mu
// away meanwhile, and returns nil where the caller has to look again.
func (p *Peer) openOn(ctx context.Context, k *quicConn, class Class) *Lane {
	p.epoch++
	h := header{class: class, instance: p.t.instance, epoch: p.epoch}
	p.mu.Unlock()
	l, err := k.open(ctx, p, h)
	p.mu.Lock()
	switch {
	case err != nil:
		if ctx.Err() == nil && p.conn == k {
			p.drop(k, err)
		}
		return nil
	case p.conn != k || p.closed:
		l.stream.abort(ReasonSuperseded)
		return nil
	}
	p.lanes[class] = l
	p.pace[class].started(time.Now())
	return l
}

// forget is called by a lane that is over.
func (p *Peer) forget(l *Lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lanes[l.class] == l {
		p.lanes[l.class] = nil
	}
	if p.offered[l.class] == l {
		p.offered[l.class] = nil
	}
	if p.conn == nil && p.anyLane() == nil && !p.closed {
		p.lost(l.ended.Load().err)
	}
	p.broadcast()
}

// dropConn is called when a QUIC connection is over.
func (p *Peer) dropConn(k *quicConn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waitsNoMore(k)
	if p.conn == k {
		p.drop(k, err)
	}
}

// drop forgets the connection in use. Its lanes see their streams fail; those
// that nobody has taken are thrown away.
func (p *Peer) drop(k *quicConn, err error) {
	p.conn = nil
	p.rtt = k.ConnectionStats().SmoothedRTT
	if time.Since(k.since) > p.retryIn {
		p.retryIn = 0
	}
	err = resetOf(err)
	for class, l := range p.offered {
		if l != nil && l.conn == k {
			p.offered[class] = nil
			l.stream.abort(ReasonLost)
		}
	}
	p.lost(err)
	p.broadcast()
}

// takeAll empties the tables of lanes, and returns what was in them.
func (p *Peer) takeAll() []*Lane {
	all := append(p.lanes[:], p.offered[:]...)
	p.lanes, p.offered = [NumClasses]*Lane{}, [NumClasses]*Lane{}
	return all
}

// endAll ends lanes that make way: those over TCP for the given reason.
func endAll(lanes []*Lane, overTCP Reason) {
	for _, l := range lanes {
		if l == nil {
			continue
		}
		why := ReasonSuperseded
		if l.conn == nil {
			why = overTCP
		}
		l.end(why, &ResetError{Reason: why})
	}
}

// anyLane returns an open lane of a TCP carrier, or nil.
func (p *Peer) anyLane() *Lane {
	for i := range NumClasses {
		for _, l := range []*Lane{p.lanes[i], p.offered[i]} {
			if l != nil && l.conn == nil {
				return l
			}
		}
	}
	return nil
}

// note records that the peer is connected.
func (p *Peer) note(c Carrier, remote net.Addr, dialed bool) {
	if !p.connected || c == QUIC {
		p.log("peer connected", "peer", p.cfg.Name, "carrier", c.String(), "remote", remote.String(), "dialed", dialed)
	}
	if !p.connected {
		p.connected, p.since = true, time.Now()
	}
	p.attempts, p.worked = 0, c
	p.broadcast()
}

// lost records that the peer is not connected any more.
func (p *Peer) lost(err error) {
	if !p.connected {
		return
	}
	p.connected, p.since = false, time.Now()
	p.lastErr = &PeerError{p.cfg.Name, "stay connected", err}
	p.log("peer disconnected", "peer", p.cfg.Name, "err", err)
}

// log logs what happened to a connection. mu is held. Between ends that do not
// understand each other connections come and go until one of the two is another
// program, of which everything has been said.
func (p *Peer) log(what string, args ...any) {
	level := slog.LevelInfo
	for class := range p.pace {
		if p.pace[class].pause > 0 {
			level = slog.LevelDebug
		}
	}
	p.t.cfg.Logger.Log(p.t.ctx, level, what, args...)
}

// declined is called by a lane that was declined at this end.
func (p *Peer) declined(class Class) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pace[class].decline()
}

// failed records a call that failed, and logs the first of each kind.
func (p *Peer) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.connected || errors.Is(err, ReasonDuplicate) {
		return // the other end called meanwhile
	}
	level := p.t.cfg.Logger.Warn
	if p.attempts > 0 && p.lastErr != nil && p.lastErr.Error() == err.Error() {
		level = p.t.cfg.Logger.Debug
	}
	p.attempts++
	p.lastErr = err
	level("cannot reach peer", "peer", p.cfg.Name, "err", err, "attempts", p.attempts)
}

// broadcast wakes everyone who waits for a change. mu is held.
func (p *Peer) broadcast() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// close ends everything with the peer and lets nothing new begin.
func (p *Peer) close() {
	p.mu.Lock()
	p.closed = true
	victims, conns := p.takeAll(), p.waiting
	if p.conn != nil {
		conns = append(conns, p.conn)
	}
	p.conn, p.waiting, p.connected = nil, nil, false
	p.broadcast()
	p.mu.Unlock()
	for _, l := range victims {
		if l != nil {
			l.end(ReasonShutdown, ErrClosed)
		}
	}
	for _, k := range conns {
		k.close(ReasonShutdown)
	}
}
