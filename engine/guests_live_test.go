package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"

	"sheaf/engine/aggregate"
	"sheaf/tunnel"
)

// Messages of different guests form groups: what all three say at a time crosses the link
// once, though nobody could have guessed it, and each arrives. Status names the guests.
func TestGuestsMerge(t *testing.T) {
	const guests, rounds, size = 3, 40, 200
	b := startBroker(t)
	hypervisor, _, sockets := guestSites(t, b.Addr(), guests, "window = \"20ms\"\n", "")
	var conns []net.Conn
	for i := range guests {
		g := startGuest(t, filepath.Join(sockets, fmt.Sprint("m", i+1)), byte(11+i))
		conns = append(conns, mqttConnect(t, g, fmt.Sprint("meter-", i+1)))
	}
	before := hypervisor.g.Status().Peers[0].Sent
	for round := range rounds {
		random := make([]byte, size)
		_, _ = rand.Read(random)
		publish := mqtt(0x30, append([]byte("\x00\x05plant"), random...))
		var all sync.WaitGroup
		for _, c := range conns {
			all.Go(func() {
				if _, err := c.Write(publish); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for range guests {
			select {
			case got := <-b.published:
				if got != string(random) {
					t.Fatalf("round %d: %x arrived for %x", round, got, random)
				}
			case <-time.After(20 * time.Second):
				t.Fatalf("round %d: a message did not arrive", round)
			}
		}
	}
	s := hypervisor.g.Status()
	sent := s.Peers[0].Sent
	// One copy of what is random each round, and less than half of another for all else.
	if bytes := sent.BytesFrames - before.BytesFrames; bytes < rounds*size || bytes > rounds*size*3/2 {
		t.Errorf("%d bytes in frames for %d messages of %d random bytes from each of %d guests", bytes, rounds, size, guests)
	}
	if hits := s.Peers[0].Lanes[tunnel.ClassMessages].Hits[aggregate.HitEvent.String()]; hits == 0 {
		t.Errorf("no message was compared with another: %+v", s.Peers[0].Lanes)
	}
	for i, p := range s.Guests.Ports {
		want := fmt.Sprint("m", i+1)
		if p.Name != want || !p.Link.Up || p.Counters.Passed < rounds || p.Counters.Sent == 0 || len(p.Addresses) != 1 || p.Addresses[0] != netip.AddrFrom4([4]byte{10, 1, 0, byte(11 + i)}) {
			t.Errorf("port %s: %+v", want, p)
		}
	}
}

// Ports and guests come and go, also by force, while one sends: it does not notice, and
// nothing of the others is left.
func TestGuestsComeAndGo(t *testing.T) {
	hypervisor, _, sockets := guestSites(t, echoServer(t), 1, "", "")
	steady := startGuest(t, filepath.Join(sockets, "m1"), 11).dial(t, "10.2.0.10:1883")
	if err := exchange(steady, "first"); err != nil {
		t.Fatal(err)
	}
	visit := func(round int) {
		for number := 2; number <= 4; number++ {
			at := filepath.Join(sockets, fmt.Sprint("m", number))
			p := VMPort{Name: fmt.Sprint("m", number), At: "stream:" + at, Address: Prefixes{{netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(10 + number)}), 32)}}}
			if err := hypervisor.g.AddPort(p); err != nil {
				t.Fatal(err)
			}
			g := startGuest(t, at, byte(10+number))
			c := g.dial(t, "10.2.0.10:1883")
			if err := exchange(c, fmt.Sprint("round ", round)); err != nil {
				t.Error(err)
			}
			if err := c.(*gonet.TCPConn).CloseWrite(); err != nil { // else the far end waits for it, as ends do
				t.Error(err)
			}
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				t.Error(err)
			}
			if number%2 == 0 { // killed before its port goes, or the port under it
				g.kill()
			}
			if err := hypervisor.g.DelPort(p.Name); err != nil {
				t.Error(err)
			}
			g.kill()
		}
	}
	visit(0)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	stop := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
				if err := exchange(steady, fmt.Sprint("word ", i)); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	for round := range 5 {
		visit(round + 1)
	}
	close(stop)
	if err := <-done; err != nil {
		t.Errorf("the guest that stayed: %v", err)
	}
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > goroutines+5 || openFiles(t) > files+2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines for %d, %d files for %d", runtime.NumGoroutine(), goroutines, openFiles(t), files)
		}
	}
	if left, _ := os.ReadDir(sockets); len(left) != 1 {
		t.Errorf("sockets %v", left)
	}
	// counters go on by name
	if err := hypervisor.g.AddPort(VMPort{Name: "m2", At: "stream:" + filepath.Join(sockets, "m2")}); err != nil {
		t.Fatal(err)
	}
	ports, _ := hypervisor.g.Ports()
	if len(ports) != 2 || ports[1].Link.Connects != 6 || ports[1].Link.Received == 0 || ports[1].Counters.Passed == 0 {
		t.Errorf("%+v", ports)
	}
}

