package netstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	dialTimeout        = 30 * time.Second
	defaultConnections = 16384
	acceptPause        = 50 * time.Millisecond // before trying again when the host has no descriptors left
	firstProbe         = 250 * time.Millisecond
	lastProbe          = 5 * time.Second
)

// ForwardConfig says where to listen and what with to connect those who come.
type ForwardConfig struct {
	// From is where ordinary programs connect to: tcp:ADDRESS:PORT, with the
	// address in brackets if IPv6, or unix:PATH. A socket file that nobody listens
	// on is replaced.
	From string

	// Listen, if not nil, opens the listener in place of From, which then only names it in
	// errors. It is called to find out whether it can, and each time that To answers
	// again; the listener is closed each time that To does not, and is then to refuse who
	// comes and reset who waits to be accepted.
	Listen func(context.Context) (net.Listener, error)

	// To is whom they are connected with, through the stack and the tunnel.
	To netip.AddrPort

	// Source is what they connect from, an address of the stack; the stack's first
	// one of To's family if it is not valid.
	Source netip.Addr

	// SourceOf, if not nil, says what one connection connects from, by who made it: an
	// address of the stack of To's family, or Source if it is not valid. A connection
	// for which it is neither is reset.
	SourceOf func(remote net.Addr) netip.Addr

	// DialTimeout is how long To may take to answer; 0 is 30 s.
	DialTimeout time.Duration

	// Connections is how many there are at most, 0 is 16384. Further ones wait in
	// the listener's backlog.
	Connections int

	// Changed, if not nil, is called with nil when To answers and the listener
	// opens, and with the reason when it closes because To does not. One call ends
	// before the next begins.
	Changed func(error)
}

// A Forwarder is a listener of the host whose connections go on through the stack.
//
// An ordinary socket cannot leave a SYN unanswered until the far end has been
// asked: the kernel answers it at once. So the listener is open only while To
// answers. The first connection that To refuses, or that cannot be made, is
// reset and closes it; from then on the host refuses connections, as To would,
// and the Forwarder connects to To by itself, after 250 ms, then ever later up to
// 5 s, until that succeeds. It begins in this state. A health check that connects
// learns what it would learn beside the server, at the latest the second time.
type Forwarder struct {
	cfg     ForwardConfig
	stack   *Stack
	door    *door
	group   group
	cancel  context.CancelFunc
	slots   chan struct{} // one element per connection
	again   chan struct{} // capacity 1: ask To again now
	running sync.WaitGroup
}

// Forward listens on cfg.From and connects each connection with cfg.To: end of
// file and resets pass in both directions, and who reads slowly slows the sender
// down. It goes on until the Forwarder or the stack is closed, or ctx is done.
// Whether From can be listened on is found out at once; it is then held, but refuses
// until To answers.
func (s *Stack) Forward(ctx context.Context, cfg ForwardConfig) (*Forwarder, error) {
	to := cfg.To
	if !to.IsValid() || to.Port() == 0 || to.Addr().Is4In6() || to.Addr().Zone() != "" {
		return nil, fmt.Errorf("forward %s: to %s: %w: give the server's address and port, like 10.2.0.10:1883", cfg.From, to, ErrAddress)
	}
	if !cfg.Source.IsValid() {
		cfg.Source = s.first[familyIndex(to.Addr())]
	}
	if !s.isSource(cfg.Source, to) {
		return nil, fmt.Errorf("forward %s: to %s: from %s: %w: the stack needs an address of the same family to connect from", cfg.From, to, cfg.Source, ErrAddress)
	}
	if cfg.DialTimeout <= 0 {
		cfg.DialTimeout = dialTimeout
	}
	if cfg.Connections <= 0 {
		cfg.Connections = defaultConnections
	}
	d, err := cfg.door(ctx)
	if err != nil {
		return nil, fmt.Errorf("forward %s: %w", cfg.From, err)
	}
	f := &Forwarder{cfg: cfg, stack: s, door: d, slots: make(chan struct{}, cfg.Connections), again: make(chan struct{}, 1)}
	f.group.ends = &s.forwards
	ctx, f.cancel = context.WithCancel(ctx)
	if err := s.adopt(f); err != nil {
		f.cancel()
		d.close()
		return nil, fmt.Errorf("forward %s: %w", cfg.From, err)
	}
	f.running.Go(func() { f.run(ctx) })
	context.AfterFunc(ctx, func() { f.Close() })
	return f, nil
}

