package aggregate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestSlotRemembersNewestFirst(t *testing.T) {
	s := slots{table: make([]slot, 0, 4)}
	i := s.take(4)
	for n := range 6 {
		s.remember(i, []byte{byte(n)}, 0, 100)
	}
	sl := &s.table[i]
	for k := range slotDepth {
		if got := sl.body(k)[0]; got != byte(5-k) {
			t.Errorf("body %d is %d", k, got)
		}
	}
	if s.bytes != slotDepth {
		t.Errorf("%d bytes", s.bytes)
	}
}

func TestSlotsGiveWayOldestFirst(t *testing.T) {
	s := slots{table: make([]slot, 0, 3)}
	var dropped []byte
	s.dropped = func(sl *slot) { dropped = append(dropped, sl.body(0)...) }
	take := func(b byte) uint32 {
		i := s.take(3)
		s.remember(i, []byte{b}, 0, 1000)
		return i
	}
	a := take('a')
	take('b')
	take('c')
	s.touch(a)
	take('d')
	take('e')
	if string(dropped) != "bc" {
		t.Errorf("dropped %q", dropped)
	}
	s.touch(a)
	s.remember(a, make([]byte, 999), 0, 1000)
	if string(dropped) != "bcde" || s.bytes != 1000 {
		t.Errorf("dropped %q, %d bytes", dropped, s.bytes)
	}
}

func TestOwing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var o owing
		var model []uint32
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			cid := rapid.Uint32Range(0, 9).Draw(t, "cid")
			at := slices.Index(model, cid)
			if rapid.Bool().Draw(t, "push") {
				o.push(cid)
				if at < 0 {
					model = append(model, cid)
				}
			} else {
				o.remove(cid)
				if at >= 0 {
					model = slices.Delete(model, at, at+1)
				}
			}
			if got := o.appendTo(nil, 100); !slices.Equal(got, model) || o.count != len(model) {
				t.Fatalf("%v (%d), expected %v", got, o.count, model)
			}
		}
	})
}

func TestQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue[int]
		var model []int
		for i := range rapid.IntRange(0, 100).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "push") {
				q.push(i, i+1)
				model = append(model, i, i+1)
			} else if n := rapid.IntRange(0, len(model)).Draw(t, "n"); n > 0 {
				if got := q.first(n); !slices.Equal(got, model[:n]) {
					t.Fatalf("%v, expected %v", got, model[:n])
				}
				q.pop(n)
				model = model[n:]
			}
			if q.len() != len(model) {
				t.Fatalf("length %d, expected %d", q.len(), len(model))
			}
		}
	})
}

// A known set survives members that stay away for a while, not for good.
func TestSetsAreLearned(t *testing.T) {
	p := newPair(t, Config{})
	f := newFanout(12)
	send := func(skip int) {
		f.send(func(int) []byte { return publish("t", body(f.round), 0) }, func(d int, now time.Duration, b []byte) {
			if d == 1 && int(b[19]) != skip {
				p.add(1, now, b)
			}
		})
		p.flush(1, f.now)
	}
	set := func() string {
		w := &p.ends[1].Merger.writer
		var out []uint32
		for _, e := range w.slots.table[0].set {
			out = append(out, e.cid)
		}
		return fmt.Sprint(out)
	}
	send(-1)
	all := set()
	for range setMisses - 1 {
		send(3)
	}
	if got := set(); got != all {
		t.Errorf("after %d absences %s", setMisses-1, got)
	}
	send(3)
	if got := set(); got == all {
		t.Error("after more absences still a member")
	}
}
