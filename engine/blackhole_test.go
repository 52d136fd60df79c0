package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"sheaf/tunnel"
)

// A path is suspect at the first stall in which no full packet passed, and soon after
// a connection was left for it at the second one.
func TestPathStalls(t *testing.T) {
	const m, b = tunnel.ClassMessages, tunnel.ClassBulk
	type event struct {
		at      time.Duration // in seconds, as since
		class   tunnel.Class
		since   time.Duration // of the stall; 0: a full packet passes; -1: the connection is left
		suspect bool
	}
	for name, events := range map[string][]event{
		"first":            {{12, m, 10, true}},
		"passed before":    {{9, m, 0, false}, {12, m, 10, true}},
		"passed meanwhile": {{11, m, 0, false}, {12, m, 10, false}},
		"passed just then": {{10, m, 0, false}, {12, m, 10, false}},
		"starved":          {{11, m, 0, false}, {12, b, 10, false}, {13, m, 0, false}, {14, b, 12, false}},
		"not left":         {{12, m, 10, true}, {22, m, 20, true}},
		"left":             {{12, m, 10, true}, {12, m, -1, false}, {22, m, 20, false}, {32, m, 30, true}},
		"left twice":       {{12, m, -1, false}, {22, m, 20, false}, {32, m, 30, true}, {32, m, -1, false}, {42, m, 40, false}, {52, m, 50, true}},
		"each lane":        {{12, m, -1, false}, {22, m, 20, false}, {22, b, 20, false}, {32, b, 30, true}},
		"passed between":   {{12, m, -1, false}, {22, m, 20, false}, {25, m, 0, false}, {32, m, 30, false}, {42, m, 40, true}},
		"at the rest":      {{12, m, -1, false}, {612, m, 610, true}},
		"within the rest":  {{12, m, -1, false}, {611, m, 609, false}},
	} {
		p := &blackHole{}
		for i, e := range events {
			at, since := e.at*time.Second, e.since*time.Second
			switch e.since {
			case 0:
				p.fits(at)
			case -1:
				p.leave(at)
			default:
				if got := p.stall(e.class, since, at); got != e.suspect {
					t.Errorf("%s: event %d: suspect %v", name, i, got)
				}
			}
		}
	}
}

// random returns n bytes that no frame makes shorter.
func random(n int) string {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return string(b)
}

// ended returns for what the epoch over a wire ended, or nil while it lasts.
func (w *wireEnd) ended() error {
	select {
	case <-w.reset:
		return *w.why
	default:
		return nil
	}
}

// Small frames pass and large ones do not: at the first stall both ends suspect the
// path.
func TestNarrowPathIsSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := wirePair(20*time.Millisecond, 1<<16), wirePair(20*time.Millisecond, 1<<16)
		b := newBench(t, first, second)
		defer b.stop()
		b.send(0, random(2*fillsPacket))
		b.send(1, "back")
		time.Sleep(5 * time.Second)
		if n := first[0].suspect.Load(); n != 0 {
			t.Errorf("suspected %d times before", n)
		}
		first[0].out.mu.Lock()
		first[0].out.largest = 1000
		first[0].out.mu.Unlock()
		b.send(0, "small")
		time.Sleep(100 * time.Millisecond)
		b.send(0, random(2*fillsPacket+1))
		b.send(1, "word of this does not come back either")
		time.Sleep(2500 * time.Millisecond)
		if err := first[0].ended(); !errors.Is(err, tunnel.ReasonStalled) {
			t.Errorf("the epoch ended for %v", err)
		}
		if n := first[0].suspect.Load(); n != 2 {
			t.Errorf("suspected %d times", n)
		}
		b.send(0, random(2*fillsPacket+2))
		time.Sleep(time.Second)
		if got := b.received(1); len(got) != 3 || got[1] != "small" || got[2] != random(2*fillsPacket+2) {
			t.Errorf("arrived: %q", got)
		}
	})
}

