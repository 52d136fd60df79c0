package vsock

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/mdlayher/vsock"
	"golang.org/x/sys/unix"
)

// hostWait is how long it takes at most until a kernel is noticed that has become a host
// of vsock: vhost_vsock is loaded with its first guest, which boots meanwhile.
const hostWait = 2 * time.Second

// A kernel is the host's AF_VSOCK, by functions since only a host with guests has one.
type kernel struct {
	listenAt func(port uint32) (net.Listener, error)
	dialTo   func(cid, port uint32) (net.Conn, error) // the kernel gives up after 2 s
	wait     time.Duration
}

var linuxKernel = kernel{
	// Bound to the host's CID, which only a host has: so that a gateway that is itself in
	// a guest does not serve the host of that one.
	listenAt: func(port uint32) (net.Listener, error) {
		l, err := vsock.ListenContextID(hostCID, port, nil)
		if err != nil {
			return nil, err
		}
		return l, nil
	},
	dialTo: func(cid, port uint32) (net.Conn, error) {
		c, err := vsock.Dial(cid, port, nil)
		if err != nil {
			return nil, err
		}
		return c, nil
	},
	wait: hostWait,
}

// A kernelConn is a connection with a guest of vhost-vsock.
type kernelConn struct {
	*vsock.Conn
	remote Addr
}

// RemoteAddr returns the guest's CID and port as an Addr.
func (c *kernelConn) RemoteAddr() net.Addr { return c.remote }

func named(c net.Conn) net.Conn {
	k, ok := c.(*vsock.Conn)
	if !ok {
		return c
	}
	a, ok := k.RemoteAddr().(*vsock.Addr)
	if !ok {
		return c
	}
	return &kernelConn{Conn: k, remote: Addr{CID: a.ContextID, Port: a.Port}}
}

// A kernelListener feeds a listener with what the kernel has for it.
type kernelListener struct {
	kernel kernel
	to     *listener
	done   chan struct{}

	mu     sync.Mutex
	socket net.Listener // nil while the kernel is no host
}

// listen begins to listen in the kernel, as soon as that is a host of vsock. It is nil
// if the kernel has none at all. Other errors are those of the socket.
func (k kernel) listen(to *listener) (*kernelListener, error) {
	socket, err := k.listenAt(to.port)
	switch {
	case errors.Is(err, unix.EAFNOSUPPORT):
		return nil, nil
	case err != nil && !errors.Is(err, unix.EADDRNOTAVAIL):
		if errors.Is(err, unix.EADDRINUSE) {
			err = errors.Join(ErrInUse, err)
		}
		return nil, err
	}
	l := &kernelListener{kernel: k, to: to, done: make(chan struct{}), socket: socket}
	go l.run()
	return l, nil
}

// run accepts until close.
func (l *kernelListener) run() {
	defer close(l.done)
	for {
		l.mu.Lock()
		socket := l.socket
		l.mu.Unlock()
		if socket != nil {
			l.accept(socket)
		}
		select {
		case <-l.to.done:
			return
		case <-time.After(l.kernel.wait):
		}
		if socket == nil {
			l.retry()
		}
	}
}

// accept passes connections on until it fails.
func (l *kernelListener) accept(socket net.Listener) {
	for {
		c, err := socket.Accept()
		if err != nil {
			return
		}
		select {
		case l.to.outside <- named(c):
		case <-l.to.done:
			c.Close()
			return
		}
	}
}

// retry listens if the kernel has become a host.
func (l *kernelListener) retry() {
	socket, err := l.kernel.listenAt(l.to.port)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.socket = socket
	select {
	case <-l.to.done: // close has not seen it
		socket.Close()
	default:
	}
}

// close ends the socket and waits for run. l's listener is closed already.
func (l *kernelListener) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	if l.socket != nil {
		l.socket.Close()
	}
	l.mu.Unlock()
	<-l.done
}

// dial connects with a guest of vhost-vsock.
func (k kernel) dial(ctx context.Context, a Addr) (net.Conn, error) {
	type result struct {
		c   net.Conn
		err error
	}
	dialed := make(chan result)
	go func() {
		c, err := k.dialTo(a.CID, a.Port)
		select {
		case dialed <- result{c, err}:
		case <-ctx.Done():
			if err == nil {
				c.Close()
			}
		}
	}()
	select {
	case r := <-dialed:
		if r.err != nil {
			return nil, asHost(r.err)
		}
		return named(r.c), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// asHost says what the kernel says of a guest as a socket of TCP would.
func asHost(err error) error {
	switch {
	case errors.Is(err, unix.ECONNRESET): // nobody listens
		return errors.Join(unix.ECONNREFUSED, err)
	case errors.Is(err, unix.ENODEV), errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.EADDRNOTAVAIL):
		return errors.Join(unix.EHOSTUNREACH, err)
	}
	return err
}
