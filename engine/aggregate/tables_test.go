package aggregate

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/codec/codectest"
)

// Tables of a few places are full at once, and all that is in them gives way all
// the time: that costs bytes and nothing else.
func TestSmallTables(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(rt, "places")
		limits := small(n)
		limits.Flows = uint32(rapid.IntRange(2, 3*n).Draw(rt, "contexts"))
		p := newPair(rt, Config{Limits: limits})
		p.late = rapid.Bool().Draw(rt, "late")
		f := codectest.NewFanout(rapid.IntRange(1, 2*n).Draw(rt, "flows"))
		for range rapid.IntRange(1, 20).Draw(rt, "rounds") {
			topics := rapid.IntRange(1, 2*n).Draw(rt, "topics")
			layouts := rapid.IntRange(1, 2*n).Draw(rt, "layouts")
			for i := range f.Flows { // a maximum segment size, which makes a layout of its own
				f.Flows[i].Options = []byte{2, 4, 0, byte(i * f.Round % layouts)}
			}
			f.Send(func(i int) []byte {
				return codectest.Publish(fmt.Sprint("topic/", i%topics), body(f.Round+i), (1+i)*(f.Round%2))
			}, p.run)
			if rapid.Bool().Draw(rt, "pause") {
				p.due(f.Now + 40*ms)
			}
			p.deliver(f.Round % 2)
			if rapid.IntRange(0, 3).Draw(rt, "settle") == 0 {
				p.settle(f.Now)
			}
		}
		p.settle(time.Hour)
	})
}

// As many flows are expected in a group as a frame has packets at most: those past
// them are listed one by one.
func TestSetsAreBounded(t *testing.T) {
	for _, tt := range []struct{ packets, expected int }{{4, 4}, {14, 14}, {15, 15}, {16, 15}} {
		limits := small(tt.packets)
		limits.Flows = 40
		p := newPair(t, Config{Limits: limits})
		f := codectest.NewFanout(15)
		message := func(int) []byte { return codectest.Publish("topic", body(f.Round), 0) }
		for range 30 {
			f.Send(message, p.run)
			p.due(f.Now + 40*ms)
		}
		f.Send(message, func(d int, now time.Duration, b []byte) {
			if m := &p.ends[d].Merger; m.Pending() == 0 {
				p.add(d, now, b)
				if got := m.pending.groups[0].wait.expected; got != tt.expected {
					t.Errorf("direction %d: %d are expected of 15 in frames of %d", d, got, tt.packets)
				}
			}
		})
	}
}
