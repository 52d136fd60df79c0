package codec

import (
	"fmt"
	"slices"
	"testing"

	"sheaf/engine/wire"
	"sheaf/parsers"
)

// A lesson is one segment for a hand-made context to learn from.
type lesson struct {
	flags uint8
	seq   uint32
	n     uint32 // bytes of payload
}

// The sequence number after a flow's last byte moves on with its segments, also past
// where the numbers begin again. A SYN and a FIN count as a byte each. A retransmission does
// not take it back, a new connection does.
func TestLearnEnd(t *testing.T) {
	for _, tt := range []struct {
		name    string
		lessons []lesson
		want    uint32
	}{
		{"payload", []lesson{{parsers.FlagACK, 100, 20}}, 120},
		{"none", []lesson{{parsers.FlagACK, 100, 0}}, 100},
		{"SYN", []lesson{{parsers.FlagSYN, 100, 0}}, 101},
		{"FIN", []lesson{{parsers.FlagFIN, 100, 20}}, 121},
		{"SYN and FIN", []lesson{{parsers.FlagSYN | parsers.FlagFIN, 100, 20}}, 122},
		{"one after the other", []lesson{{parsers.FlagACK, 100, 20}, {parsers.FlagACK, 120, 5}}, 125},
		{"a gap", []lesson{{parsers.FlagACK, 100, 20}, {parsers.FlagACK, 200, 5}}, 205},
		{"a retransmission", []lesson{{parsers.FlagACK, 100, 20}, {parsers.FlagACK, 120, 5}, {parsers.FlagACK, 100, 20}}, 125},
		{"a retransmission and more", []lesson{{parsers.FlagACK, 100, 20}, {parsers.FlagACK, 100, 30}}, 130},
		{"a keep-alive", []lesson{{parsers.FlagACK, 100, 20}, {parsers.FlagACK, 119, 0}}, 120},
		{"past the last number", []lesson{{parsers.FlagACK, 1<<32 - 10, 5}, {parsers.FlagACK, 1<<32 - 5, 15}}, 10},
		{"back past it", []lesson{{parsers.FlagACK, 5, 5}, {parsers.FlagACK, 1<<32 - 5, 5}}, 10},
		{"a new connection", []lesson{{parsers.FlagACK, 1000, 20}, {parsers.FlagSYN, 100, 0}}, 101},
	} {
		e, _ := New(Config{Limits: wire.DefaultLimits})
		f := &context{}
		e.enterContext(cidAt(0), f)
		for _, l := range tt.lessons {
			g := &Group{Kind: TCP4, Flags: l.flags}
			mb := Member{context: f, cid: cidAt(0), Fields: Fields{layout: &layout{}, seq: l.seq}}
			e.learnTCP(g, &mb, l.n)
		}
		if f.end != tt.want || !f.started {
			t.Errorf("%s: the flow ends at %d, expected %d", tt.name, f.end, tt.want)
		}
	}
}

// A window is expected to grow by what it grew last. One that shrank, by however much,
// is expected to stay. A SYN's is a value of another scale.
func TestLearnWindow(t *testing.T) {
	var s state
	f := &context{}
	for _, step := range []struct {
		what    string
		window  uint16
		flags   uint8
		step    uint16
		fresh   uint16 // of the state, afterwards
		opened  uint16
		predict uint16 // of the flow's next segment
	}{
		{"the first", 64240, parsers.FlagSYN, 0, 64240, 0, 0},
		{"behind its SYN", 502, parsers.FlagACK, 0, 64240, 502, 502},
		{"the same", 502, parsers.FlagACK, 0, 64240, 502, 502},
		{"grown", 510, parsers.FlagACK, 8, 64240, 502, 518},
		{"grown again", 518, parsers.FlagACK, 8, 64240, 502, 526},
		{"shrunk", 500, parsers.FlagACK, 0, 64240, 502, 500},
		{"grown by half of all", 500 + 1<<15, parsers.FlagACK, 1 << 15, 64240, 502, 500},
		{"grown by more", 501, parsers.FlagACK, 0, 64240, 502, 501},
	} {
		s.learnWindow(f, step.window, step.flags)
		f.started, f.syn = true, step.flags&parsers.FlagSYN != 0
		if f.window != step.window || f.step != step.step {
			t.Errorf("%s: window %d, step %d, expected %d", step.what, f.window, f.step, step.step)
		}
		if s.freshWindow != step.fresh || s.openWindow != step.opened {
			t.Errorf("%s: of new flows %d and %d, expected %d and %d", step.what, s.freshWindow, s.openWindow, step.fresh, step.opened)
		}
		if got := s.predictWindow(f, parsers.FlagACK); got != step.predict {
			t.Errorf("%s: %d is expected next, not %d", step.what, got, step.predict)
		}
	}
}

