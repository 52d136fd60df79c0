package netstack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	dialTimeout        = 30 * time.Second
	defaultConnections = 16384
	acceptPause        = 50 * time.Millisecond // before trying again when the host has no descriptors left
)

// ForwardConfig says where to listen and what with to connect those who come.
type ForwardConfig struct {
	// From is where ordinary programs connect to: tcp:ADDRESS:PORT, with the
	// address in brackets if IPv6, or unix:PATH. A socket file that nobody listens
	// on is replaced.
	From string

	// To is whom they are connected with, through the stack and the tunnel.
	To netip.AddrPort

	// Source is what they connect from, an address of the stack; the stack's first
	// one of To's family if it is not valid.
	Source netip.Addr

	// DialTimeout is how long To may take to answer; 0 is 30 s.
	DialTimeout time.Duration

	// Connections is how many there are at most, 0 is 16384. Further ones wait in
	// the listener's backlog.
	Connections int
}

// A Forwarder is a listener of the host whose connections go on through the stack.
type Forwarder struct {
	cfg      ForwardConfig
	stack    *Stack
	listener net.Listener
	group    group
	cancel   context.CancelFunc
	slots    chan struct{} // one element per connection
	running  sync.WaitGroup
}

// Forward listens on cfg.From and connects each connection with cfg.To: end of
// file and resets pass in both directions, and who reads slowly slows the sender
// down. If To refuses or does not answer, the connection is reset. It goes on
// until the Forwarder or the stack is closed, or ctx is done.
func (s *Stack) Forward(ctx context.Context, cfg ForwardConfig) (*Forwarder, error) {
	to := cfg.To
	if !to.IsValid() || to.Port() == 0 || to.Addr().Is4In6() || to.Addr().Zone() != "" {
		return nil, fmt.Errorf("forward %s: to %s: %w: give the server's address and port, like 10.2.0.10:1883", cfg.From, to, ErrAddress)
	}
	if !cfg.Source.IsValid() {
		cfg.Source = s.first[familyIndex(to.Addr())]
	}
	if !s.own[cfg.Source] || cfg.Source.Is4() != to.Addr().Is4() {
		return nil, fmt.Errorf("forward %s: to %s: from %s: %w: the stack needs an address of the same family to connect from", cfg.From, to, cfg.Source, ErrAddress)
	}
	if cfg.DialTimeout <= 0 {
		cfg.DialTimeout = dialTimeout
	}
	if cfg.Connections <= 0 {
		cfg.Connections = defaultConnections
	}
	listener, err := listen(ctx, cfg.From)
	if err != nil {
		return nil, fmt.Errorf("forward %s: %w", cfg.From, err)
	}
	f := &Forwarder{cfg: cfg, stack: s, listener: listener, slots: make(chan struct{}, cfg.Connections)}
	f.group.ends = &s.forwards
	ctx, f.cancel = context.WithCancel(ctx)
	if err := s.adopt(f); err != nil {
		f.cancel()
		listener.Close()
		return nil, fmt.Errorf("forward %s: %w", cfg.From, err)
	}
	f.running.Go(func() { f.accept(ctx) })
	context.AfterFunc(ctx, func() { f.Close() })
	return f, nil
}

// listen opens the listener that from names.
func listen(ctx context.Context, from string) (net.Listener, error) {
	network, address, ok := strings.Cut(from, ":")
	var config net.ListenConfig
	switch {
	case ok && network == "tcp":
		l, err := config.Listen(ctx, "tcp", address)
		if errors.Is(err, unix.EADDRINUSE) {
			err = fmt.Errorf("%w (%w): choose another port, or stop the program that listens there", ErrInUse, err)
		}
		return l, err
	case ok && network == "unix" && address != "":
		if err := removeStale(address); err != nil {
			return nil, err
		}
		return config.Listen(ctx, "unix", address)
	}
	return nil, fmt.Errorf("%w: give tcp:ADDRESS:PORT or unix:PATH", ErrAddress)
}

// removeStale removes the socket file that a crash left behind: one that nobody
// answers on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is a file, not a socket: %w: choose another path", path, ErrInUse)
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		c.Close()
		return fmt.Errorf("%s: %w: stop the program that listens there, or choose another path", path, ErrInUse)
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("%s: %w (%w)", path, ErrInUse, err)
	}
	return os.Remove(path)
}

// Addr returns where the Forwarder listens.
func (f *Forwarder) Addr() net.Addr { return f.listener.Addr() }

func (f *Forwarder) accept(ctx context.Context) {
	defer f.listener.Close()
	for {
		select {
		case f.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		c, err := f.listener.Accept()
		if err != nil {
			<-f.slots
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select { // EMFILE and the like pass
			case <-time.After(acceptPause):
			case <-ctx.Done():
				return
			}
			continue
		}
		if !f.stack.forwards.begin() {
			c.Close()
			return
		}
		f.running.Go(func() {
			defer f.stack.forwards.done()
			f.connect(ctx, c)
			<-f.slots
		})
	}
}

// connect serves one connection.
func (f *Forwarder) connect(ctx context.Context, c net.Conn) {
	socket := newSocketEnd(c)
	ctx, cancel := context.WithTimeoutCause(ctx, f.cfg.DialTimeout, unix.ETIMEDOUT)
	far, err := f.stack.dialStack(ctx, f.cfg.Source, f.cfg.To)
	cancel()
	if err != nil {
		if errors.Is(err, unix.ECONNREFUSED) {
			f.stack.forwards.refused.Add(1)
		} else {
			f.stack.forwards.failed.Add(1)
		}
		socket.abort()
		return
	}
	f.group.splice(socket, far)
}

// Close stops listening, resets the connections and waits for them. The resets
// of the stack's side go out by its Read, so somebody has to be reading.
func (f *Forwarder) Close() error {
	f.cancel()
	f.listener.Close()
	f.group.close()
	f.running.Wait()
	f.stack.abandon(f)
	return nil
}

var _ io.Closer = (*Forwarder)(nil)
