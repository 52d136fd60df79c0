package codec

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
)

// The table has as many places as there are templates, up to maxLayouts.
func TestLayoutsInit(t *testing.T) {
	for templates, want := range map[uint32]int{1: 1, 255: 255, 256: 256, 257: 256, 4096: 256} {
		var l layouts
		if l.init(&wire.Limits{Templates: templates}); l.max != want || cap(l.table) != want {
			t.Errorf("%d places for %d templates, expected %d", l.max, templates, want)
		}
	}
}

// Entries are copies with a number, in the next place or in that of the layout used
// longest ago.
func TestEnter(t *testing.T) {
	l := layouts{max: 3}
	shape := &layout{bytes: []byte{1}}
	var all []*layout
	for group := range groupNumber(3) {
		e := l.enter(shape, 10+group)
		if e == shape || e.number != layoutAt(uint32(group)) || e.used != 10+group || l.at(e.number) != e {
			t.Errorf("entry %+v in group %d", e, group)
		}
		all = append(all, e)
	}
	all[0].used = 20
	if e := l.enter(shape, 21); e.number != layoutAt(1) || l.at(layoutAt(0)) != all[0] || l.at(layoutAt(2)) != all[2] {
		t.Errorf("entry %+v instead of the oldest", e)
	}
	if all[1].number != layoutAt(1) || len(l.table) != 3 {
		t.Error("the one that gave way was changed")
	}
	if l.at(layoutAt(3)) != nil || l.at(layoutNumber{}) != nil {
		t.Error("a number without an entry has one")
	}
}

// Which was used longest ago is right also where the number of groups has wrapped.
func TestOldest(t *testing.T) {
	l := layouts{table: []*layout{{used: 3}, {used: 1<<32 - 2}, {used: 1<<32 - 1}}}
	if got := l.oldest(5); got != 1 {
		t.Errorf("place %d, expected 1", got)
	}
	l.table[1].used = 4
	if got := l.oldest(5); got != 2 {
		t.Errorf("place %d, expected 2", got)
	}
	l.table[2].used, l.table[0].used = 4, 4
	if got := l.oldest(5); got != 0 {
		t.Errorf("place %d of equals, expected the first", got)
	}
}

// What followed a layout is noted for each by itself, and for connections that begin.
func TestLayoutGuess(t *testing.T) {
	var l layouts
	seen := map[*layoutNumber]bool{}
	for _, e := range []*layout{nil, {number: layoutAt(0)}, {number: layoutAt(1)}, {number: layoutAt(maxLayouts - 1)}} {
		for _, first := range []bool{false, true} {
			at := l.guess(e, first)
			if seen[at] {
				t.Errorf("%v, first %v: noted with another", e, first)
			}
			seen[at] = true
		}
	}
	if l.guess(nil, false) != &l.after[0] || l.guess(&layout{number: layoutAt(maxLayouts - 1)}, true) != &l.after[len(l.after)-1] {
		t.Error("places at the ends are not used")
	}
}

func TestOrFirst(t *testing.T) {
	if got := orFirst(layoutNumber{}); got != layoutAt(0) {
		t.Errorf("none is %v", got)
	}
	if got := orFirst(layoutAt(7)); got != layoutAt(7) {
		t.Errorf("7 is %v", got)
	}
}

// mss returns a layout with a MSS of its own.
func mss(t tester, n byte) *layout {
	f, _ := describe(t, codectest.Segment{TSval: 1}.With(2, 4, 0, n))
	return f.layout
}

// A layout as last time takes next to nothing; one that followed the same before a bit
// or two; one from the table its number; and a new one its bytes that differ.
func TestCodeLayouts(t *testing.T) {
	p := newTwins(t, 1)
	use := func(l *layout) func(*Group) { return func(g *Group) { g.Members[0].layout = l } }
	code := func(what string, l *layout, least, most float64) {
		t.Helper()
		// the reader finds its layout by what it reads
		_, read, bits := p.codeShared(use(l), func(g *Group) { g.Members[0].layout = nil }, func(x *codec, g *Group) error {
			x.group++
			if err := x.codeLayouts(g); err != nil {
				return err
			}
			g.Members[0].context.layout, g.Members[0].layout.used = g.Members[0].layout, x.group // as learn does
			return nil
		})
		atMost(t, what, bits, most)
		atLeast(t, what, bits, least)
		if got := read.Members[0].layout; !got.same(l) || p.r.layouts.at(got.number) != got {
			t.Errorf("%s: another layout", what)
		}
	}
	same := p.w.contexts[0].layout
	for range 60 {
		code("as last time", same, 0, 9)
	}
	code("as last time", same, 0, 0.1)
	a, b := mss(t, 1), mss(t, 2)
	code("the first new one", a, 60, 200) // its bytes, of which most are as before
	code("the second", b, 16, 90)
	code("the first again", a, 0.5, 30)
	code("the second, which followed", b, 0.2, 12)
	code("the first, which followed", a, 0.2, 12)
	if n := len(p.r.layouts.table); n != 3 {
		t.Errorf("%d layouts", n)
	}
	for range 100 {
		code("the second, which followed", b, 0, 12)
		code("the first, which followed", a, 0, 12)
	}
	code("the second, which followed", b, 0, 0.5)
}

