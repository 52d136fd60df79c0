package codec

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// Which template comes next is noted with the one before: of a single segment with that
// of its flow's last span, of a group of several with that of the last such group.
func TestTemplateBefore(t *testing.T) {
	c := newCrowd(t, 2)
	a, b, dropped := c.templates.take(9), c.templates.take(9), c.templates.take(9)
	c.templates.drop(dropped)
	at := c.templates.at
	single := func(f *context) *Group {
		return &Group{single: true, Members: []Member{{context: f}}}
	}
	for _, tt := range []struct {
		name string
		g    *Group
		last templateNumber
		want *templateNumber
	}{
		{"a single segment", single(&context{template: a}), b, &at(a).next},
		{"a flow's first", single(&context{}), b, nil},
		{"behind a template that was dropped", single(&context{template: dropped}), b, nil},
		{"a packet as it is", &Group{single: true}, b, nil},
		{"several", &Group{Members: []Member{{context: &context{template: a}}}}, b, &at(b).follow},
		{"the first of several", &Group{}, templateNumber{}, nil},
		{"several, behind a template that was dropped", &Group{}, dropped, nil},
	} {
		c.lastTemplate = tt.last
		if got := c.before(tt.g); got != tt.want {
			t.Errorf("%s: %p, expected %p", tt.name, got, tt.want)
		}
	}
}

// What is learned of a group of several is its first template, of others nothing.
func TestLearnSpans(t *testing.T) {
	spans := []Span{{template: templateAt(4)}, {template: templateAt(5)}}
	for _, tt := range []struct {
		name string
		g    Group
		want templateNumber
	}{
		{"several", Group{Kind: TCP4, Spans: spans}, templateAt(4)},
		{"one", Group{Kind: TCP4, Spans: spans, single: true}, templateAt(9)},
		{"a packet as it is", Group{Kind: Verbatim, Spans: spans}, templateAt(9)},
	} {
		var x codec
		x.lastTemplate = templateAt(9)
		if x.learnSpans(&tt.g); x.lastTemplate != tt.want {
			t.Errorf("%s: the last template is %v, expected %v", tt.name, x.lastTemplate, tt.want)
		}
	}
}

// A span's template becomes the one used last, and what followed the one before.
func TestEnterTemplate(t *testing.T) {
	c := newCrowd(t, 0)
	c.templates, c.limits.Templates = templates{table: make([]template, 0, 3)}, 3
	a, b := c.templates.put("a", 3, 100), c.templates.put("bb", 3, 100)
	c.clock = 700
	c.templates.at(a).clock = 200
	p := payloadCoding{before: &c.templates.at(b).follow}
	c.enterTemplate(&Span{template: a, known: true}, &p)
	if c.templates.newest != a || c.templates.at(b).follow != a || p.before != &c.templates.at(a).next {
		t.Errorf("the newest is %v, behind b comes %v", c.templates.newest, c.templates.at(b).follow)
	}

	// a new one, of a base: its first body is an edit of the base's, as old as that is
	s := Span{base: a}
	c.enterTemplate(&s, &p)
	n := s.template
	if n != templateAt(2) || c.templates.newest != n || c.templates.at(a).next != n {
		t.Errorf("the new one is %v; behind a comes %v", n, c.templates.at(a).next)
	}
	if got := c.templates.at(n).clock; got != 200 {
		t.Errorf("a template of a base of 200 is of %d", got)
	}
	if got := string(c.base(&s)); got != "a" {
		t.Errorf("its body is written against %q", got)
	}
	if c.scratch[0] = 'x'; string(c.templates.at(a).body(0)) != "a" {
		t.Error("what it is written against is no copy of the base's body")
	}
	s.base = templateNumber{}
	if got := c.base(&s); got != nil {
		t.Errorf("without a base its body is written against %q", got)
	}

	// a new one without a base, in place of the one used longest ago
	s = Span{}
	c.enterTemplate(&s, &payloadCoding{})
	if s.template != b || c.templates.at(b).clock != 700 || c.templates.at(b).count != 0 {
		t.Errorf("the new one is %v, of %d, with %d bodies", s.template, c.templates.at(b).clock, c.templates.at(b).count)
	}
	if got := c.base(&s); got != nil {
		t.Errorf("without a base its body is written against %q", got)
	}

	// a base that has to give way itself
	c.templates.touch(n)
	c.templates.touch(b)
	s = Span{base: a}
	c.enterTemplate(&s, &payloadCoding{})
	if s.template != a || string(c.base(&s)) != "a" || c.templates.at(a).clock != 200 {
		t.Errorf("the new one is %v, its body is written against %q", s.template, c.base(&s))
	}

	// what is noted with a template that gives way stays where it was noted
	c.templates.touch(b)
	p = payloadCoding{before: &c.templates.at(n).next}
	s = Span{}
	if c.enterTemplate(&s, &p); s.template != n || c.templates.at(n).next != n {
		t.Errorf("the new one is %v; behind the one that gave way comes %v", s.template, c.templates.at(n).next)
	}
}

