package codec

import (
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers"
)

// Groups of each kind have the columns that their headers have, in one order.
func TestColumns(t *testing.T) {
	for kind, want := range map[Kind]string{
		TCP4: "layout,opaque options,IPv4 identification,sequence number,acknowledgement number,SACK blocks,window,TSval,TSecr,checksums,holes,",
		TCP6: "layout,opaque options,IPv6 flow label,sequence number,acknowledgement number,SACK blocks,window,TSval,TSecr,checksums,holes,",
		IP4:  "layout,opaque options,IPv4 identification,checksums,holes,",
		IP6:  "layout,opaque options,IPv6 flow label,checksums,holes,",
	} {
		got := ""
		for _, c := range columns {
			if c.has(kind) {
				got += c.name + ","
			}
		}
		if got != want {
			t.Errorf("kind %d: %s", kind, got)
		}
	}
}

// The scratch of a column is zeroed, whatever the last one left in it.
func TestColumnIsZeroed(t *testing.T) {
	x := &codec{}
	for _, n := range []int{5, 3, 5, 20, 4} {
		res := x.column(n)
		if len(res) != n {
			t.Errorf("%d differences of %d", len(res), n)
		}
		for i, v := range res {
			if v != 0 {
				t.Errorf("difference %d of %d is %d", i, n, v)
			}
			res[i] = -1
		}
	}
}

// The flow label is as last time, and a difference of 20 bits else.
func TestCodeLabel(t *testing.T) {
	p := newTwins(t, 3)
	p.both(func(s *state) {
		for i, f := range s.contexts {
			f.label = uint32(0xf0000 + i)
		}
	})
	fill := each(func(i int, mb *Member) { mb.label = uint32(0xf0000 + i) })
	atMost(t, "as last time", p.steady(50, fill, (*codec).codeLabel), 0.1)
	_, read, bits := p.code(each(func(i int, mb *Member) { mb.label = uint32(i) }), (*codec).codeLabel)
	atMost(t, "all moved alike", bits, 70)
	for i := range read.Members {
		if read.Members[i].label != uint32(i) {
			t.Errorf("member %d: %x", i, read.Members[i].label)
		}
	}
}

// 7, 8 predict 9; 0, 0 predict 0; and 65535 is followed by 0.
func TestPredictID(t *testing.T) {
	for _, tt := range []struct{ id, step, want uint16 }{{8, 1, 9}, {0, 0, 0}, {65535, 1, 0}} {
		if got := (&context{id: tt.id, idStep: tt.step}).predictID(); got != tt.want {
			t.Errorf("%d and %d: %d, expected %d", tt.id, tt.step, got, tt.want)
		}
	}
}

// A new flow's identification is zero, or 16 bits; a known one's is predicted.
func TestCodeID(t *testing.T) {
	p := newTwins(t, 4)
	p.both(func(s *state) {
		s.contexts[0].id, s.contexts[0].idStep = 65535, 1
		s.contexts[1].id = 500
	})
	fresh := func(g *Group) { g.Members[2].fresh, g.Members[3].fresh = true, true }
	ids := []uint16{0, 500, 0, 0xabcd}
	fill := each(func(i int, mb *Member) { mb.id = ids[i] })
	_, read, bits := p.codeShared(fill, fresh, (*codec).codeID)
	atLeast(t, "a new flow's", bits, 16)
	for i, want := range ids {
		if got := read.Members[i].id; got != want {
			t.Errorf("member %d: %d, expected %d", i, got, want)
		}
	}
	known := newTwins(t, 2)
	known.both(func(s *state) { s.contexts[0].id, s.contexts[0].idStep, s.contexts[1].id = 65535, 1, 500 })
	atMost(t, "as predicted", known.steady(50, fill, (*codec).codeID), 0.1)
	ids = []uint16{5, 505}
	_, read, bits = known.code(fill, (*codec).codeID)
	atMost(t, "five on", bits, 30)
	if read.Members[0].id != 5 || read.Members[1].id != 505 {
		t.Errorf("read %d and %d", read.Members[0].id, read.Members[1].id)
	}
	zero := newTwins(t, 1)
	first := func(g *Group) { g.Members[0].fresh = true }
	for range 50 {
		_, _, bits = zero.codeShared(func(*Group) {}, first, (*codec).codeID)
	}
	atMost(t, "a new flow's that is zero", bits, 0.2)
}

