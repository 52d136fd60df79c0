package codec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers"
)

// withHoles makes a group's only span have some holes.
func withHoles(holes ...Hole) func(*Group) {
	return func(g *Group) {
		g.Spans = []Span{{Body: []byte("body"), Holes: holes}}
		g.CountHoles()
	}
}

// values fills the holes of a group, member by member.
func values(all ...uint64) func(*Group) {
	return func(g *Group) { g.Values = append([]uint64(nil), all...) }
}

// A flow's counter moves on by the hole's step, and wraps with the hole.
func TestCodeNumbers(t *testing.T) {
	const steps = 60
	big := Hole{kind: parsers.HoleBig, width: 1, counter: 2, step: 1}
	mask := Hole{kind: parsers.HoleMask, width: withKey, counter: 3}
	for _, tt := range []struct {
		name        string
		hole        Hole
		next        func(n int) uint64 // the value of step n
		least, most float64
	}{
		{"counts", big, func(n int) uint64 { return uint64(200+n) % 256 }, 0, 0.1},
		{"stays", Hole{kind: parsers.HoleBig, width: 2, counter: 1}, func(int) uint64 { return 7 }, 0, 0.1},
		{"counts in decimal", Hole{kind: parsers.HoleDecimal, counter: 1, step: 1}, func(n int) uint64 { return uint64(n) + 95 }, 0, 0.1},
		{"is by two", big, func(n int) uint64 { return uint64(2*n) % 256 }, 0.001, 1.2},
		{"a mask that stays", mask, func(int) uint64 { return 0xffffffff }, 0, 0.1},
		{"a mask that moves back", mask, func(n int) uint64 { return uint64(uint32(-n)) }, 0, 40},
	} {
		p := newTwins(t, 1)
		bits := 0.0
		for n := range steps {
			var read *Group
			_, read, bits = p.codeShared(values(tt.next(n)), withHoles(tt.hole), (*codec).codeValues)
			if got := read.Values[0]; got != tt.next(n) {
				t.Errorf("%s: %d, expected %d", tt.name, got, tt.next(n))
			}
			if got := p.r.contexts[0].counters[tt.hole.counter]; got != tt.next(n) {
				t.Errorf("%s: the counter is %d, expected %d", tt.name, got, tt.next(n))
			}
		}
		atMost(t, tt.name, bits, tt.most)
		atLeast(t, tt.name, bits, tt.least)
	}
}

// Each hole of a group is a column of its own, in each of which all members come.
func TestCodeValues(t *testing.T) {
	p := newTwins(t, 3)
	share := func(g *Group) {
		big := Hole{kind: parsers.HoleBig, width: 2, counter: 1}
		g.Spans = []Span{
			{Body: []byte("a"), Holes: []Hole{big}}, {Body: []byte("b")},
			{Body: []byte("c"), Holes: []Hole{{kind: parsers.HoleDecimal, counter: 2}, {at: 1, kind: parsers.HoleText}}},
		}
		g.CountHoles()
	}
	p.w.texts = []byte("onetwo")
	v := []uint64{1, 2, textValue(0, 3), 3, 4, textValue(3, 3), 5, 6, textValue(0, 3)}
	_, read, _ := p.codeShared(values(v...), share, (*codec).codeValues)
	for i, want := range []uint64{1, 2, 3, 4, 5, 6} {
		if got := read.Values[i/2*3+i%2]; got != want {
			t.Errorf("value %d: %d, expected %d", i, got, want)
		}
	}
	for i, want := range []string{"one", "two", "one"} {
		if got := string(text(read.Values[3*i+2], p.r.texts)); got != want {
			t.Errorf("text %d: %q, expected %q", i, got, want)
		}
	}
	if f := p.r.contexts[1]; f.counters != [4]uint64{0, 3, 4} || string(f.texts[0]) != "two" {
		t.Errorf("counters %v, texts %q", f.counters, *f.texts)
	}
	if _, read, bits := p.codeShared(func(*Group) {}, func(*Group) {}, (*codec).codeValues); bits != 0 || len(read.Values) != 0 {
		t.Errorf("%.1f bits for no holes", bits)
	}
}

// There are no more values than a frame may have bytes.
func TestCodeValuesIsBounded(t *testing.T) {
	for most, want := range map[uint32]bool{6: false, 5: true} {
		p := newTwins(t, 3)
		p.r.limits.Bytes = most
		h := withHoles(Hole{kind: parsers.HoleBig, width: 1}, Hole{kind: parsers.HoleBig, width: 1})
		err := p.refused(func(g *Group) { g.Values = make([]uint64, 6) }, func(x *codec, g *Group) error {
			h(g)
			return x.codeValues(g)
		})
		if errors.Is(err, ErrFrame) != want {
			t.Errorf("6 values, %d bytes at most: %v", most, err)
		}
	}
}

