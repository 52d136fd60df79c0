package tunnel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"
)

func eachCarrier(t *testing.T, f func(t *testing.T, c []Carrier)) {
	for _, c := range []Carrier{QUIC, TLS, Plain} {
		t.Run(c.String(), func(t *testing.T) { f(t, []Carrier{c}) })
	}
}

func TestLaneTransfer(t *testing.T) {
	eachCarrier(t, func(t *testing.T, c []Carrier) {
		p := newPair(t, c, nil)
		data := make([]byte, 1<<20)
		rand.NewChaCha8([32]byte{1}).Read(data)
		var wg sync.WaitGroup
		for class := range NumClasses {
			a, b := p.lanes(t, class)
			if a.class != class || b.class != class || a.Carrier() != c[0] || b.Carrier() != c[0] || a.epoch != b.epoch {
				t.Errorf("lanes differ: %v %v %d; %v %v %d", a.class, a.Carrier(), a.epoch, b.class, b.Carrier(), b.epoch)
			}
			if o := a.Overhead(); o < 40 || o > 120 {
				t.Errorf("overhead of %d", o)
			}
			for _, d := range []struct{ from, to *Lane }{{a, b}, {b, a}} {
				wg.Go(func() {
					for rest := data; len(rest) > 0; {
						n := min(len(rest), 1+rand.IntN(5000))
						if _, err := d.from.Write(rest[:n]); err != nil {
							t.Errorf("write: %v", err)
							return
						}
						rest = rest[n:]
					}
				})
				wg.Go(func() {
					got := make([]byte, len(data))
					if _, err := io.ReadFull(d.to, got); err != nil {
						t.Errorf("read: %v", err)
					}
					if sha256.Sum256(got) != sha256.Sum256(data) {
						t.Error("bytes differ")
					}
				})
			}
		}
		wg.Wait()
		sa, sb := p.toB.Status(), p.toA.Status()
		if !sa.Connected || !sb.Connected || sa.Carrier != c[0] || sb.Carrier != c[0] || !sa.Dialed || sb.Dialed || p.toB.open() != 2 || sa.RTT == 0 || sa.Remote == nil {
			t.Errorf("status: %+v; %+v", sa, sb)
		}
	})
}

func TestLaneResetGivesNewEpoch(t *testing.T) {
	eachCarrier(t, func(t *testing.T, c []Carrier) {
		p := newPair(t, c, nil)
		a, b := p.lanes(t, ClassMessages)
		bulkA, bulkB := p.lanes(t, ClassBulk)
		for i, reset := range []func(){func() { a.Reset(ReasonStalled) }, func() { b.Reset(fmt.Errorf("frame 7: %w", ReasonCorrupt)) }} {
			say(t, a, b, "before")
			a.Write([]byte("never to be read in the next epoch"))
			here, there, want := a, b, ReasonStalled
			if i == 1 {
				here, there, want = b, a, ReasonCorrupt
			}
			reset()
			if r := wantReset(t, here, time.Second); r.Remote || r.Reason != want {
				t.Errorf("here: %v", r)
			}
			if c[0] != QUIC {
				want = ReasonUnknown
			}
			if r := wantReset(t, there, 5*time.Second); !r.Remote || r.Reason != want {
				t.Errorf("there: %v", r)
			}
			if _, err := there.Write([]byte("x")); !errors.Is(err, ErrReset) {
				t.Errorf("write after reset: %v", err)
			}
			before := a.epoch
			a, b = p.lanes(t, ClassMessages)
			if a.epoch <= before || a.epoch != b.epoch {
				t.Errorf("epochs %d and %d after %d", a.epoch, b.epoch, before)
			}
			say(t, a, b, "after")
			say(t, b, a, "after")
		}
		say(t, bulkA, bulkB, "the other lane does not notice")
	})
}

func TestLaneSupersedesTheOneBefore(t *testing.T) {
	eachCarrier(t, func(t *testing.T, c []Carrier) {
		p := newPair(t, c, nil)
		a, b := p.lanes(t, ClassBulk)
		a2, b2 := p.lanes(t, ClassBulk)
		wantReset(t, a, time.Second)
		wantReset(t, b, time.Second)
		say(t, a2, b2, "x")
	})
}

func TestLaneBackpressure(t *testing.T) {
	eachCarrier(t, func(t *testing.T, c []Carrier) {
		p := newPair(t, c, nil)
		a, b := p.lanes(t, ClassBulk)
		m, n := p.lanes(t, ClassMessages)
		chunk := bytes.Repeat([]byte("0123456789abcdef"), 4096)
		var sent int
		for {
			a.SetWriteDeadline(time.Now().Add(500 * time.Millisecond))
			k, err := a.Write(chunk)
			sent += k
			if err == nil {
				if sent > 64<<20 {
					t.Fatal("64 MiB written and nobody reads")
				}
				continue
			}
			if err != os.ErrDeadlineExceeded {
				t.Fatal(err)
			}
			break
		}
		t.Logf("%d bytes before Write blocked", sent)
		say(t, m, n, "messages pass a lane that is full")
		// The lane is whole: what was taken arrives, and more after it.
		var wg sync.WaitGroup
		wg.Go(func() {
			a.SetWriteDeadline(time.Time{})
			if _, err := a.Write([]byte("the end")); err != nil {
				t.Errorf("write on: %v", err)
			}
			a.Close()
		})
		got, err := io.ReadAll(b)
		if err != nil || len(got) != sent+7 || !bytes.HasSuffix(got, []byte("the end")) {
			t.Errorf("read %d bytes, %v; want %d", len(got), err, sent+7)
		}
		for i := range sent {
			if got[i] != chunk[i%16] {
				t.Fatalf("byte %d is %q", i, got[i])
			}
		}
		wg.Wait()
	})
}

