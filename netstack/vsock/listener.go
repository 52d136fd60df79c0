package vsock

import (
	"net"
	"sync"
)

// A listener takes what guests call a port of the host with.
type listener struct {
	host *Host
	port uint32

	mu      sync.Mutex
	closed  bool
	waiting []*conn       // each one of the calls that its guest may have
	changed chan struct{} // capacity 1: of waiting
	outside chan net.Conn // no capacity: from kernel
	done    chan struct{} // closed by Close

	kernel *kernelListener // nil if the kernel has no vsock
}

func newListener(h *Host, port uint32) *listener {
	return &listener{host: h, port: port, changed: make(chan struct{}, 1), outside: make(chan net.Conn), done: make(chan struct{})}
}

// push has a connection be accepted. It is false, and the connection the caller's, if l is closed.
func (l *listener) push(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.waiting = append(l.waiting, c)
	l.notify()
	return true
}

func (l *listener) notify() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Accept returns the next connection, whose remote address is an Addr. After Close the
// error is net.ErrClosed.
func (l *listener) Accept() (net.Conn, error) {
	for {
		if c, err := l.pop(); c != nil || err != nil {
			return c, err
		}
		select {
		case c := <-l.outside:
			return c, nil
		case <-l.changed:
		case <-l.done:
		}
	}
}

// pop returns the first that waits, or nil.
func (l *listener) pop() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, net.ErrClosed
	case len(l.waiting) == 0:
		return nil, nil
	}
	c := l.waiting[0]
	l.waiting[0] = nil
	if l.waiting = l.waiting[1:]; len(l.waiting) > 0 {
		l.notify() // whoever else accepts
	}
	return c, nil
}

// Addr returns the Addr that is listened on.
func (l *listener) Addr() net.Addr { return Addr{Port: l.port} }

// Close resets who waits to be accepted; from then on guests that call are refused.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return net.ErrClosed
	}
	l.closed = true
	waiting := l.waiting
	l.waiting = nil
	close(l.done)
	l.mu.Unlock()
	l.host.forget(l)
	l.kernel.close()
	for _, c := range waiting {
		c.SetLinger(0)
		c.Close()
	}
	return nil
}
