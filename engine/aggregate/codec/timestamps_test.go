package codec

import (
	"fmt"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
)

// at returns a group's TSvals as offsets from the contexts', which are 1000 times their
// number, with the clock at 100.
func clocked(t tester, n int) *twins {
	p := newTwins(t, n)
	p.both(func(s *state) {
		s.clock = 100
		for i, f := range s.contexts {
			f.hasTSval, f.offset = true, uint32(1000*i)
		}
	})
	return p
}

// tsvals fills a group's TSvals with what they are ahead of the clock.
func tsvals(ahead ...int) func(*Group) {
	return each(func(i int, mb *Member) { mb.tsval = uint32(1000*i + 100 + ahead[i]) })
}

// A member is as far ahead of the clock as the one before it, in the frame.
func TestCodeTSval(t *testing.T) {
	p := clocked(t, 4)
	_, read, _ := p.code(tsvals(3, 3, 3, 5), (*codec).codeTSval)
	for i, want := range []uint32{103, 1103, 2103, 3105} {
		if got := read.Members[i].tsval; got != want {
			t.Errorf("member %d: %d, expected %d", i, got, want)
		}
	}
	if p.r.ahead != 5 {
		t.Errorf("%d ahead of the clock, expected 5", p.r.ahead)
	}
	// the next group goes on from there
	again := tsvals(5, 5, 5, 5)
	for range 60 {
		p.both(func(s *state) { s.ahead = 5 })
		p.code(again, (*codec).codeTSval)
	}
	_, _, bits := p.code(again, (*codec).codeTSval)
	atMost(t, "all as far ahead as the last", bits, 0.2)
	if p.r.contexts[0].offset != 0 || p.r.contexts[3].offset != 3000 {
		t.Error("offsets moved without a surprise")
	}
}

// Where the members are not in the order of time all are compared with the first, and
// no offset moves for what they are apart.
func TestCodeTSvalShuffled(t *testing.T) {
	p := clocked(t, 4)
	shuffled := func(g *Group) {
		tsvals(3, 9, 3, 7)(g)
		g.shuffled = true
	}
	written, read, _ := p.code(shuffled, (*codec).codeTSval)
	for i := range written.Members {
		if read.Members[i].tsval != written.Members[i].tsval {
			t.Errorf("member %d: %d", i, read.Members[i].tsval)
		}
	}
	if !read.shuffled || p.r.ahead != 3 {
		t.Errorf("shuffled %v, %d ahead of the clock", read.shuffled, p.r.ahead)
	}
	for i, f := range p.r.contexts {
		if f.streak != int8(b2i(i == 0)) {
			t.Errorf("flow %d: %d surprises", i, f.streak)
		}
	}
	// two members have no such choice
	p = clocked(t, setMinimum-1)
	if _, read, _ = p.code(func(g *Group) { tsvals(3, 9)(g); g.shuffled = true }, (*codec).codeTSval); read.shuffled {
		t.Error("two members are shuffled")
	}
}

// A first TSval is 32 bits, and gives the flow its offset from a clock that is as far on
// as the last member's; a segment without timestamps has none.
func TestCodeTSvalFirst(t *testing.T) {
	p := clocked(t, 3)
	p.both(func(s *state) {
		s.contexts[1].hasTSval = false
		s.contexts[2].hasTSval = false
		f, _ := describe(t, codectest.Segment{}.Packet())
		s.contexts[2].layout = f.layout
	})
	_, read, bits := p.code(each(func(i int, mb *Member) { mb.tsval = []uint32{107, 5000, 0}[i] }), (*codec).codeTSval)
	atLeast(t, "a first TSval", bits, 32)
	if read.Members[1].tsval != 5000 || p.r.contexts[1].offset != 5000-100-7 {
		t.Errorf("TSval %d, offset %d", read.Members[1].tsval, p.r.contexts[1].offset)
	}
	if p.r.contexts[2].offset != 2000 || read.Members[2].tsval != 0 {
		t.Error("a segment without timestamps has some")
	}
	for i, want := range []bool{true, false, false} {
		if read.Members[i].ticks() != want {
			t.Errorf("member %d ticks: %v", i, !want)
		}
	}
}

