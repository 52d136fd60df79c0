package codec

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// used returns the bodies of the templates in use, the newest of each, in their order
// of use from both ends.
func (t *templates) used(tt testing.TB) (bodies string) {
	tt.Helper()
	var forth, back []templateNumber
	for n := t.oldest; !n.none(); n = t.at(n).newer {
		forth = append(forth, n)
		bodies += string(t.at(n).body(0))
	}
	for n := t.newest; !n.none(); n = t.at(n).older {
		back = append(back, n)
	}
	if slices.Reverse(back); !slices.Equal(forth, back) {
		tt.Errorf("from the oldest %v, from the newest %v", forth, back)
	}
	return bodies
}

func (t *templates) put(body string, max, bytes int) templateNumber {
	n := t.take(max)
	t.remember(n, []byte(body), 0, bytes)
	return n
}

// A template remembers the templateDepth newest bodies, and counts their bytes only.
func TestTemplateRemembersNewestFirst(t *testing.T) {
	var s templates
	n := s.take(4)
	for k := range byte(6) {
		s.remember(n, []byte{k, k}, uint32(k)*10, 100)
		if got, want := s.at(n).count, min(int(k)+1, templateDepth); got != want {
			t.Errorf("%d bodies after %d", got, k+1)
		}
	}
	e := s.at(n)
	for k := range templateDepth {
		if got := e.body(k)[0]; got != byte(5-k) {
			t.Errorf("body %d is %d", k, got)
		}
	}
	if s.bytes != 2*templateDepth {
		t.Errorf("%d bytes of bodies", s.bytes)
	}
	if e.clock != 50 {
		t.Errorf("the newest body is of %d", e.clock)
	}
	if templateDepth != 4 {
		t.Errorf("a template has %d bodies, SPEC.md section 4.3 says 4", templateDepth)
	}
}

// The body that is found is the newest of those that are the same; only bodies that
// are there are looked at.
func TestTemplateFindsTheNewest(t *testing.T) {
	var s templates
	n := s.take(1)
	find := func(b string) int { return s.at(n).find([]byte(b)) }
	if got := find(""); got != -1 {
		t.Errorf("an empty body is number %d of none", got)
	}
	for _, b := range []string{"a", "b", "a", "c"} {
		s.remember(n, []byte(b), 0, 100)
	}
	for body, want := range map[string]int{"c": 0, "a": 1, "b": 2, "x": -1, "": -1} {
		if got := find(body); got != want {
			t.Errorf("%q is body %d, expected %d", body, got, want)
		}
	}
	s.remember(n, []byte("d"), 0, 100)
	if got := find("a"); got != 2 {
		t.Errorf("after one more, a is body %d", got)
	}
	s.remember(n, []byte("e"), 0, 100)
	s.remember(n, []byte("f"), 0, 100)
	if got := find("a"); got != -1 {
		t.Errorf("a is body %d, though four newer ones came", got)
	}
}

// A body is copied: what its bytes become later is not remembered.
func TestTemplateCopiesBodies(t *testing.T) {
	var s templates
	n := s.take(1)
	b := []byte("abc")
	s.remember(n, b, 0, 100)
	b[0] = 'x'
	if got := string(s.at(n).body(0)); got != "abc" {
		t.Errorf("remembered %q", got)
	}
}

// At the limit in number nothing gives way, past it the template that was used
// longest ago.
func TestTemplatesGiveWayByNumber(t *testing.T) {
	var s templates
	a := s.put("a", 3, 100)
	s.put("b", 3, 100)
	s.put("c", 3, 100)
	if got := s.used(t); got != "abc" {
		t.Errorf("at the limit of 3 there are %q", got)
	}
	s.touch(a)
	if got := s.used(t); got != "bca" {
		t.Errorf("after a was used the order is %q", got)
	}
	d := s.put("d", 3, 100)
	if got := s.used(t); got != "cad" || len(s.table) != 3 {
		t.Errorf("past the limit of 3 there are %q in a table of %d", got, len(s.table))
	}
	if d != templateAt(1) {
		t.Errorf("the new one has the place %d, not that of b", d.place())
	}
	if s.touch(d); s.used(t) != "cad" {
		t.Errorf("the newest used again changed the order to %q", s.used(t))
	}
}