// A peer's layout has to be of the flow's kind and protocol.
func TestCodeLayoutsRefuses(t *testing.T) {
	udp, _ := describe(t, codectest.UDP())
	six, _ := describe(t, codectest.IPv6TCP())
	short := mss(t, 1)
	short.bytes = short.bytes[:v4Len-1]
	long := mss(t, 1)
	long.bytes = append(long.bytes, make([]byte, maxHeader)...)
	invalid := mss(t, 1)
	invalid.bytes[0] = 0x55
	for name, l := range map[string]*layout{
		"UDP": udp.layout, "IPv6": six.layout, "of 19 bytes": short, "of more than 240": long, "of IPv5": invalid, "none": nil,
	} {
		p := newTwins(t, 1)
		if name == "none" {
			p.r.contexts[0].layout = nil // a new flow cannot go on with its last
		}
		err := p.refused(func(g *Group) {
			if l != nil {
				g.Members[0].layout = l
			}
		}, func(x *codec, g *Group) error {
			if x.coder.Reading() {
				g.Members[0].layout = nil
			}
			return x.codeLayouts(g)
		})
		if !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// headers sends segments of some flows. Each has one of many layouts: they differ in
// their MSS, which is a part of them. A frame has some of them.
func headers(x *exchange, flows, segments, frame int, pick func() (flow, header int)) {
	all := make([]codectest.Segment, flows)
	for i := range all {
		all[i] = codectest.Segment{Client: i, Port: i, Flags: 0x18, Window: 9, Seq: 5, Ack: 6, TSval: 1, TSecr: 1, Payload: []byte("x")}
	}
	for i := range segments {
		f, h := pick()
		s := &all[f]
		s.Options = []byte{optionMSS, 4, byte(h >> 8), byte(h)}
		x.add(0, s.Packet())
		s.Seq++
		s.ID++
		if i%frame == 0 {
			x.flush(0)
		}
	}
	x.flush(0)
}

// A layout that lost its place and comes back has another place, at both ends: for
// the flows that come with it, and not for those that had it before.
func TestLayoutsComeBack(t *testing.T) {
	x := newExchange(t, Config{})
	random := rand.New(rand.NewPCG(3, 4))
	const flows = 300
	common := rand.NewZipf(random, 1.05, 20, 4*maxLayouts)
	last := make([]int, flows)
	headers(x, flows, 6000, 8, func() (int, int) {
		f := int(common.Uint64()) % flows // some have a segment seldom
		if random.IntN(2) == 0 {
			last[f] = int(common.Uint64())
		}
		return f, last[f]
	})
	l := &x.encoder(0).layouts
	if len(l.table) != maxLayouts {
		t.Errorf("%d layouts: the table is not full", len(l.table))
	}
	evicted := false
	for _, f := range x.encoder(0).contexts {
		evicted = evicted || l.at(f.layout.number) != f.layout
	}
	if !evicted {
		t.Error("no flow goes on with a layout that has lost its place")
	}
}

// The layout that gives way is the one used longest ago, whether a flow went on
// with it or took it from the table.
func TestOldestLayoutGivesWay(t *testing.T) {
	const n = 4
	x := newExchange(t, Config{Limits: wire.Limits{Flows: 100, Templates: n, Bodies: 1000, Packets: 10, Bytes: wire.MaxPacket}})
	script := []struct{ flow, header int }{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {1, 1}, {4, 0}, {5, 4}, {6, 5}}
	i := -1
	headers(x, 7, len(script), 1, func() (int, int) { i++; return script[i].flow, script[i].header })
	got := map[byte]bool{}
	for _, l := range x.encoder(0).layouts.table {
		got[l.bytes[len(l.bytes)-1]] = true
	}
	for _, h := range []byte{0, 1, 4, 5} { // and not 2 and 3
		if !got[h] {
			t.Errorf("layout %d gave way: %v are left", h, got)
		}
	}
	if len(got) != n {
		t.Errorf("%d layouts, %d places", len(got), n)
	}
}

// Tables of a few places are full at once, and all that is in them gives way all
// the time: that costs bytes and nothing else.
func TestSmallTables(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(rt, "places")
		limits := small(n)
		limits.Flows = uint32(rapid.IntRange(2, 3*n).Draw(rt, "contexts"))
		x := newExchange(rt, Config{Limits: limits})
		x.late = rapid.Bool().Draw(rt, "late")
		f := codectest.NewFanout(rapid.IntRange(1, 2*n).Draw(rt, "flows"))
		for range rapid.IntRange(1, 20).Draw(rt, "rounds") {
			topics := rapid.IntRange(1, 2*n).Draw(rt, "topics")
			layouts := rapid.IntRange(1, 2*n).Draw(rt, "layouts")
			for i := range f.Flows {
				f.Flows[i].Options = []byte{optionMSS, 4, 0, byte(i * f.Round % layouts)}
			}
			f.Send(func(i int) []byte {
				return codectest.Publish(fmt.Sprint("topic/", i%topics), fmt.Sprint("round ", f.Round+i), (1+i)*(f.Round%2))
			}, x.run)
			x.deliver(f.Round % 2)
			if rapid.IntRange(0, 3).Draw(rt, "settle") == 0 {
				x.settle()
			}
		}
		x.settle()
	})
}