// A TCP segment leaves in its flow's context what the next is predicted by, and tells
// the other direction of itself.
func TestLearnTCP(t *testing.T) {
	e, _ := New(Config{Limits: wire.DefaultLimits})
	f := &context{odd: &oddities{sack: sack{n: 1}}}
	e.enterContext(cidAt(0), f)
	for range 2 {
		e.views.expected.push(cidAt(0))
		mb := Member{context: f, cid: cidAt(0), fresh: true, Fields: Fields{
			layout: &layout{tsval: 44}, seq: 100, ack: 7, tsval: 50, tsecr: 60, window: 9,
		}}
		f.reverse = peerCIDAt(3)
		e.learnTCP(&Group{Kind: TCP4, Flags: parsers.FlagACK | parsers.FlagSYN, Spans: make([]Span, 1)}, &mb, 20)
		if f.ack != 7 || !f.hasTSval || f.tsecr != 60 || !f.syn || f.window != 9 {
			t.Errorf("the context is %+v", *f)
		}
		if f.odd.sack.n != 0 {
			t.Error("SACK blocks stay, though the last segment had none")
		}
		want := item{
			context: f, cid: cidAt(0), fresh: true, reverse: peerCIDAt(3), payload: true, begin: 100, end: 121,
			ack: 7, hasAck: true, tsval: 50, hasTSval: true,
		}
		if got := e.items[len(e.items)-1]; got != want {
			t.Errorf("the item is %+v, expected %+v", got, want)
		}
		if e.views.expected.count != 0 {
			t.Error("a flow is expected that had a segment")
		}
	}
	blocks := sack{n: 1, blocks: [maxBlocks]block{{1, 2}}}
	mb := Member{context: f, cid: cidAt(0), Fields: Fields{layout: &layout{sack: 44}, seq: 100, tsval: 51, tsecr: 61, sack: &blocks}}
	e.learnTCP(&Group{Kind: TCP4}, &mb, 0)
	if f.odd.sack != blocks {
		t.Errorf("the SACK blocks are %v", f.odd.sack)
	}
	if f.tsecr != 60 || f.syn {
		t.Errorf("a segment without timestamps and SYN: TSecr %d, SYN %t", f.tsecr, f.syn)
	}
	want := item{context: f, cid: cidAt(0), reverse: peerCIDAt(3), begin: 100, end: 121, tsval: 51}
	if got := e.items[2]; got != want {
		t.Errorf("the item is %+v, expected %+v", got, want)
	}
}

// What every kind of segment leaves in its flow's context.
func TestLearnContexts(t *testing.T) {
	e, _ := New(Config{Limits: wire.DefaultLimits})
	f := &context{id: 6}
	e.enterContext(cidAt(0), f)
	e.clock, e.group = 77, 5
	teach := func(kind Kind, fields Fields, spans ...Span) {
		t.Helper()
		g := &Group{Kind: kind, Spans: spans, Members: []Member{{context: f, cid: cidAt(0), Fields: fields}}}
		e.learn(g)
	}
	l := &layout{}
	teach(IP4, Fields{layout: l, id: 7, label: 3, sumMode: sumZero}, Span{template: templateAt(4)}, Span{template: templateAt(5)})
	if f.layout != l || l.used != 5 || f.clock != 77 || f.sums != uint8(sumZero) || f.template != templateAt(5) {
		t.Errorf("the context is %+v", *f)
	}
	if f.id != 7 || f.idStep != 1 || f.label != 0 {
		t.Errorf("identification %d, step %d, label %d", f.id, f.idStep, f.label)
	}
	teach(IP4, Fields{layout: l, id: 7, ipSum: 3})
	if f.idStep != 0 || f.template != templateAt(5) || f.ipSum != 0 {
		t.Errorf("the same identification: step %d, template %v, header checksum %d", f.idStep, f.template, f.ipSum)
	}
	teach(IP6, Fields{layout: l, id: 9, label: 3, ipSum: 4, ipSumMode: ipSumExplicit})
	if f.id != 7 || f.label != 3 || f.ipSum != 4 || f.sums != uint8(numSumModes)*2 {
		t.Errorf("identification %d, label %d, header checksum %d, modes %d", f.id, f.label, f.ipSum, f.sums)
	}
	if f.started || len(e.items) != 0 {
		t.Error("what is not TCP taught numbers of TCP")
	}
	teach(Verbatim, Fields{layout: l, id: 50})
	if f.id != 7 {
		t.Error("a packet as it is taught something")
	}
}

