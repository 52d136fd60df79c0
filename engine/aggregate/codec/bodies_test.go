package codec

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sheaf/engine/aggregate/model"
)

// textOf and randomOf make bodies of n bytes, of words and of random bytes.
func textOf(n int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + random.IntN(26))
	}
	return b
}

func randomOf(n int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// A body is a copy where its template has it, else an edit or literals.
func TestChooseBody(t *testing.T) {
	c := newCrowd(t, 1)
	g := c.group(0)
	n := c.template
	for _, b := range []string{"first", "second"} {
		c.templates.remember(n, []byte(b), 0, 1000)
	}
	for body, depth := range map[string]int{"second": 0, "first": 1, "third": -1} {
		s := Span{template: n, known: true, Body: []byte(body), literal: true}
		c.chooseBody(g, &s)
		if s.depth != depth || s.literal {
			t.Errorf("%s: body %d, literal %t", body, s.depth, s.literal)
		}
	}
	c.similarity = ByNothing
	s := Span{template: n, known: true, Body: []byte("third")}
	if c.chooseBody(g, &s); s.depth != -1 || !s.literal {
		t.Errorf("compared with nothing: body %d, literal %t", s.depth, s.literal)
	}
	s.Body = []byte("first")
	if c.chooseBody(g, &s); s.depth != 1 || s.literal {
		t.Errorf("compared with nothing, a copy: body %d, literal %t", s.depth, s.literal)
	}
}

// Which bodies are better left to the literals than written as edits.
func TestChooseLiteral(t *testing.T) {
	const large = 4 * model.MaxLiterals
	about := func(base []byte, same int) []byte { // the first so many bytes are the same
		return append(slices.Clone(base[:same]), textOf(len(base)-same, 99)...)
	}
	mqtt := Advice{Protocol: 2}
	text, long := textOf(1000, 1), textOf(large+1, 2)
	for _, tt := range []struct {
		name   string
		base   []byte
		body   []byte
		advice Advice
		change func(c *crowd)
		want   bool
	}{
		{"short, of no base", nil, textOf(model.MaxLiterals, 3), mqtt, nil, false},
		{"longer, of no base", nil, textOf(model.MaxLiterals+1, 3), mqtt, nil, true},
		{"short, unlike its base", text, textOf(128, 3), mqtt, nil, false},
		{"short and opaque, unlike its base", text, textOf(128, 3), Advice{}, nil, false},
		{"longer and opaque, unlike its base", text, textOf(129, 3), Advice{}, nil, true},
		{"longer and opaque, like its base", text, about(text, 900), Advice{}, nil, false},
		{"compared with nothing", nil, textOf(10, 3), mqtt, func(c *crowd) { c.similarity = ByNothing }, true},
		{"encrypted", nil, textOf(10, 3), Advice{Protocol: 2, Encrypted: true}, nil, true},
		{"unlike its base", text, textOf(1000, 3), mqtt, nil, true},
		{"a quarter new", text, about(text, 760), mqtt, nil, false},
		{"large and unlike", long, textOf(large+1, 3), mqtt, nil, true},
		{"large and like", long, about(long, large-200), mqtt, nil, false},
		{"large and like, but much of it new", long, about(long, large-1200), mqtt, nil, true},
		{"random, of no base", nil, randomOf(model.MaxLiterals, 3), Advice{Protocol: 2, noise: true}, nil, false},
		{"random and long", randomOf(600, 4), randomOf(600, 3), Advice{Protocol: 2, noise: true}, nil, true},
		{"random and long, behind a head", randomOf(800, 4), randomOf(800, 3), Advice{Protocol: 2, noise: true, Split: 100}, nil, true},
		{"random and long, behind a longer head", randomOf(800, 4), randomOf(800, 3), Advice{Protocol: 2, noise: true, Split: 101}, nil, false},
		{"after much effort", nil, textOf(100, 3), mqtt, func(c *crowd) { c.effort = maxEffort }, false},
		{"after too much effort, of no base", nil, textOf(100, 3), mqtt, func(c *crowd) { c.effort = maxEffort + 1 }, true},
		{"after too much effort, like its base", text, about(text, 990), mqtt, func(c *crowd) { c.effort = maxEffort + 1 }, true},
		{"after three futile edits", nil, textOf(10, 3), mqtt, func(c *crowd) { c.flows[0].futile = futileAfter }, true},
		{"after two futile edits", nil, textOf(10, 3), mqtt, func(c *crowd) { c.flows[0].futile = futileAfter - 1 }, false},
		{"after three futile edits, like its base", text, about(text, 990), mqtt, func(c *crowd) { c.flows[0].futile = futileAfter }, false},
	} {
		c := newCrowd(t, 1)
		g := c.group(0)
		n := c.template
		if tt.base != nil {
			c.templates.remember(n, tt.base, 0, 1<<20)
		}
		if tt.change != nil {
			tt.change(c)
		}
		s := Span{template: n, known: true, Body: tt.body, Advice: tt.advice}
		if got := c.chooseLiteral(g, &s); got != tt.want {
			t.Errorf("%s: literal %t", tt.name, got)
		} else if !got && !c.plan.Made() {
			t.Errorf("%s: an edit without a plan", tt.name)
		}
	}
}

// The literal bytes of edits count as the frame's effort, those of literals do not.
func TestEffort(t *testing.T) {
	c := newCrowd(t, 1)
	g := c.group(0)
	n := c.template
	body := func(b []byte) {
		c.chooseLiteral(g, &Span{template: n, known: true, Body: b, Advice: Advice{Protocol: 2}})
	}
	body(textOf(100, 1))
	if c.effort != 100 {
		t.Errorf("the effort is %d after 100 bytes", c.effort)
	}
	body(textOf(1000, 1))
	if c.effort != 100 {
		t.Errorf("the effort is %d after literals", c.effort)
	}
	base := textOf(1000, 2)
	c.templates.remember(n, base, 0, 1<<20)
	changed := append(slices.Clone(base[:900]), []byte(strings.Repeat("0", 100))...)
	var plan model.Plan
	want := 100 + plan.Make(base, changed, len(changed))
	if body(changed); c.effort != want || want < 200 {
		t.Errorf("the effort is %d after 100 bytes and an edit, expected %d", c.effort, want)
	}
}

// After futileAfter bodies in a row that were longer as edits, futileFor are left to the
// literals; then one more edit is tried, and if that is futile, the same again.
func TestFutileEdits(t *testing.T) {
	if futileAfter != 3 || futileFor != 15 {
		t.Errorf("edits are futile after %d, for %d", futileAfter, futileFor)
	}
	c := newCrowd(t, 2)
	g := c.group(0)
	n := c.template
	trial := func(g *Group, took int) (edit bool) {
		s := Span{template: n, known: true, Body: textOf(20, 1), depth: -1}
		s.literal = c.chooseLiteral(g, &s)
		c.took = took
		c.noteBody(g, &s)
		return !s.literal
	}
	var edits []int
	for i := range 40 {
		if trial(g, 21) {
			edits = append(edits, i)
		}
	}
	if want := []int{0, 1, 2, 18, 34}; !slices.Equal(edits, want) {
		t.Errorf("edits are tried at %v, expected %v", edits, want)
	}
	for !trial(g, 20) {
	}
	if got := g.Members[0].Flow.futile; got != 0 {
		t.Errorf("after an edit no longer than its body %d are futile", got)
	}
	if edit := trial(c.group(0, 1), 21); !edit || c.flows[0].futile != 0 {
		t.Errorf("a group of several: edit %t, %d futile", edit, c.flows[0].futile)
	}
}

// What is noted of a body: the cost of its edit before the split, and nothing of copies and
// literals.
func TestNoteBody(t *testing.T) {
	c := newCrowd(t, 1)
	g := c.group(0)
	c.topic = 7
	c.took = 100
	c.noteBody(g, &Span{depth: 0})
	c.noteBody(g, &Span{depth: -1, literal: true})
	if g.Cost.Topics != 0 || c.flows[0].futile != 0 {
		t.Errorf("copies and literals cost %v, %d futile", g.Cost.Topics, c.flows[0].futile)
	}
	c.noteBody(g, &Span{depth: -1})
	c.noteBody(g, &Span{depth: -1})
	if g.Cost.Topics != 14 || c.flows[0].futile != 2 {
		t.Errorf("two edits cost %v, %d futile", g.Cost.Topics, c.flows[0].futile)
	}
}