// The body of a template that is known is written against its newest one, whatever base
// there was.
func TestBaseOfAKnownTemplate(t *testing.T) {
	c := newCrowd(t, 0)
	n := c.templates.put("old", 3, 100)
	c.templates.remember(n, []byte("new"), 0, 100)
	c.scratch = []byte("base")
	if got := string(c.base(&Span{template: n, known: true, base: n})); got != "new" {
		t.Errorf("written against %q", got)
	}
	m := c.templates.take(3) // all of whose bodies were too long
	if got := c.base(&Span{template: m, known: true, base: n}); got != nil {
		t.Errorf("written against %q", got)
	}
}

// A template that followed last time costs next to nothing, another one its number.
func TestTemplateGuess(t *testing.T) {
	x := newExchange(t, Config{})
	s := codectest.Segment{Client: 1, Flags: 0x18}
	send := func(round int, topic string) (bits float64) {
		s.Payload = codectest.Publish(topic, fmt.Sprint("body ", round), 0)
		f := x.send(0, s.Packet())
		s.Seq += uint32(len(s.Payload))
		return f.groups[0].Cost.Bodies
	}
	topics := []string{"one", "two", "three", "four"}
	last := 0.0
	for round := range 20 {
		last = 0
		for _, topic := range topics {
			last += send(round, topic)
		}
	}
	if last > 24 {
		t.Errorf("four topics in an order that is known cost %.1f bits", last)
	}
	if other := send(20, "three"); other < last/4+2 {
		t.Errorf("another topic costs %.1f bits, the one expected %.1f", other, last/4)
	}
	e := x.encoder(0)
	for i := range topics {
		want := templateAt(uint32((i + 1) % 4))
		if i == 3 {
			want = templateAt(2)
		}
		if got := e.templates.table[i].next; got != want {
			t.Errorf("behind template %d comes %v, expected %v", i, got, want)
		}
	}
}

// A body of maxBody bytes is remembered, a longer one is not; copies are not remembered
// again, and are noted.
func TestLearnBody(t *testing.T) {
	if maxBody != 1<<14 {
		t.Errorf("a remembered body has %d bytes, SPEC.md section 6.5 says 16384", maxBody)
	}
	var x codec
	x.limits = wire.DefaultLimits
	x.clock = 9
	n := x.templates.take(1)
	at := x.templates.at(n)
	learn := func(body string, depth int) { x.learnBody(&Span{template: n, Body: []byte(body), depth: depth}) }
	long := strings.Repeat("x", maxBody)
	learn(long, -1)
	if at.count != 1 || at.clock != 9 || at.exact {
		t.Errorf("%d bodies, of %d, a copy: %t", at.count, at.clock, at.exact)
	}
	learn(long+"x", -1)
	if at.count != 1 || x.templates.bytes != maxBody {
		t.Errorf("%d bodies of %d bytes", at.count, x.templates.bytes)
	}
	learn(long, 0)
	if at.count != 1 || !at.exact {
		t.Errorf("%d bodies, a copy: %t", at.count, at.exact)
	}
	learn("other", -1)
	if at.count != 2 || at.exact || string(at.body(0)) != "other" {
		t.Errorf("%d bodies, a copy: %t", at.count, at.exact)
	}
	m := x.templates.take(2)
	if x.learnBody(&Span{template: m, Body: []byte("x"), depth: 0}); x.templates.at(m).exact {
		t.Error("a template without bodies had a copy")
	}
}

