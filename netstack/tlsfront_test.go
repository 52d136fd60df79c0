package netstack

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"sheaf/netstack/certtest"
)

// A frontTest is a TLSFront between a plain server on loopback and clients on loopback.
type frontTest struct {
	front   *TLSFront
	brokers *Stack
	ca      *certtest.CA
	addr    string     // where clients connect to
	failed  chan error // of handshakes

	server atomic.Pointer[tls.Config] // of the front
}

// newFront makes one. change sees the front's configuration, and what the stack stands
// in for, before they are used.
func newFront(t *testing.T, handle func(*net.TCPConn), change func(*tls.Config, *TLSFrontConfig, *TerminateConfig)) *frontTest {
	t.Helper()
	clients, brokers := backToBack(t, StackConfig{})
	ft := &frontTest{brokers: brokers, ca: certtest.NewCA(t, "an authority"), failed: make(chan error, 100)}
	server := &tls.Config{Certificates: []tls.Certificate{ft.ca.Issue(t, certtest.Leaf{Name: "broker", Hosts: []string{"broker.test"}})}}
	ft.server.Store(server)
	at := netip.AddrPortFrom(server4, 1883)
	cfg := TLSFrontConfig{
		Config: ft.server.Load,
		To:     serve(t, handle),
		Failed: func(_ netip.AddrPort, err error) { ft.failed <- err },
	}
	terminate := TerminateConfig{Prefixes: []netip.Prefix{netip.PrefixFrom(server4, 32)}}
	if change != nil {
		change(server, &cfg, &terminate)
	}
	ft.front = NewTLSFront(cfg)
	terminate.TLS = map[netip.AddrPort]*TLSFront{at: ft.front}
	if _, err := brokers.Terminate(terminate); err != nil {
		t.Fatal(err)
	}
	f, changed := forward(t, clients, ForwardConfig{From: "tcp:127.0.0.1:0", To: at})
	next(t, changed, nil)
	<-ft.failed // the connection that found the server
	ft.addr = f.Addr().String()
	return ft
}

// client returns what a client of the front uses.
func (ft *frontTest) client() *tls.Config {
	return &tls.Config{ServerName: "broker.test", RootCAs: ft.ca.Pool()}
}

// dial connects, without a handshake yet.
func (ft *frontTest) dial(t *testing.T, cfg *tls.Config) (*tls.Conn, *net.TCPConn) {
	t.Helper()
	raw := dial(t, ft.addr)
	return tls.Client(raw, cfg), raw
}

// echoOnce sends a word, ends, and wants it back with the end.
func echoOnce(t *testing.T, c *tls.Conn, word string) {
	t.Helper()
	if _, err := io.WriteString(c, word); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || string(got) != word {
		t.Fatalf("%d bytes came back of %d, %v", len(got), len(word), err)
	}
}

// Every version and suite that a front has, once over more bytes than the buffers hold.
func TestTLSFrontCarries(t *testing.T) {
	for _, key := range []string{"ECDSA", "RSA"} {
		t.Run(key, func(t *testing.T) {
			var log bytes.Buffer
			ft := newFront(t, echo, func(server *tls.Config, _ *TLSFrontConfig, _ *TerminateConfig) { server.KeyLogWriter = &log })
			if key == "RSA" {
				rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
				if err != nil {
					t.Fatal(err)
				}
				server := ft.server.Load().Clone()
				server.Certificates = []tls.Certificate{ft.ca.Issue(t, certtest.Leaf{Hosts: []string{"broker.test"}, Key: rsaKey})}
				ft.server.Store(server)
			}
			opened := uint64(0)
			try := func(size int64, change func(*tls.Config)) {
				t.Helper()
				cfg := ft.client()
				change(cfg)
				c, _ := ft.dial(t, cfg)
				go func() {
					_, _ = c.Write(make([]byte, size))
					_ = c.CloseWrite()
				}()
				if n, err := io.Copy(io.Discard, c); n != size || err != nil {
					t.Errorf("%s: %d bytes came back, %v", tls.CipherSuiteName(c.ConnectionState().CipherSuite), n, err)
				}
				opened++
			}
			try(3<<20, func(*tls.Config) {})
			for suite := range proxyCiphers {
				if strings.Contains(tls.CipherSuiteName(suite), "_"+key+"_") {
					try(100_000, func(cfg *tls.Config) { cfg.MaxVersion, cfg.CipherSuites = tls.VersionTLS12, []uint16{suite} })
				}
			}
			waitFor(t, "all to end", func() bool { return ft.front.Stats().Active == 0 })
			if s := ft.front.Stats(); s.Opened != opened || opened != 4 || s.Failed != 1 {
				t.Errorf("%d connections, %+v", opened, s)
			}
			if n := strings.Count(log.String(), "CLIENT_RANDOM "); n != 3 || strings.Count(log.String(), "SERVER_TRAFFIC_SECRET_0 ") != 1 {
				t.Errorf("key log has %d lines of TLS 1.2", n)
			}
		})
	}
}