// Up to the limit in bytes all bodies stay. Past it templates are dropped, oldest
// first and as few as will do, but never the one that is written.
func TestTemplatesGiveWayByBytes(t *testing.T) {
	var s templates
	s.put("aaa", 9, 10)
	s.put("bbb", 9, 10)
	n := s.put("cccc", 9, 10)
	if got := s.used(t); got != "aaabbbcccc" || s.bytes != 10 {
		t.Errorf("at 10 bytes there are %q, %d bytes", got, s.bytes)
	}
	s.remember(n, []byte("d"), 0, 10)
	if got := s.used(t); got != "bbbd" || s.bytes != 8 {
		t.Errorf("past 10 bytes there are %q, %d bytes", got, s.bytes)
	}
	s.remember(n, make([]byte, 30), 0, 10)
	if s.bytes != 35 || s.oldest != n || s.newest != n {
		t.Errorf("a body past the limit: %d bytes, oldest %v, newest %v", s.bytes, s.oldest, s.newest)
	}
	if len(s.free) != 2 {
		t.Errorf("%d templates are free", len(s.free))
	}
}

// What is dropped is forgotten whole, and its place is taken by the next, the last
// that became free first.
func TestDroppedTemplatesAreForgotten(t *testing.T) {
	var s templates
	a, b := s.put("a", 9, 100), s.put("bb", 9, 100)
	c := s.put("c", 9, 100)
	*s.at(b) = template{
		bodies: s.at(b).bodies, count: 1, newest: s.at(b).newest, exact: true,
		holes: []Hole{{at: 1}}, set: []setMember{{cid: cidAt(3)}}, next: a, follow: c, clock: 7,
		older: s.at(b).older, newer: s.at(b).newer, used: true,
	}
	s.drop(b)
	s.drop(a)
	if s.bytes != 1 || s.used(t) != "c" {
		t.Errorf("%d bytes are left of %q", s.bytes, s.used(t))
	}
	for _, n := range []templateNumber{a, b} {
		if s.holds(n) {
			t.Errorf("the table holds %v", n)
		}
	}
	if got := s.take(9); got != a {
		t.Errorf("took %v, expected %v", got, a)
	}
	if got := s.take(9); got != b {
		t.Errorf("took %v, expected %v", got, b)
	}
	e := s.at(b)
	if e.count != 0 || e.exact || len(e.holes) != 0 || len(e.set) != 0 || !e.next.none() || !e.follow.none() || e.clock != 0 {
		t.Errorf("a new template has what was of another: %+v", *e)
	}
	if !s.holds(a) || !s.holds(b) || s.holds(templateAt(3)) || s.holds(templateNumber{}) {
		t.Error("the table holds others than those taken")
	}
}

// Whatever is taken, used and remembered, the table is what a list in order of use
// would be.
func TestTemplatesAreAList(t *testing.T) {
	const places, bytes = 4, 40
	rapid.Check(t, func(rt *rapid.T) {
		var s templates
		type entry struct {
			n      templateNumber
			bodies []string
		}
		var list []*entry // oldest first
		total := func() (n int) {
			for _, e := range list {
				for _, b := range e.bodies {
					n += len(b)
				}
			}
			return n
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			at := rapid.IntRange(0, places).Draw(rt, "template")
			if at >= len(list) {
				if len(list) == places {
					list = list[1:]
				}
				list = append(list, &entry{n: s.take(places)})
			} else {
				e := list[at]
				list = append(slices.Delete(list, at, at+1), e)
				s.touch(e.n)
			}
			e := list[len(list)-1]
			body := strings.Repeat("b", rapid.IntRange(0, 15).Draw(rt, "length"))
			e.bodies = append(e.bodies, body)
			e.bodies = e.bodies[max(0, len(e.bodies)-templateDepth):]
			s.remember(e.n, []byte(body), 0, bytes)
			for total() > bytes && len(list) > 1 {
				list = list[1:]
			}
			if s.bytes != total() {
				rt.Fatalf("%d bytes, expected %d", s.bytes, total())
			}
			n := s.oldest
			for _, e := range list {
				if n != e.n || !s.holds(n) || len(e.bodies) != s.at(n).count {
					rt.Fatalf("template %v of %d bodies, expected %v of %d", n, s.at(n).count, e.n, len(e.bodies))
				}
				n = s.at(n).newer
			}
			if !n.none() || s.newest != list[len(list)-1].n {
				rt.Fatalf("the newest is %v, behind it %v", s.newest, n)
			}
		}
	})
}
