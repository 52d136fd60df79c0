package codec

import (
	"fmt"
	"strings"
	"testing"

	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// A judge has an Encoder find templates for spans, and remembers their bodies.
type judge struct {
	*Encoder
	t     *testing.T
	flows [4]Flow
}

func newJudge(t *testing.T, by Similarity, templates uint32) *judge {
	t.Helper()
	limits := wire.DefaultLimits
	limits.Templates = templates
	e, _ := New(Config{Similarity: by, Limits: limits})
	j := &judge{Encoder: e, t: t}
	for i := range j.flows {
		j.flows[i] = Flow{Key: parsers.FlowKey{SrcPort: uint16(40000 + i), DstPort: 1883, Proto: ip.TCP, Version: 4}, cid: cidAt(uint32(10 + i))}
	}
	return j
}

// group is one of some segments, the first of which is a flow's.
func (j *judge) group(flow, members int) *Group {
	g := &Group{Kind: TCP4, Members: make([]Member, members)}
	g.Members[0].Flow = &j.flows[flow]
	return g
}

// ask chooses the template of a span that is like another, and has it as body.
func (j *judge) ask(g *Group, like Span, body string) (s Span) {
	s = like
	s.Body = []byte(body)
	j.chooseTemplate(g, &s)
	return s
}

// give is ask, and the body is remembered.
func (j *judge) give(g *Group, like Span, body string) Span {
	s := j.ask(g, like, body)
	j.enterTemplate(&s, &payloadCoding{})
	j.noteTemplate(&s)
	if s.depth = j.templates.at(s.template).find(s.Body); s.depth < 0 {
		j.learnBody(&s)
	}
	return s
}

// is holds what was chosen for a span: a template that is there, of another span; or
// none, with the base of that.
func (j *judge) is(what string, got Span, hit Hit, of Span, base bool) {
	j.t.Helper()
	want := of.template
	found := got.template
	if base {
		found = got.base
	}
	if got.Hit != hit || found != want || got.known == base || base && !got.template.none() || !base && !got.base.none() {
		j.t.Errorf("%s: template %v (known %t), base %v, by %v; expected template %v as base %t, by %v",
			what, got.template, got.known, got.base, got.Hit, want, base, hit)
	}
}

// isNew holds that there is neither a template for a span nor a base for one.
func (j *judge) isNew(what string, got Span) {
	j.t.Helper()
	if got.Hit != NoHit || got.known || !got.template.none() || !got.base.none() {
		j.t.Errorf("%s: template %v, base %v, by %v; expected none", what, got.template, got.base, got.Hit)
	}
}

// A message's template is that of its event. Where there is none, its base is the newest
// of the same name and length, or else of the same name, or else of the same length.
func TestChooseTemplateOfAMessage(t *testing.T) {
	j := newJudge(t, ByAll, 99)
	g := j.group(0, 1)
	span := func(key uint64, name uint8) Span { return Span{Advice: Advice{Key: key, Protocol: 2, Name: name}} }

	j.isNew("the first", j.ask(g, span(1, 3), "12345"))
	one := j.give(g, span(1, 3), "12345")
	j.is("the same event", j.ask(g, span(1, 3), "what else"), HitEvent, one, false)
	j.is("the same name and length", j.ask(g, span(2, 3), "54321"), HitNameLength, one, true)
	j.is("the same name", j.ask(g, span(2, 3), "654321"), HitName, one, true)
	j.is("the same length", j.ask(g, span(2, 4), "54321"), HitLength, one, true)
	j.isNew("another name and length", j.ask(g, span(2, 4), "654321"))

	two := j.give(g, span(2, 3), "long body")
	j.is("the same name", j.ask(g, span(3, 3), "654321"), HitName, two, true)
	j.is("the same name and length", j.ask(g, span(3, 3), "54321"), HitNameLength, one, true)
	four := j.give(g, span(4, 4), "54321")
	j.is("the same name", j.ask(g, span(5, 4), "654321"), HitName, four, true)
	j.is("of the same length, the newest", j.ask(g, span(5, 9), "12345"), HitLength, four, true)
}

// Messages that are compared by less than their event share a template.
func TestChooseTemplateByCriteria(t *testing.T) {
	span := func(key uint64, name uint8) Span { return Span{Advice: Advice{Key: key, Protocol: 2, Name: name}} }
	for _, tt := range []struct {
		by   Similarity
		same string // the second, third and fourth span: have they the template of the first
	}{
		{ByEvent, "-+-"}, {ByName, "+++"}, {ByLength, "+--"}, {ByName | ByLength, "+--"},
	} {
		j := newJudge(t, tt.by, 99)
		g := j.group(0, 1)
		one := j.give(g, span(1, 3), "12345")
		got := ""
		for _, s := range []Span{j.ask(g, span(2, 3), "54321"), j.ask(g, span(1, 3), "654321"), j.ask(g, span(2, 3), "654321")} {
			if s.known && s.template == one.template && s.Hit == tt.by.hit() {
				got += "+"
			} else {
				got += "-"
			}
		}
		if got != tt.same {
			t.Errorf("criteria %05b: %s, expected %s", tt.by, got, tt.same)
		}
	}
}

// All encrypted spans of a kind have one template, of what was sent before, and are
// compared with nothing.
func TestChooseTemplateOfEncrypted(t *testing.T) {
	j := newJudge(t, ByAll, 99)
	g := j.group(0, 1)
	span := Span{Advice: Advice{Key: 5, Protocol: 2, Name: 3, Encrypted: true}}
	one := j.give(g, span, "12345")
	if one.Hit != NoHit {
		t.Errorf("the first was found by %v", one.Hit)
	}
	span.Key, span.Event = 6, []byte("another")
	if s := j.ask(g, span, "xyz"); !s.known || s.template != one.template || s.Hit != NoHit {
		t.Errorf("the next has template %v by %v", s.template, s.Hit)
	}
	for what, change := range map[string]func(*Span){
		"another name":     func(s *Span) { s.Name++ },
		"another protocol": func(s *Span) { s.Protocol++ },
		"a later part":     func(s *Span) { s.At = 9 },
	} {
		s := span
		change(&s)
		j.isNew(what, j.ask(g, s, "12345"))
	}
}

// A template that gave way is not found, neither by its event nor as a base; nor is one
// that has taken its place found by what was said of the old one.
func TestTemplatesThatGaveWayAreNotFound(t *testing.T) {
	j := newJudge(t, ByAll, 2)
	g := j.group(0, 1)
	span := func(key uint64, name uint8) Span { return Span{Advice: Advice{Key: key, Protocol: 2, Name: name}} }
	one := j.give(g, span(1, 1), "a")
	two := j.give(g, span(2, 2), "bb")
	three := j.give(g, span(3, 3), "ccc")
	if three.template != one.template {
		t.Fatalf("the third has the place %v", three.template)
	}
	j.isNew("the first event", j.ask(g, span(1, 9), "none"))
	j.isNew("the first name and length", j.ask(g, span(4, 1), "a"))
	j.is("the second", j.ask(g, span(2, 2), "bb"), HitEvent, two, false)

	j.templates.drop(three.template)
	j.isNew("the third event", j.ask(g, span(3, 9), "none"))
	j.isNew("the third name", j.ask(g, span(4, 3), "none"))
	if len(j.byKey) != 2 || len(j.alike) != 6 {
		t.Errorf("of two templates %d keys are kept, and %d of what is alike", len(j.byKey), len(j.alike))
	}
}

// What is noted of a template that gives way is dropped with it, but not what has become
// another template's since.
func TestNotesOfTemplates(t *testing.T) {
	j := newJudge(t, ByAll, 3)
	g := j.group(0, 1)
	span := func(key uint64, name uint8) Span { return Span{Advice: Advice{Key: key, Protocol: 2, Name: name}} }
	j.give(g, span(1, 1), "aa")
	two := j.give(g, span(2, 1), "bb") // of the same name and length
	j.give(g, span(3, 3), "c")
	j.give(g, span(4, 4), "dddd") // in place of the first
	j.is("the name and length of two", j.ask(g, span(9, 1), "xx"), HitNameLength, two, true)
	if len(j.byKey) != 3 || len(j.notes) != 3 {
		t.Errorf("%d keys and notes of %d templates", len(j.byKey), len(j.notes))
	}
	for i := range uint64(50) {
		j.give(g, span(10+i, uint8(i)), strings.Repeat("x", int(i)))
	}
	if len(j.byKey) != 3 || len(j.alike) > 9 || len(j.notes) != 3 {
		t.Errorf("after 50 more: %d keys, %d of what is alike, notes of %d templates", len(j.byKey), len(j.alike), len(j.notes))
	}
	if got := j.templateLike(0); !got.none() {
		t.Errorf("nothing is alike, and found as %v", got)
	}
}

// Bytes about which nothing is known, while contents are not compared, have a template
// of their flow's.
func TestMatchContentOff(t *testing.T) {
	j := newJudge(t, ByEvent, 99)
	one := j.give(j.group(0, 1), Span{}, "hello")
	j.isNew("another flow", j.ask(j.group(1, 1), Span{}, "hello"))
	j.is("the same flow", j.ask(j.group(0, 1), Span{}, "what"), Unasked, one, false)
	// a flow that has no CID yet is compared with others of its kind
	j.flows[2].cid, j.flows[3].cid = CID{}, CID{}
	two := j.give(j.group(2, 1), Span{}, "hello")
	j.is("no number yet", j.ask(j.group(3, 1), Span{}, "what"), Unasked, two, false)
}

// Packets that are carried as they are have a template for each key that they are given.
func TestMatchContentVerbatim(t *testing.T) {
	j := newJudge(t, ByAll, 99)
	g := &Group{Kind: Verbatim}
	a := Span{Advice: Advice{Key: 5}}
	one := j.give(g, a, "packet")
	j.is("the same key", j.ask(g, a, "another"), Unasked, one, false)
	j.is("another key, as long", j.ask(g, Span{Advice: Advice{Key: 6}}, "locket"), HitNameLength, one, true)
}

// What begins alike and is of one service shares a template, whichever flow it is of.
func TestMatchContentShared(t *testing.T) {
	j := newJudge(t, ByAll, 99)
	text := "NOTE 17: the value is 5, as it was yesterday"
	one := j.give(j.group(0, 1), Span{}, text)
	if one.Hit != NoHit {
		t.Errorf("the first was found by %v", one.Hit)
	}
	j.is("a copy for another flow", j.ask(j.group(1, 1), Span{}, text), HitContent, one, false)
	j.is("another number", j.ask(j.group(1, 1), Span{}, "NOTE 23: the value is 5, as it was yesterday"), HitContent, one, false)
	j.is("unlike, to several flows", j.ask(j.group(1, 2), Span{}, "NOTE"+strings.Repeat("xyz", 20)), HitContent, one, false)
	j.is("unlike, but a body of it", j.ask(j.group(1, 1), Span{}, text), HitContent, one, false)
	other := j.ask(j.group(1, 1), Span{}, "note 17: the value is 5, as it was yesterday")
	j.is("another begin", other, HitNameLength, one, true)
	j.flows[1].Key.DstPort = 1884
	j.is("of another service", j.ask(j.group(1, 1), Span{}, text), HitNameLength, one, true)
	j.flows[1].Key.SrcPort = 1883 // which is the lower one now
	j.is("from that service", j.ask(j.group(1, 1), Span{}, text), HitContent, one, false)
	j.flows[1].Key.Proto = ip.UDP
	j.is("of another protocol", j.ask(j.group(1, 1), Span{}, text), HitNameLength, one, true)
}

// What is unlike the shared template, by more than a number of its own, has one of its
// flow's: of the first byte and about the length.
func TestMatchContentOwn(t *testing.T) {
	j := newJudge(t, ByAll, 99)
	begin := "VALUE "
	shared := j.give(j.group(0, 1), Span{}, begin+strings.Repeat("a", 74))
	text := func(same int, c string) string {
		return begin + strings.Repeat("a", same) + strings.Repeat(c, 74-same)
	}
	const margin = 4 + 80/16
	j.is("nearly the same", j.ask(j.group(1, 1), Span{}, text(74-margin, "b")), HitContent, shared, false)
	j.is("less the same, with much in common", j.ask(j.group(1, 1), Span{}, text(74-margin-1, "b")), HitContent, shared, true)
	j.is("a quarter in common", j.ask(j.group(1, 1), Span{}, text(80/4-6, "b")), HitContent, shared, true)
	if s := j.ask(j.group(1, 1), Span{}, text(80/4-7, "b")); s.base == shared.template && s.Hit == HitContent {
		t.Error("less than a quarter in common, and yet compared")
	}

	mine := j.give(j.group(1, 1), Span{}, text(20, "b"))
	if mine.template == shared.template {
		t.Fatal("the flow has no template of its own")
	}
	j.is("nearer to the flow's", j.ask(j.group(1, 1), Span{}, text(20, "b")[:79]+"c"), HitContent, mine, false)
	j.is("of another flow", j.ask(j.group(2, 1), Span{}, text(20, "b")), HitContent, shared, true)
	// the flow's has to be nearer by more than the margin
	for _, tt := range []struct {
		shared, neither int // bytes, of the 54 by which the two differ, that are as in the shared one, and as in neither
		nearer          int
		want            Span
	}{{22, 1, margin + 2, mine}, {22, 0, margin + 1, mine}, {23, 1, margin, shared}, {23, 0, margin - 1, shared}} {
		body := begin + strings.Repeat("a", 20+tt.shared-tt.neither) + strings.Repeat("c", tt.neither) + strings.Repeat("b", 54-tt.shared)
		if got := 54 - 2*tt.shared + tt.neither; got != tt.nearer {
			t.Fatalf("nearer by %d, not %d", got, tt.nearer)
		}
		j.is(fmt.Sprintf("nearer to the flow's by %d", tt.nearer), j.ask(j.group(1, 1), Span{}, body), HitContent, tt.want, false)
	}
}

// Random bytes of a flow have a template of the flow's, until some begin as others did
// lately: these share one.
func TestMatchNoise(t *testing.T) {
	j := newJudge(t, ByAll, 99)
	noise := func(head string, seed uint32) string {
		b := []byte(head)
		for x := seed*2654435761 + 1; len(b) < 200; x = x*1664525 + 1013904223 {
			b = append(b, byte(x>>24))
		}
		return string(b)
	}
	ask := func(flow int, body string) Span {
		s := j.ask(j.group(flow, 1), Span{}, body)
		if !s.noise {
			t.Errorf("%q... does not look random", body[:10])
		}
		return s
	}
	j.isNew("the first", ask(0, noise("\x81abc", 1)))
	one := j.give(j.group(0, 1), Span{}, noise("\x81abc", 1))
	j.isNew("begins as the first of another flow", ask(1, noise("\x81abc", 2)))
	two := j.give(j.group(1, 1), Span{}, noise("\x81abc", 2))
	if two.template == one.template {
		t.Error("two flows have one template")
	}
	j.is("begins otherwise", ask(0, noise("\x82abc", 3)), Unasked, one, false)
	j.is("similar to the flow's", ask(0, noise("\x81abc", 1)[:100]+noise("", 9)[:100]), HitContent, one, false)
	j.isNew("begins as others did", ask(0, noise("\x81abc", 4)))
	three := j.give(j.group(0, 1), Span{}, noise("\x81abc", 4))
	if three.template == one.template {
		t.Error("what begins as others did has the flow's template")
	}
	j.is("a copy", ask(1, noise("\x81abc", 4)), HitContent, three, false)
	j.is("a copy with a number of its own", ask(1, noise("\x81abc", 4)[:180]+noise("", 8)[:20]), HitContent, three, false)
	j.is("unlike, and begins as others did", ask(1, noise("\x81abc", 5)), Unasked, three, false)
	j.is("similar to the flow's, and begins as others did", ask(1, noise("\x81abc", 2)[:100]+noise("", 7)[:100]), HitContent, two, false)
	// a group of several is compared with what begins alike
	s := j.ask(j.group(2, 2), Span{}, noise("\x81abc", 6))
	j.is("to several flows", s, HitContent, three, false)
}

// As many are expected in a group as got the last message like it.
func TestExpectedOfAGroup(t *testing.T) {
	j := newJudge(t, ByAll, 99)
	span := Span{Advice: Advice{Key: 1, Protocol: 2, Name: 3}}
	one := j.give(j.group(0, 1), span, "12345")
	j.templates.at(one.template).set = make([]setMember, 7)
	j.ackSet = make([]setMember, 5)
	with := func(change func(*Span)) *Group {
		s := span
		change(&s)
		return &Group{Kind: TCP4, Spans: []Span{s, {}}}
	}
	for _, tt := range []struct {
		name string
		g    *Group
		want int
	}{
		{"acknowledgements", &Group{Kind: TCP4}, 5},
		{"a known event", with(func(*Span) {}), 7},
		{"another event", with(func(s *Span) { s.Key++ }), 0},
		{"encrypted", with(func(s *Span) { s.Encrypted = true }), 0},
		{"no protocol", with(func(s *Span) { s.Protocol = parsers.Opaque }), 0},
	} {
		if got := j.Expected(tt.g); got != tt.want {
			t.Errorf("%s: %d expected, not %d", tt.name, got, tt.want)
		}
	}
}