// What all members behind one that stands out are compared with moves along with it.
func TestMoveOffsets(t *testing.T) {
	p := clocked(t, 3)
	p.both(func(s *state) {
		f := s.contexts[1]
		f.streak, f.least = maxEven-1, 4 // seven times by 4
	})
	p.code(tsvals(0, 4, 4), (*codec).codeTSval)
	for i, want := range []uint32{0, 1004, 2004} {
		if got := p.r.contexts[i].offset; got != want {
			t.Errorf("offset %d, expected %d", got, want)
		}
	}
	if p.r.ahead != 4 {
		t.Errorf("%d ahead of the clock", p.r.ahead)
	}
	p = clocked(t, 3)
	p.both(func(s *state) {
		f := s.contexts[1]
		f.streak, f.least, f.uneven = maxStreak-1, 2, true // four times by 2 and more
	})
	p.code(tsvals(0, 4, 4), (*codec).codeTSval)
	for i, want := range []uint32{0, 1002, 2000} {
		if got := p.r.contexts[i].offset; got != want {
			t.Errorf("uneven: offset %d, expected %d", got, want)
		}
	}
}

// An offset moves by the least of five surprises in a row on the same side, or of eight
// that were all the same: then those behind move as well.
func TestAdjust(t *testing.T) {
	for _, tt := range []struct {
		name      string
		surprises []int32
		by        int32 // of the last; no other moves anything
		all       bool
		streak    int8
	}{
		{"none", []int32{0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, false, 0},
		{"four", []int32{3, 5, 4, 6}, 0, false, 4},
		{"five", []int32{3, 5, 4, 6, 9}, 3, false, 0},
		{"five below", []int32{-3, -5, -2, -6, -9}, -2, false, 0},
		{"five, and one that is right", []int32{3, 5, 4, 6, 0}, 0, false, 0},
		{"the other side", []int32{3, 5, 4, 6, -1, -2, -3, -4}, 0, false, -4},
		{"five behind the other side", []int32{-3, 5, 4, 6, 7, 8}, 4, false, 0},
		{"seven of the same", []int32{4, 4, 4, 4, 4, 4, 4}, 0, false, 7},
		{"eight of the same", []int32{4, 4, 4, 4, 4, 4, 4, 4}, 4, true, 0},
		{"eight of the same below", []int32{-4, -4, -4, -4, -4, -4, -4, -4}, -4, true, 0},
		{"seven of the same and another", []int32{4, 4, 4, 4, 4, 4, 4, 9}, 4, false, 0},
		{"past what is kept", []int32{1 << 20, 1 << 21, 1 << 22, 1<<31 - 1, 1 << 20}, 1<<16 - 1, true, 0},
	} {
		f := &context{}
		for i, s := range tt.surprises {
			by, all := f.adjust(s)
			want, wantAll := int32(0), false
			if i == len(tt.surprises)-1 {
				want, wantAll = tt.by, tt.all
			}
			if tt.name == "past what is kept" {
				break
			}
			if int32(by) != want || all != wantAll {
				t.Errorf("%s: surprise %d moves by %d, all %v; expected %d, %v", tt.name, i, int32(by), all, want, wantAll)
			}
		}
		if tt.name != "past what is kept" && f.streak != tt.streak {
			t.Errorf("%s: a streak of %d, expected %d", tt.name, f.streak, tt.streak)
		}
	}
	f := &context{}
	by := uint32(0)
	for range maxEven {
		by, _ = f.adjust(1 << 20)
	}
	if by != 1<<16-1 {
		t.Errorf("by %d, more than is kept", by)
	}
}

// The ways of a TSecr: what the other direction's segment said that is acknowledged.
func TestPredictTSecr(t *testing.T) {
	type way struct {
		v  uint32
		ok bool
	}
	no := way{}
	seen := view{count: 3, tsval: 79, edges: [4]edge{{end: 130, tsval: 77}, {end: 110, tsval: 66}, {end: 90, tsval: 55}}}
	for _, tt := range []struct {
		name    string
		view    *view
		context context
		ack     uint32
		want    [4]way // edge, new, same, older
	}{
		{"a SYN", nil, context{}, 0, [4]way{{0, true}, no, {0, true}, no}},
		{"no other direction", nil, context{hasTSval: true, tsecr: 40, clock: 90}, 0, [4]way{{50, true}, no, {40, true}, no}},
		{"none of its segments", &view{}, context{hasTSval: true, tsecr: 40, clock: 90}, 0, [4]way{{50, true}, no, {40, true}, no}},
		{"the newest", &seen, context{hasTSval: true, tsecr: 40, started: true}, 130, [4]way{{77, true}, {79, true}, {40, true}, {66, true}}},
		{"the one before", &seen, context{hasTSval: true, started: true}, 110, [4]way{{66, true}, {79, true}, {0, true}, {55, true}}},
		{"the oldest", &seen, context{hasTSval: true, started: true}, 90, [4]way{{55, true}, {79, true}, {0, true}, no}},
		{"none of them", &seen, context{hasTSval: true, started: true}, 100, [4]way{no, {79, true}, {0, true}, no}},
		{"nothing new", &seen, context{hasTSval: true, started: true, ack: 110, tsecr: 41}, 110, [4]way{{79, true}, {79, true}, {41, true}, no}},
		{"the first", &seen, context{ack: 0}, 0, [4]way{no, {79, true}, {0, true}, no}},
	} {
		p := newTwins(t, 1)
		if tt.view != nil {
			p.see(0, *tt.view)
		}
		s := &p.w.state
		s.clock = 100
		f := s.contexts[0]
		tt.context.reverse, tt.context.key, tt.context.layout = f.reverse, f.key, f.layout
		*f = tt.context
		for i, want := range tt.want {
			got, ok := s.predictTSecr(&Member{context: f, Fields: Fields{ack: tt.ack}}, i)
			if ok != want.ok || ok && got != want.v {
				t.Errorf("%s, way %d: %d, %v; expected %v", tt.name, i, got, ok, want)
			}
		}
	}
}

// TSecrs that are one of the ways take next to nothing; others are compared with the
// newest TSval, or with the last one where none is known.
func TestCodeTSecr(t *testing.T) {
	for _, tt := range []struct {
		name        string
		tsecr       uint32
		most, least float64
	}{
		{"of the segment acknowledged", 77, 0.2, 0},
		{"near the newest", 78, 4, 0},
		{"far off", 1 << 30, 30, 0},
	} {
		p := newTwins(t, 1)
		p.see(0, view{count: 1, tsval: 77, edges: [4]edge{{end: 130, tsval: 77}}})
		p.both(func(s *state) { s.contexts[0].hasTSval, s.contexts[0].started = true, true })
		var read *Group
		bits, first := 0.0, 0.0
		for n := range 60 {
			_, read, bits = p.codeShared(func(g *Group) { g.Members[0].tsecr = tt.tsecr }, func(g *Group) { g.Members[0].ack = 130 }, (*codec).codeTSecr)
			if n == 0 {
				first = bits
			}
		}
		atMost(t, tt.name, bits, tt.most)
		t.Logf("%s: %.2f bits, %.2f to begin with", tt.name, bits, first)
		if got := read.Members[0].tsecr; got != tt.tsecr {
			t.Errorf("%s: %d", tt.name, got)
		}
	}
	// what the difference is to shows in how long it is to begin with
	p := newTwins(t, 1)
	p.both(func(s *state) { s.contexts[0].hasTSval, s.contexts[0].tsecr = true, 1<<30 })
	_, _, bits := p.code(func(g *Group) { g.Members[0].tsecr = 1<<30 + 1 }, (*codec).codeTSecr)
	atMost(t, "near the last one", bits, 12)
	p.see(0, view{tsval: 1 << 29})
	_, _, bits = p.code(func(g *Group) { g.Members[0].tsecr = 1<<29 + 1 }, (*codec).codeTSecr)
	atMost(t, "near the newest TSval", bits, 12)
	// and a segment without timestamps has none
	p.both(func(s *state) {
		f, _ := describe(t, codectest.Segment{}.Packet())
		s.contexts[0].layout = f.layout
	})
	atMost(t, "none", p.steady(60, func(*Group) {}, (*codec).codeTSecr), 0.2)
}

// A host whose clock was set stands out for a while, and then costs no more than before.
func TestClocksThatJump(t *testing.T) {
	for _, jump := range []uint32{7, 1<<32 - 7} {
		x := newExchange(t, Config{})
		f := codectest.NewFanout(12)
		bits := map[int]int{}
		for round := range 100 {
			x.now += 50 * ms
			if round == 60 {
				f.Flows[11].TSval += jump // the last: else all are compared with the first, and none moves
			}
			for i := range f.Flows {
				s := f.Flows[i]
				s.TSval += uint32(50 * round)
				s.Payload = fmt.Appendf(nil, "round %3d", round)
				x.add(1, s.Packet())
				f.Flows[i].Seq += uint32(len(s.Payload))
				f.Flows[i].ID++
			}
			x.flush(1)
			bits[round/20] += 8 * x.last[1].size()
		}
		t.Logf("bits for 20 frames, a clock jumps with the fourth: %v", bits)
		if bits[4] > bits[2]+20 || bits[3] < bits[2]+50 {
			t.Errorf("bits for 20 frames, a clock jumps with the fourth: %v", bits)
		}
	}
}