// An end that waited for less than half of a stall has no reason to suspect the path,
// whatever the other end says; and what ends an epoch otherwise says nothing of it, as
// another connection that was dialed because this one was silent.
func TestWhatIsNotSuspect(t *testing.T) {
	for _, c := range []struct {
		why     error
		after   time.Duration // the other end ends the epoch
		suspect bool
		left    bool
	}{
		{ErrStall, 1500 * time.Millisecond, true, false},
		{ErrStall, 500 * time.Millisecond, false, false},
		{tunnel.ReasonSuperseded, 1500 * time.Millisecond, false, false},
		{tunnel.ReasonRestarted, 1500 * time.Millisecond, false, false},
		{tunnel.ReasonPath, 1500 * time.Millisecond, false, true}, // has been left
	} {
		synctest.Test(t, func(t *testing.T) {
			w := wirePair(20*time.Millisecond, 1<<16)
			b := newBench(t, w)
			defer b.stop()
			time.Sleep(time.Second)
			w[0].out.mu.Lock()
			w[0].out.cut = true
			w[0].out.mu.Unlock()
			b.send(0, "lost")
			time.Sleep(c.after)
			w[1].Reset(c.why)
			time.Sleep(100 * time.Millisecond)
			err := b.ends[0].health.last()
			if suspect := w[0].suspect.Load() > 0; !errors.Is(err, c.why) || suspect != c.suspect {
				t.Errorf("%v after %v: ended for %v, suspect %v", c.why, c.after, err, suspect)
			}
			if left := b.ends[0].blackHole.left != 0; left != c.left {
				t.Errorf("%v: left %v", c.why, left)
			}
		})
	}
}

// Where the host knows that the path is too narrow, a quarter of a stall is enough,
// whether the frame waits for word of it or to be written.
func TestHostKnowsThatThePathIsNarrow(t *testing.T) {
	for name, window := range map[string]int{"written": 1 << 16, "unwritten": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := wirePair(20*time.Millisecond, window)
				b := newBench(t, first, wirePair(20*time.Millisecond, 1<<16))
				defer b.stop()
				time.Sleep(time.Second)
				b.send(0, "before")
				time.Sleep(5 * time.Second)
				first[0].narrow.Store(true)
				time.Sleep(5 * time.Second)
				if err := first[0].ended(); err != nil {
					t.Errorf("ended with nothing to send: %v", err)
				}
				first[0].out.mu.Lock()
				first[0].out.cut = true
				first[0].out.mu.Unlock()
				for n := range 3 {
					b.send(0, fmt.Sprint("lost ", n))
					time.Sleep(10 * time.Millisecond)
				}
				time.Sleep(520 * time.Millisecond)
				if err := first[0].ended(); !errors.Is(err, tunnel.ReasonPath) || first[0].suspect.Load() == 0 {
					t.Errorf("ended for %v, suspected %d times", err, first[0].suspect.Load())
				}
				time.Sleep(time.Second)
				b.send(0, "after")
				time.Sleep(time.Second)
				if got := fmt.Sprint(b.received(1)); got != "[before after]" {
					t.Errorf("arrived: %s", got)
				}
			})
		})
	}
}

// A carrier that takes nothing for the length of a stall has stalled.
func TestWriteThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wirePair(time.Hour, 1)
		b := newBench(t)
		defer b.stop()
		if _, err := w[0].Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		e := &epoch{runner: b.ends[0], stream: w[0]}
		begin := time.Now()
		if err := e.send([]byte("y")); !errors.Is(err, ErrStall) || time.Since(begin) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// What fills a packet of any size is noted when the other end has it, what does not
// is not.
func TestFullPacketPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, wirePair(20*time.Millisecond, 1<<16))
		defer b.stop()
		passed := func() time.Duration {
			b.ends[0].blackHole.mu.Lock()
			defer b.ends[0].blackHole.mu.Unlock()
			return b.ends[0].blackHole.passed
		}
		time.Sleep(time.Second)
		b.send(0, random(fillsPacket-100))
		time.Sleep(5 * time.Second)
		if got := passed(); got != 0 {
			t.Errorf("passed at %v", got)
		}
		b.send(0, random(fillsPacket))
		time.Sleep(5 * time.Second)
		if got := passed(); got < 6*time.Second || got > 7*time.Second {
			t.Errorf("passed at %v", got)
		}
	})
}
