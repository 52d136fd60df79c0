package tunnel

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backoff{min: 250 * time.Millisecond, max: 30 * time.Second}
		for round := range 2 {
			want := b.min
			for i := range 12 {
				start := time.Now()
				b.wait(t.Context(), nil)
				if d := time.Since(start); d < want*3/4 || d > want {
					t.Errorf("round %d, wait %d: %v, not in %v to %v", round, i, d, want*3/4, want)
				}
				want = min(2*want, b.max)
			}
			b.reset()
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		start := time.Now()
		b.wait(ctx, nil)
		if d := time.Since(start); d != 10*time.Millisecond {
			t.Errorf("cancelled after %v", d)
		}
	})
}

func TestPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pacer
		var waits []time.Duration
		for range 10 { // lanes that end at once
			time.Sleep(time.Until(p.ready()))
			p.started(time.Now())
			waits = append(waits, p.delay)
		}
		if waits[0] != 0 || waits[1] != paceMin || waits[2] != 2*paceMin || waits[9] != paceMax {
			t.Errorf("%v", waits)
		}
		time.Sleep(paceGood)
		if p.started(time.Now()); p.delay != 0 {
			t.Errorf("after a lane that lasted: %v", p.delay)
		}
	})
}

// What the ends do not agree on is tried again ever later, and at once where
// something may have changed.
func TestPacerDeclines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pacer
		wait := func() time.Duration {
			d := max(time.Until(p.ready()), 0)
			time.Sleep(d)
			p.started(time.Now())
			return d
		}
		wait()
		for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			p.decline()
			if got := wait(); got != want*time.Second {
				t.Errorf("wait %d: %v", i, got)
			}
		}
		p.decline()
		p.hurry()
		if got := wait(); got != 0 {
			t.Errorf("with a new connection: %v", got)
		}
		p.decline()
		wait()
		if got := wait(); got > paceMax { // the one before was taken
			t.Errorf("after agreement: %v", got)
		}
		p.decline()
		if got := wait(); got > declineMin+paceMax {
			t.Errorf("anew: %v", got)
		}
	})
}