// A client that comes back goes on with its session.
func TestTLSFrontResumes(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			ft := newFront(t, echo, nil)
			cfg := ft.client()
			cfg.MinVersion, cfg.MaxVersion = version, version
			cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			for i := range 3 {
				c, _ := ft.dial(t, cfg)
				echoOnce(t, c, "hello")
				if got := c.ConnectionState().DidResume; got != (i > 0) {
					t.Errorf("connection %d resumed: %v", i, got)
				}
			}
			if s := ft.front.Stats(); s.Opened != 3 || s.Resumed != 2 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A client of a plain server that refuses is refused, and hears nothing of TLS.
func TestTLSFrontRefuses(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{})
	asked := make(chan netip.AddrPort, 1)
	to := netip.MustParseAddrPort("127.0.0.1:1884")
	_, err := s.Terminate(TerminateConfig{
		Prefixes: []netip.Prefix{netip.PrefixFrom(server4, 32)},
		Map:      func(netip.AddrPort) netip.AddrPort { t.Error("Map was asked"); return to },
		TLS:      map[netip.AddrPort]*TLSFront{netip.AddrPortFrom(server4, 1883): NewTLSFront(TLSFrontConfig{To: to})},
		Dial: func(_ context.Context, _ string, server netip.AddrPort) (net.Conn, error) {
			asked <- server
			return nil, unix.ECONNREFUSED
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Input([][]byte{testSegment{flags: header.TCPFlagSyn, seq: 4711}.bytes()})
	if p := header.TCP(readOne(t, s)[20:]); p.Flags() != header.TCPFlagRst|header.TCPFlagAck || p.AckNumber() != 4712 {
		t.Errorf("flags %s, acknowledges %d", p.Flags(), p.AckNumber())
	}
	if got := <-asked; got != to {
		t.Errorf("dialed %s", got)
	}
}

// Other ports of the same address are carried plainly.
func TestTLSFrontIsOfOnePort(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{})
	asked := make(chan netip.AddrPort, 1)
	_, err := s.Terminate(TerminateConfig{
		Prefixes: []netip.Prefix{netip.PrefixFrom(server4, 32)},
		TLS:      map[netip.AddrPort]*TLSFront{netip.AddrPortFrom(server4, 8883): NewTLSFront(TLSFrontConfig{})},
		Dial: func(_ context.Context, _ string, server netip.AddrPort) (net.Conn, error) {
			asked <- server
			return nil, unix.ECONNREFUSED
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Input([][]byte{testSegment{flags: header.TCPFlagSyn}.bytes()})
	if got := <-asked; got != netip.AddrPortFrom(server4, 1883) {
		t.Errorf("dialed %s", got)
	}
	readOne(t, s)
	_, err = s.Terminate(TerminateConfig{
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/24")},
		TLS:      map[netip.AddrPort]*TLSFront{netip.AddrPortFrom(server4, 8883): nil},
	})
	if !errors.Is(err, ErrAddress) {
		t.Errorf("TLS outside of the prefixes: %v", err)
	}
}

// A handshake that fails: the client is told why, the plain server sees an end without a
// byte, and the front's owner hears of it.
func TestTLSFrontHandshakeFails(t *testing.T) {
	got := make(chan []byte, 10)
	ft := newFront(t, func(c *net.TCPConn) {
		b, _ := io.ReadAll(c)
		got <- b
	}, func(server *tls.Config, _ *TLSFrontConfig, _ *TerminateConfig) {
		server.ClientAuth = tls.RequireAnyClientCert
	})
	<-got // the connection that found the server
	c, _ := ft.dial(t, ft.client())
	if _, err := c.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("the client got %v", err)
	}
	if b := <-got; len(b) != 0 {
		t.Errorf("the server got %q", b)
	}
	if err := <-ft.failed; !strings.Contains(err.Error(), "didn't provide a certificate") {
		t.Error(err)
	}

	raw := dial(t, ft.addr)
	_, _ = io.WriteString(raw, "GET / HTTP/1.1\r\n")
	if err := <-ft.failed; !errors.As(err, new(tls.RecordHeaderError)) {
		t.Errorf("what is no TLS: %v", err)
	}
	if b := <-got; len(b) != 0 {
		t.Errorf("the server got %q", b)
	}
	if s := ft.brokers.Stats().Terminal; s.Opened != 0 || s.Failed != 3 {
		t.Errorf("%+v", s)
	}
}

// Who does not shake hands in time is reset, and until then takes one of the places of
// those who wait.
func TestTLSFrontHandshakeIsBounded(t *testing.T) {
	ft := newFront(t, echo, func(_ *tls.Config, _ *TLSFrontConfig, c *TerminateConfig) {
		c.Limits = Limits{Handshake: 200 * time.Millisecond, Pending: 1}
	})
	slow := dial(t, ft.addr)
	terminator := (*ft.brokers.terminators.Load())[0]
	waitFor(t, "the slow client's connection", func() bool {
		terminator.mu.Lock()
		defer terminator.mu.Unlock()
		return len(terminator.pending) == 1
	})
	start := time.Now()
	c, _ := ft.dial(t, ft.client())
	echoOnce(t, c, "hello") // once the place is free, and the SYN was sent again
	if waited := time.Since(start); waited < 100*time.Millisecond {
		t.Errorf("served after %v, beside one that waits", waited)
	}
	if _, err := slow.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the slow client got %v", err)
	}
	if err := <-ft.failed; !errors.Is(err, unix.ETIMEDOUT) {
		t.Error(err)
	}
	waitFor(t, "the places to be free", func() bool {
		terminator.mu.Lock()
		defer terminator.mu.Unlock()
		return len(terminator.pending) == 0
	})
}

// Closing in the middle of a handshake waits for nobody, and resets.
func TestTLSFrontCloseInHandshake(t *testing.T) {
	ft := newFront(t, echo, nil)
	c := dial(t, ft.addr)
	terminator := (*ft.brokers.terminators.Load())[0]
	waitFor(t, "the connection", func() bool {
		terminator.mu.Lock()
		defer terminator.mu.Unlock()
		return len(terminator.pending) == 1
	})
	closed := make(chan bool)
	go func() { terminator.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Fatal("Close waits for the client")
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("the client got %v", err)
	}
}
