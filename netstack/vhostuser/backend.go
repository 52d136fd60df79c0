package vhostuser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"sheaf/netstack/link"
)

// How long a Backend waits before it tries again, at least and at most: after a failed
// call to a hypervisor, and after a front end with which it did not get on. The longest leaves
// room in the 2 seconds within which a port is to be there again; the shortest bounds what
// a hypervisor that does it wrong again and again costs.
const (
	minPause = 20 * time.Millisecond
	maxPause = 500 * time.Millisecond
)

// How much of what front ends and guests bring about is logged: each of them can do it as
// often as it likes, and the last of it is in Status anyway.
const (
	logEvery = time.Second // on average
	logBurst = 20          // as when a guest boots, or a gateway with it
)

// A Config says where a device is to be had.
type Config struct {
	Path string       // of the unix socket
	Dial bool         // the hypervisor listens there, not the gateway
	Log  *slog.Logger // nil: none
}

// A Backend serves a Device to one front end after the other.
type Backend struct {
	config   Config
	device   Device
	log      *slog.Logger
	logging  *rate.Limiter
	listener *net.UnixListener // nil if it dials
	closing  chan struct{}
	done     chan struct{}
	once     sync.Once

	mu     sync.Mutex
	conn   *net.UnixConn // with the front end that is served
	status link.Status
}

// Open begins to serve d at the socket of c: one that only the gateway's user may use, or
// with Dial the hypervisor's, whenever it is there. The error wraps one of the sentinels
// of package link where one fits.
func Open(c Config, d Device) (*Backend, error) {
	b := &Backend{config: c, device: d, log: c.Log, logging: rate.NewLimiter(rate.Every(logEvery), logBurst), closing: make(chan struct{}), done: make(chan struct{})}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	b.log = b.log.With("device", d.Offer().Name, "socket", c.Path)
	var err error
	if c.Dial {
		err = link.CheckPath(c.Path)
	} else {
		b.listener, err = link.Listen(c.Path)
	}
	if err != nil {
		return nil, err
	}
	go b.run()
	return b, nil
}

// note logs what happened, unless too much does. err is why, or nil.
func (b *Backend) note(level slog.Level, what string, err error) {
	if !b.logging.Allow() {
		return
	}
	var why []any
	if err != nil {
		why = []any{"error", err}
	}
	b.log.Log(context.Background(), level, what, why...)
}

// Status tells of the guest: Up, Since, Fault and Connects. The counters are the device's.
func (b *Backend) Status() link.Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// Close ends the connection, stops the device and takes the socket away. It returns when
// all of that is done; closing again does nothing.
func (b *Backend) Close() error {
	b.once.Do(func() {
		close(b.closing)
		if b.listener != nil {
			b.listener.Close()
		}
		b.mu.Lock()
		if b.conn != nil {
			b.conn.Close()
		}
		b.mu.Unlock()
	})
	<-b.done
	return nil
}

// run serves front ends until Close. A second one at the same time waits in the queue of
// the listening socket: a hypervisor that was killed and started may call before the end
// of the first one shows.
func (b *Backend) run() {
	defer close(b.done)
	pause := minPause
	for {
		conn, err := b.connect()
		if err == nil {
			err = b.serve(conn)
		}
		wait := time.Duration(0)
		if err == nil {
			pause = minPause
		} else {
			wait, pause = pause, min(2*pause, maxPause)
		}
		select {
		case <-b.closing:
			return
		case <-time.After(wait):
		}
	}
}

// connect returns a connection with a front end.
func (b *Backend) connect() (*net.UnixConn, error) {
	if b.listener != nil {
		return b.listener.AcceptUnix()
	}
	return net.DialUnix("unix", nil, &net.UnixAddr{Net: "unix", Name: b.config.Path})
}

// serve serves one front end. The error is nil if it went by itself, after the device ran.
func (b *Backend) serve(conn *net.UnixConn) (err error) {
	connects := b.Status().Connects
	if err = b.keep(conn); err == nil {
		b.note(slog.LevelDebug, "front end connected", nil)
		err = newFront(b.device, b).serve(newSocket(conn), b.refused)
	}
	b.keep(nil)
	conn.Close()
	b.up(false) // now that nothing of it is left
	if v := (*violation)(nil); errors.As(err, &v) {
		b.fault(fmt.Errorf("the front end: %w", v))
		return err
	}
	b.note(slog.LevelDebug, "front end gone", err)
	if b.Status().Connects == connects {
		return err
	}
	return nil
}

// refused notes what a front end did not get: QEMU starts no NIC whose MTU is refused.
func (b *Backend) refused(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.status.Up {
		b.status.Fault = "the front end: " + err.Error()
	}
	b.note(slog.LevelWarn, "refused to the front end", err)
}

// keep makes conn the one that Close closes. The error is os.ErrClosed after Close.
func (b *Backend) keep(conn *net.UnixConn) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conn = conn
	select {
	case <-b.closing:
		return os.ErrClosed
	default:
		return nil
	}
}

// up is of frontEvents.
func (b *Backend) up(up bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if up == b.status.Up {
		return
	}
	b.status.Up, b.status.Since = up, time.Now()
	if up {
		b.status.Connects++
		b.status.Fault = ""
		b.note(slog.LevelInfo, "guest is there", nil)
	} else {
		b.note(slog.LevelInfo, "guest is gone", nil)
	}
}

// fault is of frontEvents.
func (b *Backend) fault(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.Fault = err.Error()
	b.note(slog.LevelWarn, "guest given up", err)
}
