package codec

import (
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
)

// part has both codecs code something that is no part of a group, and returns the bits
// that it took.
func (p *twins) part(rule func(x *codec)) (bits float64) {
	p.t.Helper()
	p.w.coder.Write(nil)
	rule(&p.w)
	bits = p.w.coder.Cost()
	p.r.coder.Read(p.w.coder.Finish())
	rule(&p.r)
	if d := codectest.Differ(&p.w, &p.r, true); d != "" {
		p.t.Fatal(d)
	}
	return bits
}

// A head says how many more frames were rebuilt, and by how much the clock moves on from
// where it is, also across its end; no TSval of the frame is ahead of it yet.
func TestCodeHead(t *testing.T) {
	p := newTwins(t, 1)
	clock, acked := uint32(1<<32-60), uint64(0)
	for n := range 80 {
		want := head{record: n != 40, acked: acked, clock: clock}
		var got head
		p.both(func(s *state) { s.ahead = 9 })
		bits := p.part(func(x *codec) {
			if got = want; x.coder.Reading() {
				got = head{}
			}
			x.codeHead(&got)
		})
		if got.record != want.record || got.acked != acked || got.clock != clock {
			t.Fatalf("read %+v, expected %+v", got, want)
		}
		if s := &p.r.state; s.acked != acked || s.clock != clock || s.ahead != 0 {
			t.Errorf("acknowledged %d, clock %d, ahead %d; expected %d, %d, 0", s.acked, s.clock, s.ahead, acked, clock)
		}
		if n == 79 {
			atMost(t, "one more frame, 50 ms on", bits, 2.5)
		}
		clock += 50
		acked++
	}
	var got head
	p.part(func(x *codec) {
		if got = (head{acked: p.w.acked, clock: p.w.clock - 1000}); x.coder.Reading() {
			got = head{}
		}
		x.codeHead(&got)
	})
	if want := clock - 50 - 1000; p.r.clock != want { // a clock may be set back
		t.Errorf("clock %d, expected %d", p.r.clock, want)
	}
}

// A shape has what its kind has: flags only of TCP, payload or none; it is a group of its
// own number, and the kind of the next one is expected by its.
func TestCodeShape(t *testing.T) {
	p := newTwins(t, 2)
	for _, tt := range []struct {
		g       Group
		payload int
		single  bool
	}{
		{Group{Kind: TCP4, Flags: 0x18, Members: make([]Member, 2), Spans: make([]Span, 1)}, 1, false},
		{Group{Kind: TCP4, Flags: 0x10, Members: make([]Member, 1)}, 0, true},
		{Group{Kind: TCP6, Flags: 0xff, Members: make([]Member, 1), Spans: make([]Span, 2)}, 1, true},
		{Group{Kind: IP4, Members: make([]Member, 3)}, 0, false},
		{Group{Kind: IP6, Members: make([]Member, 1)}, 0, true},
		{Group{Kind: Verbatim, Spans: make([]Span, 1)}, 1, false},
	} {
		before := p.r.group
		var got Group
		bits := 0.0
		for range 60 {
			bits = p.part(func(x *codec) {
				if got = tt.g; x.coder.Reading() {
					got = Group{}
				}
				if err := x.codeShape(&got); err != nil {
					t.Fatal(err)
				}
			})
		}
		if got.Kind != tt.g.Kind || got.Flags != tt.g.Flags || got.payload != tt.payload || got.single != tt.single {
			t.Errorf("read %+v of %+v", got, tt.g)
		}
		if p.r.group != before+60 || p.r.lastKind != tt.g.Kind {
			t.Errorf("group %d behind %d, kind %d", p.r.group, before, p.r.lastKind)
		}
		atMost(t, "a shape as before", bits, 2.3)
	}
}

// Whether another group follows takes next to nothing where it is as it was.
func TestCodeMore(t *testing.T) {
	p := newTwins(t, 1)
	bits := 0.0
	for n := range 60 {
		more := n < 30
		bits = p.part(func(x *codec) {
			if got := x.codeMore(more && !x.coder.Reading()); got != more {
				t.Fatalf("read %v", got)
			}
		})
		if n == 29 {
			atMost(t, "another one", bits, 0.2)
		}
	}
	atMost(t, "no other one", bits, 1.3)
}

// An exchange of two members takes what fills their holes along.
func TestSwap(t *testing.T) {
	g := &Group{Members: []Member{{cid: cidAt(0)}, {cid: cidAt(1)}, {cid: cidAt(2)}}, Values: []uint64{10, 11, 20, 21, 30, 31}, holes: 2}
	g.swap(0, 2)
	if g.Members[0].cid != cidAt(2) || g.Members[2].cid != cidAt(0) || g.Members[1].cid != cidAt(1) {
		t.Errorf("members %v", g.Members)
	}
	if want := [6]uint64{30, 31, 20, 21, 10, 11}; [6]uint64(g.Values) != want {
		t.Errorf("values %v, expected %v", g.Values, want)
	}
	if g.Holes() != 2 || g.Size(0) != 0 {
		t.Errorf("%d holes, %d bytes", g.Holes(), g.Size(0))
	}
}

// A reading end that comes to a member or a span makes room for it, and finds again what
// is there.
func TestMemberAndSpan(t *testing.T) {
	g := &Group{}
	g.member(0).cid = cidAt(7)
	g.member(1).cid = cidAt(8)
	g.span(0).depth = 2
	if len(g.Members) != 2 || g.member(0).cid != cidAt(7) || len(g.Spans) != 1 || g.span(0).depth != 2 {
		t.Errorf("%+v", g)
	}
}

// The criteria have names for those who count them.
func TestHitString(t *testing.T) {
	for h, want := range map[Hit]string{HitEvent: "event", HitNameLength: "name+length", HitName: "name", HitLength: "length", HitContent: "content", NoHit: "none", Unasked: "unasked"} {
		if h.String() != want {
			t.Errorf("%d is %q", h, h)
		}
	}
}