// A flow goes on where it ended; one joined in its middle where the other side has
// acknowledged it; and of one of which nothing is known nothing is said.
func TestPredictSeq(t *testing.T) {
	p := newTwins(t, 1)
	s, f := &p.w.state, p.w.contexts[0]
	f.end = 1101
	if v, ok := s.predictSeq(f); ok {
		t.Errorf("%d of a flow that has not started", v)
	}
	p.see(0, view{ack: 1201})
	if v, ok := s.predictSeq(f); ok {
		t.Errorf("%d where nothing was acknowledged", v)
	}
	p.see(0, view{ack: 1201, hasAck: true})
	if v, ok := s.predictSeq(f); !ok || v != 1201 {
		t.Errorf("%d, %v; acknowledged is 1201", v, ok)
	}
	f.started = true
	if v, ok := s.predictSeq(f); !ok || v != 1101 {
		t.Errorf("%d, %v; the flow ended at 1101", v, ok)
	}
}

// A sequence number as predicted takes next to nothing, one of which nothing is known
// 32 bits.
func TestCodeSeq(t *testing.T) {
	p := newTwins(t, 2)
	p.both(func(s *state) { s.contexts[0].started, s.contexts[0].end = true, 1<<32-1 })
	seqs := []uint32{1<<32 - 1, 0xdeadbeef}
	fill := each(func(i int, mb *Member) { mb.seq = seqs[i] })
	bits := p.steady(50, fill, (*codec).codeSeq)
	atLeast(t, "one unknown", bits, 32)
	atMost(t, "one predicted and one unknown", bits, 32.1)
	seqs = []uint32{9, 7} // ten on: it wraps
	_, read, bits := p.code(fill, (*codec).codeSeq)
	atMost(t, "one ten on", bits, 32+40)
	if read.Members[0].seq != 9 || read.Members[1].seq != 7 {
		t.Errorf("read %d and %d", read.Members[0].seq, read.Members[1].seq)
	}
}

// The ways of an acknowledgement number are the other side's edges, newest first, and
// the last one.
func TestPredictAck(t *testing.T) {
	type way struct {
		v  uint32
		ok bool
	}
	no := way{}
	for _, tt := range []struct {
		name string
		view *view
		want [5]way
	}{
		{"no other direction", nil, [5]way{{70, true}, no, no, no, {70, true}}},
		{"none of its segments", &view{}, [5]way{{70, true}, no, no, no, {70, true}}},
		{"two", &view{count: 2, edges: [4]edge{{end: 130}, {end: 110}}}, [5]way{{130, true}, {110, true}, no, no, {70, true}}},
		{"four", &view{count: 4, edges: [4]edge{{end: 130}, {end: 110}, {end: 90}, {end: 80}}}, [5]way{{130, true}, {110, true}, {90, true}, {80, true}, {70, true}}},
	} {
		p := newTwins(t, 1)
		if tt.view != nil {
			p.see(0, *tt.view)
		}
		f := p.w.contexts[0]
		f.ack = 70
		for i, want := range tt.want {
			if got, ok := p.w.predictAck(f, i); ok != want.ok || ok && got != want.v {
				t.Errorf("%s, way %d: %d, %v; expected %v", tt.name, i, got, ok, want)
			}
		}
	}
}