// A group of setMinimum members makes a set of them, in their order; a smaller one
// is no lesson.
func TestLearnSetFromThree(t *testing.T) {
	if setMinimum != 3 {
		t.Errorf("setMinimum is %d, SPEC.md section 4.3 says 3", setMinimum)
	}
	for n, want := range map[int]string{1: "[]", 2: "[]", 3: "[2 1 0]", 5: "[4 3 2 1 0]"} {
		c := newClass(t, 8, wire.DefaultLimits)
		var members []int
		for i := range n {
			members = append(members, n-1-i)
		}
		c.teach(members...)
		if got := c.set(); got != want {
			t.Errorf("the set of a group of %d is %s, expected %s", n, got, want)
		}
	}
}

// A member that stays away setMisses times in a row is dropped; one that comes back
// before that has its place, and all its misses again.
func TestLearnSetMisses(t *testing.T) {
	if setMisses != 12 {
		t.Errorf("setMisses is %d, SPEC.md section 4.3 says 12", setMisses)
	}
	c := newClass(t, 8, wire.DefaultLimits)
	c.teach(0, 1, 2, 3)
	for range 2 {
		for range setMisses - 1 {
			c.teach(0, 2, 3)
		}
		if got := c.set(); got != "[0 1 2 3]" {
			t.Fatalf("after %d absences the set is %s", setMisses-1, got)
		}
		c.teach(3, 2, 1, 0)
	}
	for range setMisses {
		c.teach(0, 2, 3)
	}
	if got := c.set(); got != "[0 2 3]" {
		t.Errorf("after %d absences the set is %s", setMisses, got)
	}
	c.teach(1, 2, 4)
	if got := c.set(); got != "[0 2 3 1 4]" {
		t.Errorf("new members come behind the others: %s", got)
	}
	for range 3 * setMisses {
		c.teach(0, 1)
	}
	if got := c.set(); got != "[0 2 3 1 4]" {
		t.Errorf("groups of two changed the set: %s", got)
	}
}

// A set has at most as many members as a frame has packets, and setLimit. Who is in it
// stays, who comes past the limit is left out.
func TestLearnSetLimit(t *testing.T) {
	limits := wire.DefaultLimits
	limits.Packets = 4
	c := newClass(t, 8, limits)
	c.teach(0, 1, 2, 3, 4, 5)
	c.teach(5, 4, 3)
	if got := c.set(); got != "[0 1 2 3]" {
		t.Errorf("the set is %s with a limit of 4", got)
	}
	for packets, want := range map[uint32]int{4: 4, setLimit: setLimit, setLimit + 1: setLimit} {
		s := state{limits: wire.Limits{Packets: packets}}
		if got := s.setLimit(); got != want {
			t.Errorf("with %d packets a frame a set has %d, expected %d", packets, got, want)
		}
	}
}

// A member whose CID has no context any more is dropped.
func TestLearnSetWithoutContexts(t *testing.T) {
	c := newClass(t, 8, wire.DefaultLimits)
	c.teach(0, 1, 2, 7)
	c.contexts[7] = nil
	c.teach(0, 1, 2)
	if got := c.set(); got != "[0 1 2]" {
		t.Errorf("the set is %s", got)
	}
}

// Acknowledgements have one set, and messages one by their template.
func TestLearnSetByTemplate(t *testing.T) {
	c := newClass(t, 8, wire.DefaultLimits)
	c.template = c.templates.take(9)
	c.teach(0, 1, 2)
	other := c.templates.take(9)
	c.template = other
	c.teach(3, 4, 5)
	c.template = templateNumber{}
	c.teach(6, 7, 0)
	got := ""
	for _, set := range [...][]setMember{c.templates.table[0].set, c.templates.table[1].set, c.ackSet} {
		got += cids(set)
	}
	if want := "[0 1 2][3 4 5][6 7 0]"; got != want {
		t.Errorf("the sets are %s, expected %s", got, want)
	}
}

// A class teaches an Encoder's state who gets messages of a template, or of none.
type class struct {
	*Encoder
	template templateNumber
}

func newClass(t *testing.T, flows int, limits wire.Limits) *class {
	t.Helper()
	e, _ := New(Config{Limits: limits})
	for i := range flows {
		e.enterContext(cidAt(uint32(i)), &context{})
	}
	return &class{Encoder: e}
}

func (c *class) teach(members ...int) {
	g := &Group{Kind: TCP4}
	if !c.template.none() {
		g.Spans = []Span{{template: c.template}}
	}
	c.group++
	for _, m := range members {
		cid := cidAt(uint32(m))
		g.Members = append(g.Members, Member{cid: cid})
		c.mark(cid)
	}
	c.learnSet(g)
}

func (c *class) set() string { return cids(c.ackSet) }

// cids returns "[3 1]" for a set of the CIDs 3 and 1.
func cids(set []setMember) string {
	places := []uint32{}
	for _, m := range set {
		places = append(places, m.cid.place())
	}
	return fmt.Sprint(slices.Clip(places))
}
