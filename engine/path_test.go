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

// A connection is left at the first stall in which no full packet passed, and soon
// after that at the second one.
func TestPathStalls(t *testing.T) {
	const m, b = tunnel.ClassMessages, tunnel.ClassBulk
	type event struct {
		at    time.Duration // in seconds, as since
		class tunnel.Class
		since time.Duration // of the stall, or 0: a full packet passes
		leave bool
	}
	for name, events := range map[string][]event{
		"first":            {{12, m, 10, true}},
		"passed before":    {{9, m, 0, false}, {12, m, 10, true}},
		"passed meanwhile": {{11, m, 0, false}, {12, m, 10, false}},
		"passed just then": {{10, m, 0, false}, {12, m, 10, false}},
		"starved":          {{11, m, 0, false}, {12, b, 10, false}, {13, m, 0, false}, {14, b, 12, false}},
		"again too soon":   {{12, m, 10, true}, {22, m, 20, false}, {32, m, 30, true}, {42, m, 40, false}, {52, m, 50, true}},
		"each lane":        {{12, m, 10, true}, {22, m, 20, false}, {22, b, 20, false}, {32, b, 30, true}, {33, m, 31, false}},
		"passed between":   {{12, m, 10, true}, {22, m, 20, false}, {25, m, 0, false}, {32, m, 30, false}, {42, m, 40, true}},
		"rested":           {{12, m, 10, true}, {611, m, 609, false}, {613, b, 610, true}},
		"at the rest":      {{12, m, 10, true}, {612, m, 610, true}},
		"within the rest":  {{12, m, 10, true}, {611, m, 609, false}},
	} {
		p := &path{}
		for i, e := range events {
			at, since := e.at*time.Second, e.since*time.Second
			if e.since == 0 {
				p.fits(at)
			} else if got := p.stall(e.class, since, at); got != e.leave {
				t.Errorf("%s: event %d: leave %v", name, i, got)
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

// Small frames pass and large ones do not: the first stall is reason to leave the
// connection, and a second one soon after needs a third.
func TestNarrowPathIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var wires [][2]*wireEnd
		for range 4 {
			wires = append(wires, wirePair(20*time.Millisecond, 1<<16))
		}
		b := newBench(t, wires...)
		defer b.stop()
		b.send(0, random(2*fillsPacket))
		time.Sleep(5 * time.Second)
		for n, w := range wires[:3] {
			w[0].out.mu.Lock()
			w[0].out.largest = 1000
			w[0].out.mu.Unlock()
			b.send(0, fmt.Sprint("small ", n))
			time.Sleep(100 * time.Millisecond)
			b.send(0, random(2*fillsPacket+1))
			begin := time.Now()
			for w[0].ended() == nil && time.Since(begin) < 10*time.Second {
				time.Sleep(10 * time.Millisecond)
			}
			err := w[0].ended()
			if !errors.Is(err, tunnel.ReasonStalled) || errors.Is(err, tunnel.ReasonPath) != (n != 1) {
				t.Errorf("epoch %d ended for %v", n+1, err)
			}
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("epoch %d took %v to end", n+1, took)
			}
			time.Sleep(100 * time.Millisecond)
		}
		b.send(0, random(2*fillsPacket+2))
		time.Sleep(time.Second)
		if got := b.received(1); len(got) != 5 || got[1] != "small 0" || got[2] != "small 1" || got[4] != random(2*fillsPacket+2) {
			t.Errorf("arrived: %q", got)
		}
	})
}

// The other end may notice first, or have opened another lane before word of it comes.
func TestStallNoticedByTheOtherEnd(t *testing.T) {
	for _, c := range []struct {
		why    error
		before time.Duration // the other end ends the epoch
		path   bool
	}{
		{ErrStall, 1500 * time.Millisecond, true},
		{tunnel.ReasonSuperseded, 1500 * time.Millisecond, true},
		{ErrStall, 500 * time.Millisecond, false}, // what was written may still come
		{tunnel.ReasonRestarted, 1500 * time.Millisecond, false},
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
			time.Sleep(c.before)
			w[1].Reset(c.why)
			time.Sleep(100 * time.Millisecond)
			b.ends[0].mu.Lock()
			defer b.ends[0].mu.Unlock()
			if err := b.ends[0].ended; !errors.Is(err, c.why) || errors.Is(err, tunnel.ReasonPath) != c.path {
				t.Errorf("%v after %v: ended for %v", c.why, c.before, err)
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
				if err := first[0].ended(); !errors.Is(err, tunnel.ReasonPath) {
					t.Errorf("ended for %v", err)
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
		e := &epoch{link: b.ends[0], stream: w[0]}
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
			b.ends[0].path.mu.Lock()
			defer b.ends[0].path.mu.Unlock()
			return b.ends[0].path.passed
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