// A copy costs next to nothing, and the newest least; one that was forgotten is an edit
// again.
func TestCopies(t *testing.T) {
	x := newExchange(t, Config{})
	s := codectest.Segment{Client: 1, Flags: 0x18}
	send := func(body string) (depth int, bits float64) {
		s.Payload = codectest.Publish("topic", body, 0)
		f := x.send(0, s.Packet())
		s.Seq += uint32(len(s.Payload))
		return f.groups[0].Spans[0].depth, f.groups[0].Cost.Bodies
	}
	for _, step := range []struct {
		body string
		want int
	}{{"a", -1}, {"a", 0}, {"b", -1}, {"a", 1}, {"c", -1}, {"d", -1}, {"a", 3}, {"e", -1}, {"a", -1}, {"b", -1}} {
		if depth, _ := send(step.body); depth != step.want {
			t.Errorf("%s is body %d, expected %d", step.body, depth, step.want)
		}
	}
	for range 20 {
		send("b")
	}
	if _, bits := send("b"); bits > 1.5 {
		t.Errorf("a copy costs %.1f bits", bits)
	}
}

// Whether a body is a copy is told by whether the template's last one was: a template
// that repeats itself and one that never does cost little each, also in turn.
func TestCopiesByTemplate(t *testing.T) {
	x := newExchange(t, Config{})
	s := codectest.Segment{Client: 1, Flags: 0x18}
	same := 0.0
	for round := range 60 {
		for _, topic := range []string{"same", "other"} {
			body := "body"
			if topic == "other" {
				body = fmt.Sprint("body ", round)
			}
			s.Payload = codectest.Publish(topic, body, 0)
			f := x.send(0, s.Packet())
			s.Seq += uint32(len(s.Payload))
			if topic == "same" {
				same = f.groups[0].Cost.Bodies
			}
		}
	}
	if same > 0.5 {
		t.Errorf("a body that is always the same costs %.2f bits", same)
	}
}

// How old a number in a template is counts from when its newest body was coded: a time in
// milliseconds that goes on costs nothing.
func TestElapsed(t *testing.T) {
	x := newExchange(t, Config{})
	s := codectest.Segment{Client: 1, Flags: 0x18, TSval: 1000, TSecr: 1}
	cost := 0.0
	for round := range 30 {
		pause := uint32(100 + round*round%17*10)
		s.TSval += pause
		s.Payload = codectest.Publish("t", fmt.Sprint(`{"ts":`, 1795986473880+int64(s.TSval), `}`), 0)
		cost = x.send(0, s.Packet()).groups[0].Cost.Bodies
		s.Seq += uint32(len(s.Payload))
	}
	if cost > 3 {
		t.Errorf("a time that goes on costs %.1f bits", cost)
	}
}

// What is left to the literals goes beside the control field, and is counted there.
func TestLiteralsAreCounted(t *testing.T) {
	x := newExchange(t, Config{})
	s := codectest.Segment{Client: 1, Flags: 0x18, Payload: randomOf(1400, 1)}
	f := x.send(0, s.Packet())
	if g := &f.groups[0]; !g.Spans[0].literal || g.Spans[0].Literals != 1400 || g.Cost.Literals != 1400 || !bytes.Equal(f.Literals, s.Payload) {
		t.Errorf("of 1400 bytes %d are counted, %d in the group, %d are literals", g.Spans[0].Literals, g.Cost.Literals, len(f.Literals))
	}
	s.Seq += 1400
	f = x.send(0, s.Packet())
	if g := &f.groups[0]; g.Spans[0].Literals != 0 || g.Cost.Literals != 0 || len(f.Literals) != 0 {
		t.Errorf("of a copy %d are counted, %d are literals", g.Spans[0].Literals, len(f.Literals))
	}
}

// The bodies of a segment's spans come out as they went in, though a template remembers
// fewer than the segment has of it, and one span may be a copy of the one before.
func TestSpansOfOneTemplate(t *testing.T) {
	x := newExchange(t, Config{})
	s := codectest.Segment{Client: 1, Flags: 0x18}
	for round := range 5 {
		s.Payload = nil
		for i := range 2 * templateDepth {
			s.Payload = append(s.Payload, codectest.Publish("topic", fmt.Sprint("body ", 100*round+i/2), 0)...)
		}
		f := x.send(0, s.Packet())
		s.Seq += uint32(len(s.Payload))
		var depths []int
		for i := range f.groups[0].Spans {
			depths = append(depths, f.groups[0].Spans[i].depth)
		}
		if want := []int{-1, 0, -1, 0, -1, 0, -1, 0}; !slices.Equal(depths, want) {
			t.Errorf("round %d: the spans are bodies %v, expected %v", round, depths, want)
		}
	}
	if e := x.encoder(0); len(e.templates.table) != 1 || e.templates.table[0].next != templateAt(0) {
		t.Errorf("%d templates; behind the first comes %v", len(e.templates.table), e.templates.table[0].next)
	}
}

