package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/parsers/builtin"
	"sheaf/tunnel"
)

// A wireEnd is one end of a simulated stream: what is written arrives after a
// delay, unless the wire is cut; a writer waits while more than a window is
// under way.
type wireEnd struct {
	out, in  *halfWire
	reset    chan struct{}
	once     *sync.Once
	why      *error // of the reset, once it is closed
	narrow   *atomic.Bool
	suspect  *atomic.Int64 // how often either end said so
	declined atomic.Bool
}

type halfWire struct {
	mu       sync.Mutex
	changed  chan struct{}
	chunks   []chunk
	bytes    int
	delay    time.Duration
	cut      bool // nothing arrives any more
	largest  int  // more at once does not arrive, nor does what follows; 0 for any
	window   int
	deadline time.Time // of the writer
	until    time.Time // the reader's
	ended    bool      // behind the chunks
	told     error     // why; nil for io.EOF
}

type chunk struct {
	at   time.Time
	data []byte
}

func newWire(delay time.Duration, window int) (a, b *wireEnd) {
	half := func() *halfWire { return &halfWire{delay: delay, window: window, changed: make(chan struct{})} }
	x, y := half(), half()
	a = &wireEnd{out: x, in: y, reset: make(chan struct{}), once: new(sync.Once), why: new(error), narrow: new(atomic.Bool), suspect: new(atomic.Int64)}
	b = &wireEnd{out: y, in: x, reset: a.reset, once: a.once, why: a.why, narrow: a.narrow, suspect: a.suspect}
	return a, b
}

// change wakes all who wait; the lock is held.
func (h *halfWire) change() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func (w *wireEnd) Write(p []byte) (int, error) {
	h := w.out
	for {
		h.mu.Lock()
		if h.bytes < h.window {
			h.chunks = append(h.chunks, chunk{time.Now().Add(h.delay), append([]byte(nil), p...)})
			h.bytes += len(p)
			h.cut = h.cut || h.largest > 0 && len(p) > h.largest
			h.change()
			h.mu.Unlock()
			return len(p), nil
		}
		changed, deadline := h.changed, h.deadline
		h.mu.Unlock()
		var expired <-chan time.Time
		if !deadline.IsZero() {
			t := time.NewTimer(time.Until(deadline))
			defer t.Stop()
			expired = t.C
		}
		select {
		case <-changed:
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		case <-w.reset:
			return 0, io.ErrClosedPipe
		}
	}
}

func (w *wireEnd) Read(p []byte) (int, error) {
	h := w.in
	for {
		h.mu.Lock()
		var due <-chan time.Time
		if len(h.chunks) > 0 && !h.cut {
			c := &h.chunks[0]
			wait := time.Until(c.at)
			if wait <= 0 {
				n := copy(p, c.data)
				if c.data = c.data[n:]; len(c.data) == 0 {
					h.chunks = h.chunks[1:]
				}
				h.bytes -= n
				h.change()
				h.mu.Unlock()
				return n, nil
			}
			t := time.NewTimer(wait)
			defer t.Stop()
			due = t.C
		} else if h.ended {
			h.mu.Unlock()
			if h.told != nil {
				return 0, h.told
			}
			return 0, io.EOF
		}
		changed := h.changed
		var expired <-chan time.Time
		if !h.until.IsZero() {
			t := time.NewTimer(time.Until(h.until))
			defer t.Stop()
			expired = t.C
		}
		h.mu.Unlock()
		select {
		case <-changed:
		case <-due:
		case <-expired:
			return 0, os.ErrDeadlineExceeded
		case <-w.reset:
			return 0, fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, *w.why)
		}
	}
}

func (w *wireEnd) SetReadDeadline(t time.Time) error {
	w.in.mu.Lock()
	w.in.until = t
	w.in.change()
	w.in.mu.Unlock()
	return nil
}

func (w *wireEnd) SetWriteDeadline(t time.Time) error {
	w.out.mu.Lock()
	w.out.deadline = t
	w.out.mu.Unlock()
	return nil
}

func (w *wireEnd) Narrowed() bool { return w.narrow.Load() }

