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
	"testing/synctest"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/engine/wire"
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

func TestLinkCarriesBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wirePair(20*time.Millisecond, 1<<16))
		defer b.stop()
		time.Sleep(100 * time.Millisecond)
		for n := range 200 {
			b.send(0, fmt.Sprint("up ", n))
			b.send(1, fmt.Sprint("down ", n))
			time.Sleep(3 * time.Millisecond)
		}
		time.Sleep(time.Second)
		for i, word := range []string{"down ", "up "} {
			got := b.received(i)
			if len(got) != 200 {
				t.Fatalf("%d of 200 arrived", len(got))
			}
			for n, text := range got {
				if text != fmt.Sprint(word, n) {
					t.Fatalf("%q at place %d", text, n)
				}
			}
		}
		sent, got := b.ends[0].snapshot()
		if sent.Packets != 200 || got.Packets != 200 || sent.Frames >= 200 {
			t.Errorf("%d packets in %d frames sent, %d received", sent.Packets, sent.Frames, got.Packets)
		}
	})
}

// Traffic in one direction only is no stall: the other end reports.
func TestOneWayIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wirePair(20*time.Millisecond, 1<<16))
		defer b.stop()
		for range 200 {
			b.send(0, "tick")
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute) // and silence is none either
		if got := len(b.received(1)); got != 200 {
			t.Errorf("%d of 200 arrived", got)
		}
		if got := b.ends[0].epochs.Load(); got != 1 {
			t.Errorf("%d epochs", got)
		}
		if sent, _ := b.ends[1].snapshot(); sent.Frames < 20 || sent.Frames > 60 {
			t.Errorf("%d reports in 20 s", sent.Frames)
		}
	})
}

// A link that lets nothing through ends the epoch, and the next one works.
func TestStallEndsTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := wirePair(20*time.Millisecond, 1<<16)
		b := newBench(t, first, wirePair(20*time.Millisecond, 1<<16))
		defer b.stop()
		b.send(0, "before")
		time.Sleep(5 * time.Second)
		for _, h := range []*halfWire{first[0].out, first[1].out} {
			h.mu.Lock()
			h.cut = true
			h.mu.Unlock()
		}
		cut := time.Now()
		b.send(0, "lost")
		for b.ends[0].epochs.Load() < 2 {
			time.Sleep(10 * time.Millisecond)
			if time.Since(cut) > 10*time.Second {
				t.Fatal("no new epoch")
			}
		}
		if took := time.Since(cut); took < 2*time.Second || took > 3*time.Second {
			t.Errorf("the epoch ended after %v", took)
		}
		why := b.ends[0].health.last()
		if !errors.Is(why, ErrStall) {
			t.Errorf("it ended for %v", why)
		}
		time.Sleep(time.Second)
		b.send(0, "after")
		time.Sleep(time.Second)
		if got := fmt.Sprint(b.received(1)); got != "[before after]" {
			t.Errorf("arrived: %s", got)
		}
	})
}

// A process that stood still (stopped, or its machine) may find that its peer was
// silent for too long before it has read what came meanwhile: that is no stall. A
// peer that is silent from then on is one.
func TestStandingStillIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wirePair(300*time.Millisecond, 1<<16)
		b := newBench(t, w, wirePair(300*time.Millisecond, 1<<16))
		defer b.stop()
		time.Sleep(time.Second)
		b.send(0, "before")
		time.Sleep(100 * time.Millisecond) // it is on its way, and nobody has said that it came
		b.ahead[0].Store(int64(10 * time.Second))
		time.Sleep(3 * time.Second)
		b.send(0, "after")
		time.Sleep(3 * time.Second)
		if got := fmt.Sprint(b.received(1)); got != "[before after]" {
			t.Errorf("arrived: %s", got)
		}
		if got := b.ends[0].epochs.Load(); got != 1 {
			t.Errorf("%d epochs", got)
		}
		half := w[1].out
		half.mu.Lock()
		half.cut = true
		half.mu.Unlock()
		b.send(0, "unanswered")
		time.Sleep(100 * time.Millisecond)
		b.ahead[0].Add(int64(10 * time.Second))
		time.Sleep(5 * time.Second)
		if got := b.ends[0].epochs.Load(); got != 2 {
			t.Errorf("%d epochs where nothing came after it either", got)
		}
	})
}

// An end that waits for word of its frames says something itself before it gives
// up: its address may have changed, which the other end learns from that.
func TestSilenceIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wirePair(20*time.Millisecond, 1<<16)
		b := newBench(t, w)
		defer b.stop()
		b.send(0, "before")
		time.Sleep(5 * time.Second)
		sent, _ := b.ends[0].snapshot()
		if sent.Frames != 1 {
			t.Fatalf("%d frames in quiet times", sent.Frames)
		}
		half := w[1].out
		half.mu.Lock()
		half.cut = true
		half.mu.Unlock()
		b.send(0, "unanswered")
		time.Sleep(1500 * time.Millisecond)
		half.mu.Lock()
		half.cut = false
		half.mu.Unlock()
		if sent, _ = b.ends[0].snapshot(); sent.Frames != 3 {
			t.Errorf("%d frames; after that with the packet one without", sent.Frames-1)
		}
		b.send(1, "found you")
		time.Sleep(10 * time.Second)
		if got := b.ends[0].epochs.Load(); got != 1 {
			t.Errorf("%d epochs", got)
		}
		if got := fmt.Sprint(b.received(0), b.received(1)); got != "[found you] [before unanswered]" {
			t.Errorf("arrived: %s", got)
		}
	})
}