// A text that is the flow's last takes next to nothing, another one an edit of the newest
// of any flow by the same counter.
func TestCodeTexts(t *testing.T) {
	p := newTwins(t, 2)
	hole := withHoles(Hole{kind: parsers.HoleText, counter: 1})
	code := func(a, b string) float64 {
		t.Helper()
		p.w.texts, p.r.texts = p.w.texts[:0], p.r.texts[:0]
		v := []uint64{p.w.addText([]byte(a)), p.w.addText([]byte(b))}
		_, read, bits := p.codeShared(values(v...), hole, (*codec).codeValues)
		for i, want := range []string{a, b} {
			if got := string(text(read.Values[i], p.r.texts)); got != want {
				t.Errorf("%q, expected %q", got, want)
			}
		}
		return bits
	}
	long := strings.Repeat("consumer-tag-", 3)
	first := code(long+"1", long+"2")
	if got := string(p.r.newestText[1]); got != long+"2" {
		t.Errorf("the newest is %q", got)
	}
	for range 50 {
		code(long+"1", long+"2")
	}
	atMost(t, "the same again", code(long+"1", long+"2"), 0.2)
	atMost(t, "one that is like the newest", code(long+"1", long+"3"), 80)
	other := code("something else altogether: "+long[:20], long+"3")
	atLeast(t, "one that is not", other, 80)
	atLeast(t, "the first ones", first, 150)
	if p.r.newestText[0] != nil {
		t.Error("a text by another counter")
	}
}

// A peer may neither say that a flow goes on with a text it never had nor send an empty one.
func TestCodeTextsRefuses(t *testing.T) {
	hole := withHoles(Hole{kind: parsers.HoleText, counter: 1})
	for name, tt := range map[string]struct {
		text string
		last string // at the writer only
		most uint32
	}{
		"as last time": {"x", "x", 100}, "empty": {"", "x", 100}, "too many": {strings.Repeat("x", 60), "", 59},
	} {
		p := newTwins(t, 2)
		p.r.limits.Bytes = tt.most
		if tt.last != "" {
			p.w.contexts[0].texts = &[parsers.NumCounters][]byte{1: []byte(tt.last)}
		}
		err := p.refused(func(g *Group) {
			v := p.w.addText([]byte(tt.text))
			g.Values = []uint64{v, v}
		}, func(x *codec, g *Group) error {
			hole(g)
			return x.codeValues(g)
		})
		if !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAddText(t *testing.T) {
	x := &codec{}
	a, b := x.addText([]byte("one")), x.addText([]byte("three"))
	if string(text(a, x.texts)) != "one" || string(text(b, x.texts)) != "three" {
		t.Errorf("%q and %q", text(a, x.texts), text(b, x.texts))
	}
}

// A text that is another for each subscriber costs nothing once it is known, nor does
// a number that each counts by itself.
func TestTextHoles(t *testing.T) {
	x := newExchange(t, Config{})
	f := codectest.NewFanout(40)
	round := func(tag func(i int) string) int {
		x.now += 50 * ms
		f.Round++
		for i := range f.Flows {
			s := &f.Flows[i]
			head := "T" + tag(i)
			s.Payload = fmt.Appendf(nil, "%s%d of round %d", head, 2000+i*50+f.Round, f.Round)
			sp := parsers.Span{Len: len(s.Payload), Protocol: 1, Key: 77, Body: len(head) + 4, NumHoles: 2}
			sp.Holes[0] = parsers.Hole{Off: 1, Len: len(head) - 1, Kind: parsers.HoleText, Counter: 1}
			sp.Holes[1] = parsers.Hole{Off: len(head), Len: 4, Kind: parsers.HoleDecimal, Counter: 2, Step: 1}
			x.addSpans(1, s.Packet(), []parsers.Span{sp})
			s.Seq += uint32(len(s.Payload))
			s.ID++
		}
		x.flush(1)
		if len(x.last[1].groups) != 1 {
			t.Errorf("%d groups", len(x.last[1].groups))
		}
		return x.last[1].size()
	}
	tag := func(i int) string { return fmt.Sprintf("ctag-%x-%d", i*7919+13, i) }
	for range 10 {
		round(tag)
	}
	total := 0
	for range 10 {
		total += round(tag)
	}
	if total > 60 {
		t.Errorf("%d bytes for ten messages to 40 with tags of their own", total)
	}
	// and when they change they are learned again
	other := func(i int) string { return "other-" + tag(i) }
	changed := round(other)
	if got := round(other); got > 12 || changed < 60 {
		t.Errorf("%d bytes for other tags, %d after they were learned", changed, got)
	}
}
