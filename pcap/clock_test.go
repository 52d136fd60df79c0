package pcap

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	var c Clock
	base := time.Unix(1_700_000_000, 0)
	for i, step := range []struct {
		at   time.Time
		want time.Duration
	}{
		{time.Time{}, 0}, // no time yet
		{base, 0},
		{base.Add(time.Second), time.Second},
		{base.Add(500 * time.Millisecond), time.Second}, // back
		{base.Add(-time.Hour), time.Second},             // before the first
		{time.Time{}, time.Second},
		{base.Add(1500 * time.Millisecond), 1500 * time.Millisecond},
		{base.Add(3 * time.Second), 3 * time.Second},
		{time.Unix(1<<40, 0), 1<<63 - 1}, // Sub saturates
	} {
		if got := c.At(step.at); got != step.want {
			t.Errorf("step %d: got %v, want %v", i, got, step.want)
		}
	}
}