// openFiles counts the descriptors of this process, but for pipes: package net keeps some
// that it has spliced through, until they are collected.
func openFiles(t *testing.T) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if what, err := os.Readlink(filepath.Join("/proc/self/fd", f.Name())); err == nil && !strings.HasPrefix(what, "pipe:") {
			n++
		}
	}
	return n
}

// The gateway of guests is killed and comes back: their connections, which do not end in
// it, live on, also beside a stack whose connections do.
func TestGuestsOutliveTheGateway(t *testing.T) {
	for name, tables := range map[string]string{"alone": "", "beside a stack": "[terminate]\nprefixes = [\"10.8.0.0/24\"]\n"} {
		t.Run(name, func(t *testing.T) {
			hypervisor, far, sockets := guestSites(t, echoServer(t), 1, "", tables)
			at := filepath.Join(sockets, "m1")
			g := startGuest(t, at, 11)
			c := g.dial(t, "10.2.0.10:1883")
			if err := exchange(c, "before"); err != nil {
				t.Fatal(err)
			}
			hypervisor.stop()
			g.conn.Close()
			g.done.Wait()
			again := startConfig(t, hypervisor.g.cfg, slog.New(slog.DiscardHandler), func(*Gateway) {})
			waitUp(t, again, far)
			conn, err := net.Dial("unix", at) // as QEMU does by itself
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			g.conn = conn
			g.done.Go(func() { g.send(ctx) })
			g.done.Go(func() { defer cancel(); g.receive() })
			if err := exchange(c, "after"); err != nil {
				t.Error(err)
			}
		})
	}
}

// Each kind of port makes its socket, and takes it away.
func TestPortKinds(t *testing.T) {
	hypervisor, _, sockets := guestSites(t, echoServer(t), 0, "", "[terminate]\nprefixes = [\"10.8.0.0/24\"]\n")
	for i, kind := range PortKinds {
		p := VMPort{Name: kind, At: kind + ":" + filepath.Join(sockets, kind)}
		if kind == KindVsock {
			p.CID, p.Address = 3, Prefixes{{netip.MustParsePrefix("10.1.0.9/32")}}
		}
		if err := hypervisor.g.AddPort(p); err != nil {
			t.Error(err)
			continue
		}
		if info, err := os.Lstat(p.Path()); err != nil || info.Mode()&os.ModeSocket == 0 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", kind, info, err)
		}
		s := hypervisor.g.Status().Guests
		if len(s.Ports) != i+1 {
			t.Errorf("%s: %d ports", kind, len(s.Ports))
		}
		if in := hypervisor.g.guests.ports.inStack(netip.MustParseAddr("10.1.0.9")); in != (kind == KindVsock) {
			t.Errorf("%s: in the stack: %v", kind, in)
		}
	}
	source := hypervisor.g.guests.ports.source
	if got := source(KindVsock, true); got != netip.MustParseAddr("10.1.0.9") {
		t.Errorf("source %v", got)
	}
	if source(KindVsock, false).IsValid() || source("nobody", true).IsValid() {
		t.Error("a source of another family, or of nobody")
	}
	for _, kind := range PortKinds {
		if err := hypervisor.g.DelPort(kind); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(sockets); len(left) != 0 {
		t.Errorf("left %v", left)
	}
	if hypervisor.g.guests.ports.inStack(netip.MustParseAddr("10.1.0.9")) {
		t.Error("still in the stack")
	}
	if err := hypervisor.g.stack.AddAddress(netip.MustParseAddr("10.1.0.9")); err != nil {
		t.Error(err)
	}
}
