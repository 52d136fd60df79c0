package model

import (
	"slices"
	"testing"
)

// What Members' comment says.
func TestMembersCost(t *testing.T) {
	var m Members
	var c Coder
	present := make([]bool, 100)
	for i := range present {
		present[i] = true
	}
	cost := func(n int) (bits float64) {
		for range n {
			c.Write(nil)
			m.Code(&c, present)
			bits = c.Cost()
		}
		return bits
	}
	about(t, "all present", cost(200), 0.0018)
	present[30], present[31] = false, false
	about(t, "the first gap", cost(1), 26)
	about(t, "the gap again", cost(200), 8.3)
}

// Whether all are present is asked by whether they were last time, and each by the
// three before it.
func TestMembersQuestions(t *testing.T) {
	var m, want Members
	var c Coder
	c.Write(nil)
	m.Code(&c, []bool{true, true, true, false, true})
	want.all[0] = lessons("0")
	want.bit[0], want.bit[1], want.bit[3], want.bit[7], want.bit[6] = lessons("1"), lessons("1"), lessons("1"), lessons("0"), lessons("1")
	if m != want {
		t.Errorf("not all: taught %v, want %v", m, want)
	}
	m.Code(&c, []bool{true})
	want.all[0], want.last = lessons("01"), 1
	m.Code(&c, []bool{})
	want.all[1] = lessons("1")
	if m != want {
		t.Errorf("all, and all of none: taught %v, want %v", m, want)
	}
}

func TestMembersEdges(t *testing.T) {
	for _, want := range [][]bool{{}, {true}, {false}, {false, false}, {true, false}, {false, true, true, true}} {
		var w, r Members
		var c Coder
		c.Write(nil)
		w.Code(&c, slices.Clone(want))
		c.Read(c.Finish())
		got := make([]bool, len(want))
		r.Code(&c, got)
		if !slices.Equal(got, want) {
			t.Errorf("read %v, written %v", got, want)
		}
		if w != r {
			t.Errorf("%v: the two ends learned different things", want)
		}
	}
}