// The first of two bodies that are edits comes out as it went in: the second is not read
// over it.
func TestTwoEdits(t *testing.T) {
	x := newExchange(t, Config{})
	s := codectest.Segment{Client: 1, Flags: 0x18}
	for round := range 5 {
		s.Payload = append(codectest.Publish("one", fmt.Sprint("body ", round), 0), codectest.Publish("two", fmt.Sprint("other ", 7*round), 0)...)
		if f := x.send(0, s.Packet()); len(f.groups[0].Spans) != 2 || f.groups[0].Spans[0].literal || f.groups[0].Spans[1].literal {
			t.Errorf("round %d: %d spans, not two edits", round, len(f.groups[0].Spans))
		}
		s.Seq += uint32(len(s.Payload))
	}
}

// The number of spans costs nothing where it is one, as nearly always.
func TestSpanCount(t *testing.T) {
	c := newCrowd(t, 0)
	count := func(n int, single bool) int {
		g := &Group{Spans: make([]Span, n), single: single}
		return c.bits(func() {
			if p, err := c.codeSpanCount(g); err != nil || p.number != n || p.left != wire.MaxPacket {
				t.Errorf("%d spans: %+v, %v", n, p, err)
			}
		})
	}
	for range 30 {
		count(1, true)
	}
	if got := count(1, true); got != 0 {
		t.Errorf("one span costs %d bits", got)
	}
	if got := count(1, false); got != 1 {
		t.Errorf("one span of several segments costs %d bits at first", got)
	}
	for _, n := range []int{2, 300, maxSpans} {
		count(n, true)
	}
}

// Holes where the template has them cost nothing, others their fields; both ends then
// have them.
func TestHolesOfATemplate(t *testing.T) {
	w, r := newCrowd(t, 0), newCrowd(t, 0)
	for _, c := range []*crowd{w, r} {
		c.templates.take(9)
	}
	body := []byte("a body with holes")
	first := []Hole{{at: 0, kind: parsers.HoleMask, width: withKey}, {at: 5, kind: parsers.HoleDecimal, counter: 3, step: 1}, {at: 17, kind: parsers.HoleBig, width: 8, counter: 1}}
	for i, holes := range [][]Hole{nil, first, first, {{at: 17, kind: parsers.HoleText, counter: 2}}, nil, nil} {
		s := Span{template: templateAt(0), Body: body, Holes: holes}
		cost := w.bits(func() {
			if err := w.codeHoles(&s); err != nil {
				t.Errorf("%v: %v", holes, err)
			}
			w.learnHoles(&s)
		})
		if same := i == 0 || i == 2 || i == 5; same != (cost <= 2) {
			t.Errorf("%d: holes %v cost %d bits", i, holes, cost)
		}
		r.coder.Read(w.coder.Finish())
		got := Span{template: templateAt(0), Body: body}
		if err := r.codeHoles(&got); err != nil || !slices.Equal(got.Holes, holes) {
			t.Errorf("%d: holes %v were read as %v: %v", i, holes, got.Holes, err)
		}
		r.learnHoles(&got)
		if !slices.Equal(r.templates.at(templateAt(0)).holes, holes) {
			t.Errorf("%d: the template has holes %v", i, r.templates.at(templateAt(0)).holes)
		}
	}
	if got := len(r.holes); got != 3+3+1 {
		t.Errorf("%d holes are held for the group", got)
	}
}

// What a frame says of masks is checked like all else in it.
func TestMaskHolesOfFrames(t *testing.T) {
	mask := func(width uint8) Hole { return Hole{kind: parsers.HoleMask, width: width} }
	for i, want := range map[int][]bool{0: {true, true, true, true, true, false}, 1: make([]bool, 6)} {
		for width, want := range want {
			if got := mask(uint8(width)).valid(i); got != want {
				t.Errorf("hole %d, mask of width %d: %t, want %t", i, width, got, want)
			}
		}
	}
	s := Span{Body: []byte("head, body"), Holes: []Hole{mask(withKey)}}
	s.Holes[0].at = len(s.Body)
	b := append([]byte("head, body"), 1, 2, 3, 4)
	if s.mask(b, 0x01020304); string(b) != "head, body\x01\x02\x03\x04" {
		t.Errorf("a mask of nothing: %q", b)
	}
}