// door makes the door of a Forwarder.
func (c *ForwardConfig) door(ctx context.Context) (*door, error) {
	if c.Listen == nil {
		return newDoor(ctx, c.From)
	}
	l, err := c.Listen(ctx)
	if err != nil {
		return nil, err
	}
	return newDoorBy(c.Listen, l), nil
}

// isSource reports whether the stack can connect with to from source.
func (s *Stack) isSource(source netip.Addr, to netip.AddrPort) bool {
	return s.owns(source) && source.Is4() == to.Addr().Is4()
}

// Retry lets the Forwarders whose server did not answer ask again at once: what
// was in the way may be gone.
func (s *Stack) Retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		if f, ok := c.(*Forwarder); ok {
			select {
			case f.again <- struct{}{}:
			default:
			}
		}
	}
}

// Addr returns where the Forwarder listens, or will.
func (f *Forwarder) Addr() net.Addr { return f.door.addr() }

// run lets clients in while the server answers, until ctx is done.
func (f *Forwarder) run(ctx context.Context) {
	for f.await(ctx) {
		round, err := f.door.open(ctx)
		if err == nil {
			f.changed(nil)
			err = f.accept(ctx, round)
		}
		if ctx.Err() != nil {
			return
		}
		f.changed(err)
		select { // the server was there a moment ago
		case <-time.After(firstProbe):
		case <-ctx.Done():
		}
	}
}

// await returns true once the server answers, and false when ctx is done.
func (f *Forwarder) await(ctx context.Context) bool {
	for pause := firstProbe; ; pause = min(2*pause, lastProbe) {
		far, err := f.dial(ctx, f.cfg.Source)
		if err == nil {
			far.close()
			return ctx.Err() == nil
		}
		select {
		case <-time.After(pause):
		case <-f.again:
			pause = firstProbe / 2
		case <-ctx.Done():
			return false
		}
	}
}

func (f *Forwarder) changed(err error) {
	if f.cfg.Changed != nil {
		f.cfg.Changed(err)
	}
}

// dial connects with the server.
func (f *Forwarder) dial(ctx context.Context, source netip.Addr) (*stackEnd, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.cfg.DialTimeout, unix.ETIMEDOUT)
	defer cancel()
	return f.stack.dialStack(ctx, source, f.cfg.To)
}

// accept serves clients until the server does not answer one of them, and returns
// what was said to that one instead.
func (f *Forwarder) accept(ctx context.Context, round int) error {
	for {
		select {
		case f.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		c, err := f.door.accept()
		if err != nil {
			<-f.slots
			if errors.Is(err, errShut) {
				return err
			}
			select { // EMFILE and the like pass
			case <-time.After(acceptPause):
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		if !f.stack.forwards.begin() {
			c.Close()
			return net.ErrClosed
		}
		f.running.Go(func() {
			defer f.stack.forwards.done()
			f.connect(ctx, c, round)
			<-f.slots
		})
	}
}

// connect serves one connection, taken in the given round of the door.
func (f *Forwarder) connect(ctx context.Context, c net.Conn, round int) {
	socket := newSocketEnd(c)
	source := f.cfg.Source
	if f.cfg.SourceOf != nil {
		if own := f.cfg.SourceOf(c.RemoteAddr()); own.IsValid() {
			source = own
		}
	}
	if !f.stack.isSource(source, f.cfg.To) { // no fault of the server: the door stays open
		f.stack.forwards.failed.Add(1)
		socket.abort()
		return
	}
	far, err := f.dial(ctx, source)
	if err != nil {
		if errors.Is(err, unix.ECONNREFUSED) {
			f.stack.forwards.refused.Add(1)
		} else {
			f.stack.forwards.failed.Add(1)
		}
		f.door.shut(round, err)
		socket.abort()
		return
	}
	f.group.splice(socket, far)
}

// Close stops listening, resets the connections and waits for them. The resets
// of the stack's side go out by its Read, so somebody has to be reading.
func (f *Forwarder) Close() error {
	f.cancel()
	f.door.close()
	f.group.close()
	f.running.Wait()
	f.stack.abandon(f)
	return nil
}

var _ io.Closer = (*Forwarder)(nil)
