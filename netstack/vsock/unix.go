package vsock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/netstack/link"
)

// The unix form of Firecracker (docs/vsock.md there) and Cloud Hypervisor: what a guest calls
// CID 2 with arrives at a socket that the host's side has at PATH_PORT. Who connects to the
// hypervisor's socket at PATH asks for a port of the guest in a line, and has the stream
// behind the hypervisor's answer in another.

// maxAnswer is the longest answer in bytes: "OK ", a port of 10 digits and the end of the line.
const maxAnswer = 14

var errAnswer = errors.New("not the answer of a hypervisor")

// A unixConn is a connection with a guest through its hypervisor's unix sockets.
type unixConn struct {
	*net.UnixConn
	remote Addr
}

// RemoteAddr returns an Addr with the path; the port of a guest that calls is not known, and 0.
func (c *unixConn) RemoteAddr() net.Addr { return c.remote }

// A unixListener takes what one guest calls a port of the host with.
type unixListener struct {
	*net.UnixListener
	addr Addr
}

// listenUnix listens at PATH_PORT.
func listenUnix(a Addr) (net.Listener, error) {
	l, err := link.Listen(a.Path + "_" + strconv.FormatUint(uint64(a.Port), 10))
	switch {
	case err == nil:
		return &unixListener{UnixListener: l, addr: a}, nil
	case errors.Is(err, link.ErrInUse), errors.Is(err, link.ErrOccupied):
		err = fmt.Errorf("%w: %w", ErrInUse, err)
	case errors.Is(err, link.ErrPath):
		err = fmt.Errorf("%w: %w", ErrAddress, err)
	}
	return nil, fmt.Errorf("%s: %w", a, err)
}

func (l *unixListener) Accept() (net.Conn, error) {
	c, err := l.AcceptUnix()
	if err != nil {
		return nil, err
	}
	return &unixConn{UnixConn: c, remote: Addr{Path: l.addr.Path}}, nil
}

// Addr returns the Addr that is listened on.
func (l *unixListener) Addr() net.Addr { return l.addr }

// dialUnix connects with a port of the guest whose hypervisor listens at a.Path.
func dialUnix(ctx context.Context, a Addr) (net.Conn, error) {
	var dialer net.Dialer
	d, err := dialer.DialContext(ctx, "unix", a.Path)
	if err != nil {
		// Without its hypervisor a guest does not refuse: it is not there.
		return nil, fmt.Errorf("%w: %s", unix.EHOSTUNREACH, err)
	}
	c := d.(*net.UnixConn)
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	err = ask(c, a.Port)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return &unixConn{UnixConn: c, remote: a}, nil
}

// ask asks a hypervisor for a port of its guest. A hypervisor closes the connection if
// nobody listens there.
func ask(c *net.UnixConn, port uint32) error {
	_, err := fmt.Fprintf(c, "CONNECT %d\n", port)
	var answer []byte
	for err == nil && len(answer) < maxAnswer {
		b := make([]byte, 1) // what is behind the line is the guest's
		if _, err = c.Read(b); err != nil {
			break
		}
		if b[0] == '\n' {
			return check(string(answer))
		}
		answer = append(answer, b[0])
	}
	if err != nil {
		return fmt.Errorf("%w: %s", unix.ECONNREFUSED, err)
	}
	return fmt.Errorf("%w: %q", errAnswer, answer)
}

func check(answer string) error {
	number, ok := strings.CutPrefix(answer, "OK ")
	if _, err := strconv.ParseUint(number, 10, 32); !ok || err != nil {
		return fmt.Errorf("%w: %q", errAnswer, answer)
	}
	return nil
}