func (w *wireEnd) Suspect() { w.suspect.Add(1) }

func (w *wireEnd) Reset(why error) {
	w.once.Do(func() {
		*w.why = why
		close(w.reset)
	})
}

// Decline leaves what was written for the other end to read, and then its end, or
// why, as QUIC tells it.
func (w *wireEnd) Decline(why error) error {
	w.declined.Store(true)
	w.out.mu.Lock()
	w.out.ended = true
	if reason, ok := errors.AsType[tunnel.Reason](why); ok {
		w.out.told = &tunnel.PeerError{Op: "read", Err: &tunnel.ResetError{Reason: reason, Remote: true}}
	}
	w.out.change()
	w.out.mu.Unlock()
	return nil
}

// A bench is two links over simulated streams, one epoch after the other.
type bench struct {
	t      *testing.T
	ends   [2]*laneRunner
	begin  time.Time
	ahead  [2]atomic.Int64 // of an end's clock, in nanoseconds: while the process stood still
	next   [2]chan stream
	mu     sync.Mutex
	got    [2][]string
	wires  [][2]*wireEnd
	cancel context.CancelFunc
	all    sync.WaitGroup
}

func newBench(t *testing.T, wires ...[2]*wireEnd) *bench {
	return newBenchWith(t, func(int, *laneRunner) {}, wires...)
}

// newBenchWith is newBench with links that are changed before they run.
func newBenchWith(t *testing.T, change func(i int, l *laneRunner), wires ...[2]*wireEnd) *bench {
	b := &bench{t: t, begin: time.Now(), wires: wires}
	var ctx context.Context
	ctx, b.cancel = context.WithCancel(context.Background())
	holes := [2]*blackHole{{}, {}}
	for i := range b.ends {
		b.next[i] = make(chan stream, len(wires))
		for _, w := range wires {
			b.next[i] <- w[i]
		}
		b.ends[i] = &laneRunner{
			peer: fmt.Sprint("peer", 1-i), lane: aggregate.Config{Registry: builtin.Registry()}, stall: 2 * time.Second,
			clock: func() time.Duration { return b.clock(i) }, queue: newQueue(1<<20, 500*time.Millisecond),
			blackHole: holes[i], log: slog.New(slog.DiscardHandler), self: ownHello([8]byte{}, false), mismatch: &mismatch{},
			open: func(ctx context.Context) (stream, error) {
				select {
				case s := <-b.next[i]:
					return s, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			},
			accept: func(packets [][]byte) {
				b.mu.Lock()
				for _, p := range packets {
					b.got[i] = append(b.got[i], string(p[28:]))
				}
				b.mu.Unlock()
			},
		}
		change(i, b.ends[i])
		b.all.Go(func() { b.ends[i].run(ctx) })
	}
	return b
}

// clock is that of end i.
func (b *bench) clock(i int) time.Duration {
	return time.Since(b.begin) + time.Duration(b.ahead[i].Load())
}

func (b *bench) stop() {
	b.cancel()
	b.all.Wait()
}

// send has end i carry a datagram.
func (b *bench) send(i int, text string) {
	p := make([]byte, 28, 28+len(text))
	p[0], p[8], p[9] = 0x45, 64, 17
	binary.BigEndian.PutUint16(p[2:], uint16(28+len(text)))
	copy(p[12:], []byte{10, 1, 0, byte(i), 10, 2, 0, 1})
	binary.BigEndian.PutUint16(p[20:], 4000)
	binary.BigEndian.PutUint16(p[22:], 4001)
	binary.BigEndian.PutUint16(p[24:], uint16(8+len(text)))
	sum := uint32(0)
	for k := 0; k < 20; k += 2 {
		sum += uint32(p[k])<<8 | uint32(p[k+1])
	}
	binary.BigEndian.PutUint16(p[10:], ^uint16(sum+sum>>16))
	b.ends[i].queue.put(b.clock(i), append(p, text...))
}

func (b *bench) received(i int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.got[i]...)
}

func wirePair(delay time.Duration, window int) [2]*wireEnd {
	x, y := newWire(delay, window)
	return [2]*wireEnd{x, y}
}
