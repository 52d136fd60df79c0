package netstack

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	proxyproto "github.com/pires/go-proxyproto"
	"golang.org/x/sys/unix"
)

// A namedConn is a connection that is no socket to look at. It says who made it, and how
// often it was waited for.
type namedConn struct {
	net.Conn
	name  namedAddr
	waits atomic.Int32
}

func (c *namedConn) RemoteAddr() net.Addr    { return c.name }
func (c *namedConn) WaitRead()               { c.waits.Add(1) }
func (c *namedConn) SetLinger(sec int) error { return c.Conn.(*net.TCPConn).SetLinger(sec) }

type namedAddr string

func (a namedAddr) Network() string { return "named" }
func (a namedAddr) String() string  { return string(a) }

// A namedListener gives those who come the names in turn.
type namedListener struct {
	net.Listener
	names chan namedAddr
	conns chan *namedConn
}

func (l *namedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	named := &namedConn{Conn: c, name: <-l.names}
	l.conns <- named
	return named, nil
}

// A listener from outside is opened when the server answers and closed when it does not,
// and each who comes by it connects from an address of his own.
func TestForwardListen(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{})
	own := netip.MustParseAddr("10.99.0.11")
	if err := clients.AddAddress(own); err != nil {
		t.Fatal(err)
	}
	from := make(chan netip.Addr, 10)
	server := serve(t, func(c *net.TCPConn) {
		r := bufio.NewReader(c)
		if h, err := proxyproto.Read(r); err == nil {
			from <- h.SourceAddr.(*net.TCPAddr).AddrPort().Addr()
		}
		io.Copy(c, r)
	})
	var target atomic.Pointer[netip.AddrPort]
	dead := deadAddress(t)
	target.Store(&server)
	if _, err := brokers.Terminate(TerminateConfig{
		Prefixes:      []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24")},
		Map:           func(netip.AddrPort) netip.AddrPort { return *target.Load() },
		ProxyProtocol: true,
	}); err != nil {
		t.Fatal(err)
	}
	names, conns := make(chan namedAddr, 10), make(chan *namedConn, 10)
	address := "127.0.0.1:0"
	f, changed := forward(t, clients, ForwardConfig{
		From: "named:1",
		To:   netip.AddrPortFrom(server4, 1883),
		Listen: func(context.Context) (net.Listener, error) {
			l, err := net.Listen("tcp", address)
			if err != nil {
				return nil, err
			}
			address = l.Addr().String()
			return &namedListener{l, names, conns}, nil
		},
		SourceOf: func(a net.Addr) netip.Addr {
			switch a.String() {
			case "meter":
				return own
			case "stranger":
				return server4
			}
			return netip.Addr{}
		},
	})
	next(t, changed, nil)
	if a := <-from; a != gatewayOf(clients) {
		t.Errorf("asks for the server from %s", a)
	}
	for name, want := range map[namedAddr]netip.Addr{"meter": own, "nobody": gatewayOf(clients)} {
		names <- name
		c := dial(t, f.Addr().String())
		c.Write([]byte("hello"))
		if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		if got := <-from; got != want {
			t.Errorf("%s connects from %s, want %s", name, got, want)
		}
		if (<-conns).waits.Load() == 0 {
			t.Error("a buffer is held to wait")
		}
		c.Close()
	}
	names <- "stranger"
	c := dial(t, f.Addr().String())
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("from an address that is not the stack's: %v, want a reset", err)
	}
	<-conns
	target.Store(&dead)
	names <- "meter"
	dial(t, f.Addr().String())
	next(t, changed, unix.ECONNREFUSED)
	if c, err := net.Dial("tcp", f.Addr().String()); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("while the server does not answer: %v, %v; want to be refused", c, err)
	}
	target.Store(&server)
	clients.Retry()
	next(t, changed, nil)
	names <- "meter"
	again := dial(t, f.Addr().String())
	again.Write([]byte("hello"))
	if _, err := io.ReadFull(again, make([]byte, 5)); err != nil {
		t.Error("once it answers again:", err)
	}
}

func gatewayOf(s *Stack) netip.Addr { return s.first[0] }

// What Listen says when it can't is what Forward says.
func TestForwardListenFails(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{Addresses: []netip.Prefix{netip.PrefixFrom(gateway4, 24)}})
	_, err := s.Forward(t.Context(), ForwardConfig{
		To:     netip.AddrPortFrom(server4, 1883),
		Listen: func(context.Context) (net.Listener, error) { return nil, unix.EADDRINUSE },
	})
	if !errors.Is(err, unix.EADDRINUSE) {
		t.Error(err)
	}
}

// A stack has the addresses that it was given since, until they are taken away.
func TestAddAddress(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{Addresses: []netip.Prefix{netip.PrefixFrom(gateway4, 24)}})
	for _, a := range []netip.Addr{netip.MustParseAddr("10.99.0.11"), netip.MustParseAddr("fd99::11")} {
		if owns(s, a) {
			t.Errorf("has %s already", a)
		}
		if err := s.AddAddress(a); err != nil || !owns(s, a) {
			t.Errorf("%s was added: %v", a, err)
		}
		if err := s.AddAddress(a); !errors.Is(err, ErrAddress) {
			t.Errorf("%s again: %v", a, err)
		}
		if err := s.RemoveAddress(a); err != nil || owns(s, a) {
			t.Errorf("%s was removed: %v", a, err)
		}
		if err := s.RemoveAddress(a); !errors.Is(err, ErrAddress) {
			t.Errorf("%s is removed again: %v", a, err)
		}
	}
	if err := s.RemoveAddress(gateway4); !errors.Is(err, ErrAddress) || !owns(s, gateway4) {
		t.Errorf("what Forward connects from is removed: %v", err)
	}
}

// A server that no address leads to is connected with by its function, behind Map; what
// that says of it is what a socket would.
func TestTerminateVia(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{})
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.Copy(c, c)
			c.Close()
		}
	}()
	guest := netip.MustParseAddrPort("10.2.0.77:1883")
	var fault atomic.Pointer[unix.Errno]
	if _, err := brokers.Terminate(TerminateConfig{
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24")},
		Map:      func(netip.AddrPort) netip.AddrPort { return guest },
		Dial: func(context.Context, string, netip.AddrPort) (net.Conn, error) {
			t.Error("an address was dialed")
			return nil, unix.ECONNREFUSED
		},
		Via: map[netip.AddrPort]func(context.Context) (net.Conn, error){
			guest: func(ctx context.Context) (net.Conn, error) {
				if errno := fault.Load(); errno != nil {
					return nil, *errno
				}
				return new(net.Dialer).DialContext(ctx, "unix", path)
			},
		},
	}); err != nil {
		t.Fatal(err)
	}
	to := netip.AddrPortFrom(server4, 1883)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	e, err := clients.dialStack(ctx, netip.Addr{}, to)
	if err != nil {
		t.Fatal(err)
	}
	e.send([]byte("hello"))
	e.closeWrite()
	if c, n, err := e.receive(); err != nil || string(c[:n]) != "hello" {
		t.Errorf("%v", err)
	}
	e.close()
	for _, want := range []unix.Errno{unix.ECONNREFUSED, unix.EHOSTUNREACH} {
		fault.Store(&want)
		if _, err := clients.dialStack(ctx, netip.Addr{}, to); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	failed := brokers.Stats().Terminal.Failed
	brokers.Input([][]byte{datagram("hello")})
	waitFor(t, "a datagram to have no way there", func() bool { return brokers.Stats().Terminal.Failed > failed })
}
