package tunnel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// patience is how long anything may take on a loaded machine.
const patience = 20 * time.Second

func newKey(t testing.TB) Key {
	t.Helper()
	k, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// orderedKeys returns two keys, that of the smaller fingerprint first.
func orderedKeys(t testing.TB) (small, large Key) {
	a, b := newKey(t), newKey(t)
	fa, fb := a.Fingerprint(), b.Fingerprint()
	if bytes.Compare(fa[:], fb[:]) > 0 {
		a, b = b, a
	}
	return a, b
}

// newTunnel starts a gateway with short timeouts that is closed with the test.
func newTunnel(t testing.TB, cfg Config) *Tunnel {
	t.Helper()
	if cfg.BackoffMin == 0 {
		cfg.BackoffMin = 20 * time.Millisecond
	}
	if cfg.BackoffMax == 0 {
		cfg.BackoffMax = 200 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(logTo{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	tun, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tun.Close() })
	return tun
}

type logTo struct{ t testing.TB }

func (l logTo) Write(b []byte) (int, error) {
	l.t.Logf("%s", bytes.TrimSpace(b))
	return len(b), nil
}

// A pair is a gateway "a" that dials and a gateway "b" that listens.
type pair struct {
	a, b       *Tunnel
	ka, kb     Key
	toB, toA   *Peer
	cfgA, cfgB Config
}

// newPair makes a pair over some carriers. change may alter the configurations.
func newPair(t testing.TB, carriers []Carrier, change func(a, b *Config)) *pair {
	t.Helper()
	p := &pair{ka: newKey(t), kb: newKey(t)}
	p.cfgA = Config{Key: p.ka, Carriers: carriers}
	p.cfgB = Config{Key: p.kb, Carriers: carriers, Listen: "127.0.0.1:0",
		Peers: []PeerConfig{{Name: "a", Fingerprint: p.ka.Fingerprint()}}}
	if change != nil {
		change(&p.cfgA, &p.cfgB)
	}
	p.b = newTunnel(t, p.cfgB)
	p.cfgB.Listen = p.b.Addr().String()
	if p.cfgA.Peers == nil {
		p.cfgA.Peers = []PeerConfig{{Name: "b", Fingerprint: p.kb.Fingerprint(), Endpoint: p.cfgB.Listen}}
	}
	p.a = newTunnel(t, p.cfgA)
	p.toB, p.toA = p.a.Peer("b"), p.b.Peer("a")
	return p
}

// lanes opens a lane of the class at both ends.
func (p *pair) lanes(t testing.TB, class Class) (a, b *Lane) {
	t.Helper()
	return openBoth(t, p.toB, p.toA, class)
}

func openBoth(t testing.TB, pa, pb *Peer, class Class) (a, b *Lane) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var wg sync.WaitGroup
	var errA, errB error
	wg.Go(func() { a, errA = pa.Lane(ctx, class) })
	wg.Go(func() { b, errB = pb.Lane(ctx, class) })
	wg.Wait()
	if errA != nil || errB != nil {
		t.Fatalf("lane: %v; %v", errA, errB)
	}
	return a, b
}

// say sends a text from one end and expects it at the other.
func say(t testing.TB, from, to *Lane, text string) {
	t.Helper()
	if err := trySay(from, to, text); err != nil {
		t.Fatal(err)
	}
}

func trySay(from, to *Lane, text string) error {
	from.SetWriteDeadline(time.Now().Add(patience))
	defer from.SetWriteDeadline(time.Time{})
	if _, err := from.Write([]byte(text)); err != nil {
		return err
	}
	to.SetReadDeadline(time.Now().Add(patience))
	defer to.SetReadDeadline(time.Time{})
	b := make([]byte, len(text))
	if _, err := io.ReadFull(to, b); err != nil {
		return err
	}
	if string(b) != text {
		return fmt.Errorf("read %q, want %q", b, text)
	}
	return nil
}

// settle opens lanes until a pair of them lasts.
func settle(t testing.TB, pa, pb *Peer, class Class) (a, b *Lane) {
	t.Helper()
	for range 5 {
		a, b = talk(t, pa, pb, class)
		time.Sleep(100 * time.Millisecond)
		err := trySay(a, b, "still there?")
		if err == nil {
			err = trySay(b, a, "yes")
		}
		if err == nil {
			return a, b
		}
		t.Logf("not yet: %v", err)
	}
	t.Fatal("lanes do not last")
	return nil, nil
}

// talk keeps opening lanes at both ends until a text gets through both ways, as
// an engine would.
func talk(t testing.TB, pa, pb *Peer, class Class) (a, b *Lane) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	end := func(p *Peer, out **Lane, ready, other *atomic.Bool) {
		for ctx.Err() == nil {
			l, err := p.Lane(ctx, class)
			if err != nil {
				t.Logf("lane: %v", err)
				return
			}
			l.Write([]byte("hello"))
			l.SetReadDeadline(time.Now().Add(3 * time.Second))
			var got [5]byte
			if _, err := io.ReadFull(l, got[:]); err != nil {
				t.Logf("%s: %v", p.Name(), err)
				l.Reset(ReasonStalled)
				continue
			}
			l.SetReadDeadline(time.Time{})
			*out = l
			ready.Store(true)
			for !other.Load() && l.ended.Load() == nil && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			if other.Load() {
				return
			}
			ready.Store(false)
		}
	}
	var wg sync.WaitGroup
	var readyA, readyB atomic.Bool
	wg.Go(func() { end(pa, &a, &readyA, &readyB) })
	wg.Go(func() { end(pb, &b, &readyB, &readyA) })
	wg.Wait()
	if !readyA.Load() || !readyB.Load() {
		t.Fatal("the two ends never talked")
	}
	return a, b
}

