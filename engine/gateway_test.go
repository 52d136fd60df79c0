package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sheaf/tunnel"
)

// A site is a gateway that runs for the length of a test.
type site struct {
	g    *Gateway
	stop func()
}

func newKey(t testing.TB, path string) tunnel.Fingerprint {
	t.Helper()
	key, err := tunnel.GenerateKey()
	if err == nil {
		err = key.Save(path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key.Fingerprint()
}

func start(t testing.TB, text string) *site {
	t.Helper()
	return startWith(t, text, slog.New(slog.DiscardHandler), func(*Gateway) {})
}

// startWith is start of a gateway that is changed before it runs.
func startWith(t testing.TB, text string, log *slog.Logger, change func(*Gateway)) *site {
	t.Helper()
	cfg, err := ParseConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return startConfig(t, cfg, log, change)
}

// startConfig is startWith of a configuration that is parsed.
func startConfig(t testing.TB, cfg *Config, log *slog.Logger, change func(*Gateway)) *site {
	t.Helper()
	g, err := New(cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	change(g)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	var once sync.Once
	s := &site{g: g, stop: func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		})
	}}
	t.Cleanup(s.stop)
	return s
}

// given are the addresses that freePort has returned: the kernel may choose one again.
var given sync.Map

// freePort returns an address that nothing listens on, each another one.
func freePort(t testing.TB) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if _, had := given.LoadOrStore(l.Addr().String(), true); !had {
			return l.Addr().String()
		}
	}
}

// userspace starts two gateways without devices: what connects to the address
// returned ends at the server.
func userspace(t testing.TB, server net.Addr, carrier string) (clients, broker *site, address string) {
	t.Helper()
	texts, local := userspaceTexts(t, server, carrier)
	broker, clients = start(t, texts[1]), start(t, texts[0])
	return clients, broker, local
}

// userspaceTexts returns the configurations of two gateways without devices, the
// clients' first, and the address that clients connect to.
func userspaceTexts(t testing.TB, server net.Addr, carrier string) (texts [2]string, address string) {
	t.Helper()
	dir := t.TempDir()
	keys := [2]string{filepath.Join(dir, "clients.key"), filepath.Join(dir, "broker.key")}
	prints := [2]tunnel.Fingerprint{newKey(t, keys[0]), newKey(t, keys[1])}
	listen, local := freePort(t), freePort(t)
	texts[1] = fmt.Sprintf(`
key = %q
listen = %q
control = "off"
carrier = [%q]
[[peer]]
name = "clients"
fingerprint = %q
allowed = ["10.99.0.1/32"]
[terminate]
prefixes = ["10.2.0.10/32"]
map = { "10.2.0.10:1883" = %q }
`, keys[1], listen, carrier, prints[0], server)
	texts[0] = fmt.Sprintf(`
key = %q
control = "off"
carrier = [%q]
address = ["10.99.0.1"]
[[peer]]
name = "broker"
fingerprint = %q
endpoint = %q
allowed = ["10.2.0.0/24"]
[[forward]]
from = "tcp:%s"
to = "10.2.0.10:1883"
`, keys[0], carrier, prints[1], listen, local)
	return texts, local
}

func echoServer(t testing.TB) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr()
}

// dial connects, once the gateway has heard from the server and listens.
func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err == nil {
			t.Cleanup(func() { c.Close() })
			return c
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func waitUp(t testing.TB, sites ...*site) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		up := true
		for _, s := range sites {
			for _, p := range s.g.Status().Peers {
				for _, l := range p.Lanes {
					up = up && l.Up
				}
			}
		}
		if up {
			return
		}
		if time.Now().After(deadline) {
			for _, s := range sites {
				t.Logf("%+v", s.g.Status())
			}
			t.Fatal("lanes are not up")
		}
	}
}

func TestUserspaceCarriesConnections(t *testing.T) {
	for _, carrier := range []string{"quic", "tls", "plain"} {
		t.Run(carrier, func(t *testing.T) {
			clients, broker, address := userspace(t, echoServer(t), carrier)
			waitUp(t, clients, broker)
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					c := dial(t, address)
					want := fmt.Sprintf("hello number %d", i)
					_ = c.SetDeadline(time.Now().Add(10 * time.Second))
					if _, err := io.WriteString(c, want); err != nil {
						t.Error(err)
						return
					}
					_ = c.(*net.TCPConn).CloseWrite()
					got, err := io.ReadAll(c)
					if err != nil || string(got) != want {
						t.Errorf("%q, %v", got, err)
					}
				})
			}
			all.Wait()
			s := clients.g.Status()
			if p := s.Peers[0]; p.Carrier != carrier || p.Sent.Packets == 0 || p.Received.Packets == 0 {
				t.Errorf("status %+v", p)
			}
		})
	}
}

// What is wrong with a frame is told as what it is to the log of the gateway that got
// it, and to the peer over QUIC.
func TestWrongFramesAreToldAtBothEnds(t *testing.T) {
	for _, test := range []struct {
		frame []byte
		want  tunnel.Reason
	}{
		{malformedFrame, tunnel.ReasonMalformed},
		{wrongDigest(t), tunnel.ReasonCorrupt},
		{pastLimits(t), tunnel.ReasonLimit},
	} {
		t.Run(test.want.String(), func(t *testing.T) {
			texts, _ := userspaceTexts(t, echoServer(t), "quic")
			var logs [2]record
			var sites [2]*site
			for i := 1; i >= 0; i-- {
				sites[i] = startWith(t, texts[i], logs[i].log(), func(g *Gateway) {
					for _, l := range g.sortedPeers()[0].lanes {
						l.self = frugal()
					}
				})
			}
			waitUp(t, sites[:]...)
			l := sites[0].g.sortedPeers()[0].lanes[tunnel.ClassBulk]
			l.mu.Lock()
			e := l.now
			l.mu.Unlock()
			if _, err := e.stream.Write(test.frame); err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{"reset by the peer: " + test.want.String(), "peer's fault: " + test.want.String()} {
				for deadline := time.Now().Add(10 * time.Second); logs[i].count(want) == 0; time.Sleep(5 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("end %d does not log %q, but\n%s", i, want, &logs[i].b)
					}
				}
			}
		})
	}
}

// A gateway that crashes and comes back: connections through it live on.
func TestConnectionsSurviveAnEpoch(t *testing.T) {
	clients, broker, address := userspace(t, echoServer(t), "quic")
	waitUp(t, clients, broker)
	c := dial(t, address)
	exchange := func(i int) {
		t.Helper()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		want := fmt.Sprintf("message %d", i)
		if _, err := io.WriteString(c, want); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v", got, err)
		}
	}
	exchange(1)
	for _, p := range clients.g.peers {
		for _, l := range p.lanes {
			l.mu.Lock()
			e := l.now
			l.mu.Unlock()
			e.stream.Reset(fmt.Errorf("the test says so"))
		}
	}
	exchange(2)
	waitUp(t, clients, broker)
	if got := clients.g.Status().Peers[0].Lanes[0].Epochs; got < 2 {
		t.Errorf("%d epochs", got)
	}
}
