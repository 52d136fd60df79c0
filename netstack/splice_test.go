package netstack

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// serve runs a server on loopback, one goroutine per connection.
func serve(t *testing.T, handle func(*net.TCPConn)) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { l.Close(); running.Wait() })
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer c.Close()
				handle(c.(*net.TCPConn))
			})
		}
	})
	return l.Addr().(*net.TCPAddr).AddrPort()
}

func echo(c *net.TCPConn) { io.Copy(c, c) }

// join lets clients reach a server on loopback as 10.2.0.10:1883 and
// [fd02::10]:1883, and returns where they have to connect to for either. The
// server sees nothing of how the Forwarders find out that it answers.
func join(t *testing.T, clients, brokers *Stack, server netip.AddrPort, cfg TerminateConfig) (addr4, addr6 string) {
	t.Helper()
	var target atomic.Pointer[netip.AddrPort]
	first := serve(t, func(*net.TCPConn) {})
	target.Store(&first)
	cfg.Prefixes = []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24"), netip.MustParsePrefix("fd02::/64")}
	cfg.Map = func(netip.AddrPort) netip.AddrPort { return *target.Load() }
	if _, err := brokers.Terminate(cfg); err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for _, to := range []netip.Addr{server4, server6} {
		f, changed := forward(t, clients, ForwardConfig{From: "tcp:127.0.0.1:0", To: netip.AddrPortFrom(to, 1883)})
		next(t, changed, nil)
		addrs = append(addrs, f.Addr().String())
	}
	waitFor(t, "the connections that found the server to end", func() bool {
		terminal := brokers.Stats().Terminal
		return terminal.Opened == uint64(len(addrs)) && terminal.Active == 0
	})
	target.Store(&server)
	return addrs[0], addrs[1]
}

// forward makes a Forwarder, and a channel of what it says of its server.
func forward(t *testing.T, s *Stack, cfg ForwardConfig) (*Forwarder, chan error) {
	t.Helper()
	changed := make(chan error, 100)
	cfg.Changed = func(err error) { changed <- err }
	f, err := s.Forward(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f, changed
}

// next waits for what a Forwarder says next of its server.
func next(t *testing.T, changed chan error, want error) {
	t.Helper()
	select {
	case err := <-changed:
		if !errors.Is(err, want) {
			t.Fatalf("the Forwarder says of its server: %v, want %v", err, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("the Forwarder does not say of its server: %v", want)
	}
}

func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c.(*net.TCPConn)
}

func TestEcho(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{})
	addr4, addr6 := join(t, clients, brokers, serve(t, echo), TerminateConfig{})
	for _, addr := range []string{addr4, addr6} {
		c := dial(t, addr)
		sent := sha256.New()
		const size = 8 << 20
		go func() {
			block := make([]byte, 100_000)
			for i := 0; i < size; i += len(block) {
				block[i%len(block)]++
				c.Write(block)
				sent.Write(block)
			}
			c.CloseWrite()
		}()
		got := sha256.New()
		n, err := io.Copy(got, c)
		if err != nil || n < size || !bytes.Equal(got.Sum(nil), sent.Sum(nil)) {
			t.Errorf("%d bytes came back, the same: %v; %v", n, bytes.Equal(got.Sum(nil), sent.Sum(nil)), err)
		}
	}
	if s := clients.Stats().Forward; s.Opened != 2 {
		t.Errorf("%+v", s)
	}
}

// Each side may go on sending after the other has ended.
func TestHalfClose(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{})
	server := serve(t, func(c *net.TCPConn) {
		c.Write([]byte("hello"))
		c.CloseWrite()
		b, _ := io.ReadAll(c)
		if string(b) != "good-bye" {
			t.Errorf("server got %q", b)
		}
	})
	addr, _ := join(t, clients, brokers, server, TerminateConfig{})
	c := dial(t, addr)
	if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
		t.Fatalf("client got %q, %v", b, err)
	}
	time.Sleep(20 * time.Millisecond)
	if _, err := c.Write([]byte("good-bye")); err != nil {
		t.Fatal(err)
	}
	c.CloseWrite()
	waitFor(t, "the connection to end", func() bool {
		return clients.Stats().Forward.Active == 0 && brokers.Stats().Terminal.Active == 0
	})
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestResetFromServer(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{})
	server := serve(t, func(c *net.TCPConn) {
		io.ReadFull(c, make([]byte, 2))
		c.Write([]byte("ok"))
		c.SetLinger(0)
	})
	addr, _ := join(t, clients, brokers, server, TerminateConfig{})
	c := dial(t, addr)
	c.Write([]byte("hi"))
	b, err := io.ReadAll(c)
	if string(b) != "ok" || !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("client got %q, %v; want ok and a reset", b, err)
	}
}