// wantReset expects the next read of l to tell of a reset soon.
func wantReset(t testing.TB, l *Lane, within time.Duration) *ResetError {
	t.Helper()
	start := time.Now()
	l.SetReadDeadline(start.Add(within))
	var err error
	for err == nil {
		_, err = l.Read(make([]byte, 1<<16))
	}
	if !errors.Is(err, ErrReset) {
		t.Fatalf("read after %v: %v, want ErrReset", time.Since(start), err)
	}
	reset, ok := errors.AsType[*ResetError](err)
	if pe, isPeer := errors.AsType[*PeerError](err); !ok || !isPeer || pe.Peer == "" {
		t.Fatalf("%v has neither a *ResetError nor a *PeerError", err)
	}
	return reset
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// ownGoroutines returns the stacks of goroutines of this package and of quic-go.
func ownGoroutines() (own []string) {
	b := make([]byte, 4<<20)
	for _, g := range strings.Split(string(b[:runtime.Stack(b, true)]), "\n\n") {
		if strings.Contains(g, "quic-go") || strings.Contains(g, "sheaf/tunnel.") && !strings.Contains(g, "testing.tRunner") {
			own = append(own, g)
		}
	}
	return own
}

// A relay carries UDP datagrams between the dialing side and the listening one,
// counts them, can drop the larger ones, and can change the port that the listening
// side sees.
type relay struct {
	front   *net.UDPConn
	target  *net.UDPAddr
	client  atomic.Pointer[net.UDPAddr]
	dropAll atomic.Bool
	largest atomic.Int64  // UDP payload that passes; 0 for any
	delay   time.Duration // each way

	mu   sync.Mutex
	back *net.UDPConn

	upPackets, upBytes, downPackets, downBytes atomic.Int64 // UDP payload
}

func newRelay(t testing.TB, target net.Addr) *relay {
	t.Helper()
	return newSlowRelay(t, target, 0)
}

func newSlowRelay(t testing.TB, target net.Addr, delay time.Duration) *relay {
	t.Helper()
	front, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{front: front, target: target.(*net.UDPAddr), delay: delay}
	r.rebind(t)
	var wg sync.WaitGroup
	up := newDelayLine()
	wg.Go(func() {
		defer close(up)
		b := make([]byte, 1<<16)
		for {
			n, from, err := front.ReadFromUDP(b)
			if err != nil {
				return
			}
			r.client.Store(from)
			if r.drops(n) {
				continue
			}
			r.upPackets.Add(1)
			r.upBytes.Add(int64(n))
			up.send(r.delay, b[:n], func(b []byte) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.back.Write(b)
			})
		}
	})
	t.Cleanup(func() {
		front.Close()
		r.mu.Lock()
		r.back.Close()
		r.mu.Unlock()
		wg.Wait()
	})
	return r
}

// drops reports whether a datagram of n bytes does not get through.
func (r *relay) drops(n int) bool {
	largest := int(r.largest.Load())
	return r.dropAll.Load() || largest > 0 && n > largest
}

// rebind goes on from a new port, as a NAT that has forgotten does.
func (r *relay) rebind(t testing.TB) {
	back, err := net.DialUDP("udp", nil, r.target)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	old := r.back
	r.back = back
	r.mu.Unlock()
	if old != nil {
		old.Close()
	}
	down := newDelayLine()
	go func() {
		defer close(down)
		b := make([]byte, 1<<16)
		for {
			n, err := back.Read(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil || r.drops(n) {
				continue
			}
			r.downPackets.Add(1)
			r.downBytes.Add(int64(n))
			down.send(r.delay, b[:n], func(b []byte) { r.front.WriteToUDP(b, r.client.Load()) })
		}
	}()
}

// A delayLine does things in order, each a fixed time after it was asked for.
type delayLine chan func()

func newDelayLine() delayLine {
	line := make(delayLine, 1<<12)
	go func() {
		for f := range line {
			f()
		}
	}()
	return line
}

func (d delayLine) send(delay time.Duration, b []byte, f func([]byte)) {
	due := time.Now().Add(delay)
	b = bytes.Clone(b)
	d <- func() {
		time.Sleep(time.Until(due))
		f(b)
	}
}

// open returns how many lanes of the peer are taken and not over.
func (p *Peer) open() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		if l != nil {
			n++
		}
	}
	return n
}
