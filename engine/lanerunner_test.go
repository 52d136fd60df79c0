package engine

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestLaneCarriesBothWays(t *testing.T) {
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