func TestResetFromClient(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{})
	got := make(chan error, 1)
	server := serve(t, func(c *net.TCPConn) {
		_, err := io.ReadAll(c)
		got <- err
	})
	addr, _ := join(t, clients, brokers, server, TerminateConfig{})
	c := dial(t, addr)
	c.Write([]byte("hi"))
	waitFor(t, "the connection", func() bool { return brokers.Stats().Terminal.Active == 1 })
	c.SetLinger(0)
	c.Close()
	select {
	case err := <-got:
		if !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("server got %v, want a reset", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the server does not notice")
	}
}

// A server that does not read holds the client up before much is in between.
func TestBackpressure(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{Buffer: 64 << 10, Queue: 16})
	hold := make(chan bool)
	total := make(chan int64, 1)
	server := serve(t, func(c *net.TCPConn) {
		c.SetReadBuffer(64 << 10)
		<-hold
		n, _ := io.Copy(io.Discard, c)
		total <- n
	})
	addr, _ := join(t, clients, brokers, server, TerminateConfig{})
	c := dial(t, addr)
	c.SetWriteBuffer(64 << 10)
	c.SetWriteDeadline(time.Now().Add(time.Second))
	sent := int64(0)
	block := make([]byte, 64<<10)
	for sent < 256<<20 {
		n, err := c.Write(block)
		sent += int64(n)
		if err != nil {
			break
		}
	}
	// Two stacks of 64 KiB each way, their queues, and what the kernel holds of two
	// loopback connections.
	if sent > 16<<20 {
		t.Errorf("%d bytes were taken though nobody reads", sent)
	}
	close(hold)
	c.CloseWrite()
	if n := <-total; n != sent {
		t.Errorf("server got %d bytes of %d", n, sent)
	}
}

func TestManyConnections(t *testing.T) {
	n := 1000
	if testing.Short() || raceEnabled {
		n = 200
	}
	clients, brokers := backToBack(t, StackConfig{})
	addr, _ := join(t, clients, brokers, serve(t, echo), TerminateConfig{})
	conns := make([]*net.TCPConn, n)
	for i := range conns {
		conns[i] = dial(t, addr)
	}
	waitFor(t, "all to be connected", func() bool { return brokers.Stats().Terminal.Active == int64(n) })
	for round := range 3 {
		for i, c := range conns {
			fmt.Fprintf(c, "%08d", i+round)
		}
		for i, c := range conns {
			b := make([]byte, 8)
			if _, err := io.ReadFull(c, b); err != nil || string(b) != fmt.Sprintf("%08d", i+round) {
				t.Fatalf("connection %d got %q, %v", i, b, err)
			}
		}
	}
	for _, c := range conns {
		c.Close()
	}
	waitFor(t, "all to end", func() bool { return brokers.Stats().Terminal.Active == 0 })
}