func TestLaneClose(t *testing.T) {
	eachCarrier(t, func(t *testing.T, c []Carrier) {
		p := newPair(t, c, nil)
		a, b := p.lanes(t, ClassMessages)
		blocked := make(chan error, 1)
		go func(l *Lane) {
			_, err := l.Read(make([]byte, 1))
			blocked <- err
		}(a)
		time.Sleep(10 * time.Millisecond)
		a.Write([]byte("last words"))
		a.Close()
		a.Close()
		select {
		case err := <-blocked:
			if !errors.Is(err, ErrClosed) {
				t.Errorf("blocked read: %v", err)
			}
		case <-time.After(2 * time.Second):
			t.Error("Close leaves Read blocked")
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, ErrClosed) {
			t.Errorf("write after Close: %v", err)
		}
		got, err := io.ReadAll(b)
		if string(got) != "last words" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		b.Close()
		// What is unread at the closing end does not harm what it has written.
		a, b = p.lanes(t, ClassMessages)
		b.Write([]byte("unread at the other end"))
		time.Sleep(10 * time.Millisecond)
		a.Write([]byte("last words"))
		a.Close()
		if got, err := io.ReadAll(b); string(got) != "last words" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		b.Close()
		a, b = p.lanes(t, ClassMessages)
		say(t, a, b, "next")
	})
}

func TestResetUnblocksWithoutNetwork(t *testing.T) {
	ka, kb := newKey(t), newKey(t)
	b := newTunnel(t, Config{Key: kb, Listen: "127.0.0.1:0", Carriers: []Carrier{QUIC},
		Peers: []PeerConfig{{Name: "a", Fingerprint: ka.Fingerprint()}}})
	r := newRelay(t, b.Addr())
	a := newTunnel(t, Config{Key: ka, Carriers: []Carrier{QUIC},
		Peers: []PeerConfig{{Name: "b", Fingerprint: kb.Fingerprint(), Endpoint: r.front.LocalAddr().String()}}})
	la, lb := openBoth(t, a.Peer("b"), b.Peer("a"), ClassMessages)
	say(t, la, lb, "x")
	r.dropAll.Store(true)
	errs := make(chan error, 2)
	go func() { _, err := la.Read(make([]byte, 1)); errs <- err }()
	go func() { _, err := la.Write(make([]byte, 8<<20)); errs <- err }()
	time.Sleep(50 * time.Millisecond)
	la.Reset(ReasonStalled)
	for range 2 {
		select {
		case err := <-errs:
			if !errors.Is(err, ErrReset) || !errors.Is(err, ReasonStalled) {
				t.Error(err)
			}
		case <-time.After(time.Second):
			t.Fatal("still blocked")
		}
	}
	// The connection is given up within seconds, and made anew with the network.
	eventually(t, "disconnected", func() bool { return !a.Peer("b").Status().Connected })
	r.dropAll.Store(false)
	la, lb = talk(t, a.Peer("b"), b.Peer("a"), ClassMessages)
	say(t, la, lb, "again")
}

func TestCloseUnblocksAndLeaksNothing(t *testing.T) {
	eachCarrier(t, func(t *testing.T, c []Carrier) {
		p := newPair(t, c, nil)
		a, b := p.lanes(t, ClassMessages)
		say(t, a, b, "x")
		errs := make(chan error, 3)
		go func() { _, err := a.Read(make([]byte, 1)); errs <- err }()
		go func() {
			var err error
			for err == nil {
				_, err = a.Write(make([]byte, 64<<10))
			}
			errs <- err
		}()
		go func() {
			l, err := p.toB.Lane(context.Background(), ClassBulk)
			if err == nil { // nobody takes it at the other end, but QUIC does not wait for that
				_, err = l.Read(make([]byte, 1))
			}
			errs <- err
		}()
		time.Sleep(50 * time.Millisecond)
		start := time.Now()
		p.a.Close()
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("Close took %v", d)
		}
		for range 3 {
			select {
			case err := <-errs:
				if !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Fatal("still blocked")
			}
		}
		if r := wantReset(t, b, patience); !r.Remote || c[0] == QUIC && r.Reason != ReasonShutdown {
			t.Errorf("other end: %v", r)
		}
		if _, err := p.toB.Lane(context.Background(), ClassBulk); !errors.Is(err, ErrClosed) {
			t.Errorf("lane after Close: %v", err)
		}
		p.a.Close()
		p.b.Close()
		eventually(t, "all goroutines gone", func() bool { return len(ownGoroutines()) == 0 })
	})
}

func TestLaneContext(t *testing.T) {
	p := newPair(t, []Carrier{QUIC}, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.toA.Lane(ctx, ClassBulk); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("lane that nobody opens: %v", err)
	}
	if _, err := p.toA.Lane(ctx, NumClasses); !errors.Is(err, ErrConfig) {
		t.Errorf("class out of range: %v", err)
	}
}