// An acknowledgement that is one of the ways takes next to nothing, one in the middle of
// a segment a difference to the last one.
func TestCodeAck(t *testing.T) {
	code := func(acks ...uint32) (float64, float64) {
		p := newTwins(t, len(acks))
		for i := range acks {
			p.see(i, view{count: 2, edges: [4]edge{{end: 130}, {end: 110}}})
		}
		p.both(func(s *state) {
			for _, f := range s.contexts {
				f.ack = 70
			}
		})
		fill := each(func(i int, mb *Member) { mb.ack = acks[i] })
		_, read, first := p.code(fill, (*codec).codeAck)
		for i, want := range acks {
			if got := read.Members[i].ack; got != want {
				t.Errorf("member %d: %d, expected %d", i, got, want)
			}
		}
		return first, p.steady(60, fill, (*codec).codeAck)
	}
	for name, tt := range map[string]struct {
		acks   []uint32
		steady float64
	}{
		"the newest":            {[]uint32{130, 130, 130}, 0.1},
		"the one before":        {[]uint32{110, 110}, 0.2},
		"as last time":          {[]uint32{70}, 0.2},
		"the middle, all alike": {[]uint32{95, 95, 95}, 1.3},
		"each another":          {[]uint32{130, 95, 70, 1 << 31, 110}, 80},
	} {
		_, bits := code(tt.acks...)
		atMost(t, name, bits, tt.steady)
	}
	near, _ := code(71) // one more than the last, to begin with
	far, _ := code(131) // one more than the newest
	if near >= far {
		t.Errorf("%.1f bits for what is near the last one, %.1f for what is not", near, far)
	}
}

// The first way that fits is taken; what is none of them is the number of ways.
func TestWay(t *testing.T) {
	field := uint32(0)
	w := ways{
		other: 3,
		field: func(int) *uint32 { return &field },
		predict: func(_, way int) (uint32, bool) {
			return []uint32{5, 7, 7}[way], way > 0
		},
	}
	for v, want := range map[uint32]int{5: 3, 7: 1, 0: 3} {
		if field = v; w.way(0) != want {
			t.Errorf("%d is way %d, expected %d", v, w.way(0), want)
		}
	}
}

// 501 and then 503 predict 505; a flow's first window is the newest first one, and its
// first behind a SYN the newest there.
func TestPredictWindow(t *testing.T) {
	s := &state{freshWindow: 1, openWindow: 2}
	for name, tt := range map[string]struct {
		f     context
		flags uint8
		want  uint16
	}{
		"the first":       {context{window: 9}, parsers.FlagSYN, 1},
		"behind a SYN":    {context{window: 9, started: true, syn: true}, parsers.FlagACK, 2},
		"a SYN once more": {context{window: 9, started: true, syn: true}, parsers.FlagSYN, 9},
		"another":         {context{window: 503, step: 2, started: true}, parsers.FlagACK, 505},
		"past the end":    {context{window: 65535, step: 2, started: true}, parsers.FlagACK, 1},
	} {
		if got := s.predictWindow(&tt.f, tt.flags); got != tt.want {
			t.Errorf("%s: %d, expected %d", name, got, tt.want)
		}
	}
}

func TestCodeWindow(t *testing.T) {
	p := newTwins(t, 2)
	p.both(func(s *state) {
		s.freshWindow = 64240
		s.contexts[0].started, s.contexts[0].window, s.contexts[0].step = true, 501, 2
	})
	windows := []uint16{503, 64240}
	fill := each(func(i int, mb *Member) { mb.window = windows[i] })
	atMost(t, "as predicted", p.steady(50, fill, (*codec).codeWindow), 0.1)
	windows = []uint16{65535, 1}
	_, read, _ := p.code(fill, (*codec).codeWindow)
	if read.Members[0].window != 65535 || read.Members[1].window != 1 {
		t.Errorf("read %d and %d", read.Members[0].window, read.Members[1].window)
	}
}

// All columns of a group are coded, and none that it does not have: what costs nothing
// in the steady state of a flow costs nothing together.
func TestCodeColumns(t *testing.T) {
	for name, s := range map[string]codectest.Segment{
		"IPv4": {Client: 1, Flags: 0x10, Window: 7, TSval: 9, TSecr: 9}, "IPv6": {IPv6: true, Label: 77, Flags: 0x10, TSval: 9},
	} {
		x := newExchange(t, Config{})
		for range 200 {
			x.send(0, s.Packet())
		}
		if got := x.last[0].groups[0].Cost.Bits; got > 1.2 {
			t.Errorf("%s: %.2f bits for a segment that is as the last one", name, got)
		}
		f := x.context(0, s.Packet())
		if f.key.Version == 6 && f.label != 77 || f.window != s.Window {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