func TestProxyProtocol(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{})
	got := make(chan []byte, 1)
	server := serve(t, func(c *net.TCPConn) {
		b, _ := io.ReadAll(c)
		got <- b
	})
	addr4, addr6 := join(t, clients, brokers, server, TerminateConfig{ProxyProtocol: true})
	for _, tt := range []struct {
		addr           string
		src, dst       netip.Addr
		family, length byte
	}{
		{addr4, netip.MustParseAddr("10.99.0.1"), server4, 0x11, 12},
		{addr6, netip.MustParseAddr("fd99::1"), server6, 0x21, 36},
	} {
		c := dial(t, tt.addr)
		c.Write([]byte("MQTT"))
		c.CloseWrite()
		b := <-got
		// From the specification: signature, version and command, family, length,
		// both addresses, both ports.
		want := []byte{0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, 0x21, tt.family, 0, tt.length}
		want = append(append(want, tt.src.AsSlice()...), tt.dst.AsSlice()...)
		if !bytes.HasPrefix(b, want) || len(b) != len(want)+4+4 {
			t.Fatalf("got % x", b)
		}
		rest := b[len(want):]
		if rest[0] < 0x3E || rest[2] != 1883>>8 || rest[3] != 1883&0xFF || string(rest[4:]) != "MQTT" {
			t.Errorf("ports and data % x", rest)
		}
	}
}

// deadAddress is one on loopback where nobody listens.
func deadAddress(t *testing.T) netip.AddrPort {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// While a server refuses, the Forwarder's host refuses in its place; the one
// connection that finds out is reset.
func TestRefused(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			clients, brokers := backToBack(t, StackConfig{})
			from := map[string]string{"tcp": "tcp:127.0.0.1:0", "unix": "unix:" + filepath.Join(t.TempDir(), "s")}[network]
			var target atomic.Pointer[netip.AddrPort]
			dead, alive := deadAddress(t), serve(t, echo)
			target.Store(&dead)
			_, err := brokers.Terminate(TerminateConfig{
				Prefixes: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24")},
				Map:      func(netip.AddrPort) netip.AddrPort { return *target.Load() },
			})
			if err != nil {
				t.Fatal(err)
			}
			f, changed := forward(t, clients, ForwardConfig{From: from, To: netip.AddrPortFrom(server4, 1883)})
			call := func() (net.Conn, error) { return net.Dial(network, f.Addr().String()) }
			refused := func(when string) {
				t.Helper()
				if c, err := call(); !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.ENOENT) {
					t.Errorf("%s: %v, %v; want to be refused", when, c, err)
				}
			}
			waitFor(t, "the server to refuse", func() bool { return brokers.Stats().Terminal.Refused > 0 })
			refused("before the server was ever there")
			for range 2 {
				target.Store(&alive)
				clients.Retry()
				next(t, changed, nil)
				c, err := call()
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(time.Minute))
				fmt.Fprint(c, "hello")
				if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
					t.Fatal(err)
				}
				target.Store(&dead)
				if lost, err := call(); err == nil { // else the reset came while Dial looked
					lost.SetDeadline(time.Now().Add(time.Minute))
					if _, err := lost.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) && network == "tcp" || err == nil {
						t.Errorf("the connection that finds out: %v, want a reset", err)
					}
				}
				next(t, changed, unix.ECONNREFUSED)
				refused("after the server refused one")
				fmt.Fprint(c, "still")
				if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
					t.Errorf("a connection from before: %v", err)
				}
			}
		})
	}
}

// Bytes sent as urgent stay in their place, where the kernel takes the last one
// out and drops those before it.
func TestUrgentInLine(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{})
	got := make(chan string, 1)
	server := serve(t, func(c *net.TCPConn) {
		sendUrgent(t, c, "IJ")
		b, _ := io.ReadAll(c)
		got <- string(b)
	})
	addr, _ := join(t, clients, brokers, server, TerminateConfig{})
	c := dial(t, addr)
	for _, s := range []string{"ab", "cd"} {
		sendUrgent(t, c, s)
		io.WriteString(c, "-")
	}
	c.CloseWrite()
	if s := <-got; s != "ab-cd-" {
		t.Errorf("the server got %q", s)
	}
	if b, err := io.ReadAll(c); string(b) != "IJ" || err != nil {
		t.Errorf("the client got %q, %v", b, err)
	}
}

// sendUrgent sends b, the last byte of it as urgent.
func sendUrgent(t *testing.T, c *net.TCPConn, b string) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err == nil {
		raw.Control(func(fd uintptr) { err = unix.Send(int(fd), []byte(b), unix.MSG_OOB) })
	}
	if err != nil {
		t.Error(err)
	}
}
