package netstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// backlog is how many connections the host completes ahead of accept; the kernel
// takes net.core.somaxconn where that is less.
const backlog = 4096

// errShut is what accept wraps once its round is over.
var errShut = errors.New("not listening")

// A door is a listener that can be shut and opened again. While it is shut the
// host refuses whoever comes. One for tcp: keeps its port meanwhile, since its
// socket stays bound and only stops listening; one for unix: has no file then, and any
// other is closed. Each time that it is open is a round, so that whoever shuts it for what he saw
// in one does not shut the next.
type door struct {
	listen func(context.Context) (net.Listener, error)

	mu       sync.Mutex
	listener net.Listener
	round    int   // of this opening, or of the last one
	why      error // it is shut; nil while it is open
}

// newDoor makes a door that is shut. An error tells that from can't be listened on.
func newDoor(ctx context.Context, from string) (*door, error) {
	l, err := listen(ctx, from)
	if tcp, ok := l.(*net.TCPListener); ok && strings.HasSuffix(from, ":0") {
		// A port that the kernel chose is not kept by a socket that stops listening.
		from = "tcp:" + tcp.Addr().String()
		tcp.Close()
		l, err = listen(ctx, from)
	}
	if err != nil {
		return nil, err
	}
	return newDoorBy(func(ctx context.Context) (net.Listener, error) { return listen(ctx, from) }, l), nil
}

// newDoorBy makes a door that is shut, of a listener and what opens further ones.
func newDoorBy(listen func(context.Context) (net.Listener, error), l net.Listener) *door {
	d := &door{listen: listen, listener: l}
	d.shut(0, errShut)
	return d
}

// open opens a door that is shut, and returns the round that begins.
func (d *door) open(ctx context.Context) (round int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch l := d.listener.(type) {
	case *net.TCPListener:
		err = onSocket(l, func(fd int) error { return unix.Listen(fd, backlog) })
	default:
		if l, err = d.listen(ctx); err == nil {
			d.listener = l
		}
	}
	if err != nil {
		return 0, err
	}
	d.why = nil
	d.round++
	return d.round, nil
}

// accept waits for the next connection. The error wraps errShut, and the reason
// given to shut, once the round is over.
func (d *door) accept() (net.Conn, error) {
	d.mu.Lock()
	l := d.listener
	d.mu.Unlock()
	c, err := l.Accept()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil && d.why != nil {
		err = fmt.Errorf("%w: %w", errShut, d.why)
	}
	return c, err
}

// shut ends a round, if it goes on, and resets who waits to be accepted.
func (d *door) shut(round int, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.round != round || d.why != nil {
		return
	}
	d.why = why
	switch l := d.listener.(type) {
	case *net.TCPListener:
		_ = onSocket(l, func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RD) })
	default:
		l.Close()
	}
}

// close gives the port or the file back.
func (d *door) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.why == nil {
		d.why = net.ErrClosed
	}
	d.listener.Close()
}

func (d *door) addr() net.Addr {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.listener.Addr()
}

// onSocket calls f with the descriptor of l.
func onSocket(l *net.TCPListener, f func(fd int) error) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := raw.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
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