// While the carrier takes no more, packets gather and the next frame is larger;
// what waits too long is dropped, oldest first, and counted.
func TestBackpressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wirePair(300*time.Millisecond, 1) // one frame under way at a time
		b := newBench(t, w)
		defer b.stop()
		time.Sleep(time.Second)
		for n := range 1000 {
			b.send(0, fmt.Sprintf("%04d", n))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(5 * time.Second)
		got := b.received(1)
		dropped, _ := b.ends[0].queue.drops()
		if len(got)+int(dropped) != 1000 || len(got) < 900 {
			t.Errorf("%d arrived, %d dropped of 1000", len(got), dropped)
		}
		if sent, _ := b.ends[0].snapshot(); sent.Frames > 12 {
			t.Errorf("%d frames", sent.Frames)
		}
	})
}

// malformedFrame says that it is longer than any frame.
var malformedFrame = []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}

// wrongDigest is the first frame of a lane, with the digest of other packets.
func wrongDigest(t *testing.T) []byte {
	t.Helper()
	frame := firstFrame(t, 1)
	frame[1]++ // the first byte of the digest
	return frame
}

// firstFrame is the first frame of a lane with so many packets of no protocol.
func firstFrame(t *testing.T, packets int) []byte {
	t.Helper()
	lane, err := aggregate.NewLane(aggregate.Config{Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	for range packets {
		if err := lane.Merger.Add(0, []byte{1, 2, 3}); err != nil {
			t.Fatal(err)
		}
	}
	return lane.Merger.Flush(nil, 0, aggregate.FlushEnd)
}

// frugal is what a program says that takes 8 packets a frame.
func frugal() wire.Hello {
	h := ownHello([8]byte{}, false)
	h.Limits.Packets = 8
	return h
}

// pastLimits is a frame of more packets than who is frugal takes.
func pastLimits(t *testing.T) []byte { return firstFrame(t, 9) }

// What is wrong in an epoch is told to the peer as what it is.
func TestPeerThatSpeaksNonsense(t *testing.T) {
	for name, test := range map[string]struct {
		says []byte
		told tunnel.Reason
	}{
		"no frame": {malformedFrame, tunnel.ReasonMalformed},
		"digest":   {wrongDigest(t), tunnel.ReasonCorrupt},
		"limit":    {pastLimits(t), tunnel.ReasonLimit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := wirePair(0, 1<<16)
				if _, err := w[1].Write(append(wire.AppendHello(nil, frugal()), test.says...)); err != nil {
					t.Fatal(err)
				}
				b := newBench(t)
				defer b.stop()
				err := b.ends[0].epoch(t.Context(), w[0])
				if reason, _ := errors.AsType[tunnel.Reason](err); !errors.Is(err, ErrPeer) || reason != test.told {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// What has no packet's length is left out and counted; the epoch goes on.
func TestImpossibleLengths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wirePair(0, 1<<16))
		defer b.stop()
		b.send(0, "before")
		b.ends[0].queue.put(time.Since(b.begin), nil, make([]byte, wire.MaxPacket+1))
		b.send(0, "after")
		time.Sleep(time.Second)
		if got := fmt.Sprint(b.received(1)); got != "[before after]" {
			t.Errorf("arrived: %s", got)
		}
		if sent, _ := b.ends[0].snapshot(); sent.Refused != 2 || sent.Packets != 2 {
			t.Errorf("%d packets sent, %d refused", sent.Packets, sent.Refused)
		}
		if got := b.ends[0].epochs.Load(); got != 1 {
			t.Errorf("%d epochs", got)
		}
	})
}

// A fault of the codec ends the epoch, not the process.
func TestOwnFaultEndsTheEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wirePair(0, 1<<16), wirePair(0, 1<<16))
		defer b.stop()
		time.Sleep(time.Second)
		b.ends[0].mu.Lock()
		e := b.ends[0].now
		b.ends[0].mu.Unlock()
		e.mu.Lock()
		e.lane.Merger = aggregate.Merger{} // as broken as can be
		e.mu.Unlock()
		b.send(0, "lost")
		time.Sleep(5 * time.Second)
		why := b.ends[0].health.last()
		if !errors.Is(why, ErrOwn) {
			t.Errorf("the epoch ended for %v", why)
		}
		b.send(0, "after")
		time.Sleep(time.Second)
		if got := fmt.Sprint(b.received(1)); got != "[after]" {
			t.Errorf("arrived: %s", got)
		}
	})
}
