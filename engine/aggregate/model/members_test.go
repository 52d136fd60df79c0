package model

import (
	"slices"
	"testing"
)

func TestMembersCost(t *testing.T) {
	var m Members
	var c Coder
	present := make([]bool, 100)
	for i := range present {
		present[i] = true
	}
	cost := func() float64 {
		c.Write(nil)
		m.Code(&c, present)
		return c.Cost()
	}
	all := 0.0
	for range 200 {
		all = cost()
	}
	if all > 0.02 {
		t.Errorf("all present cost %.3f bits", all)
	}
	present[30], present[31] = false, false
	gap := 0.0
	for range 200 {
		gap = cost()
	}
	if gap > 20 {
		t.Errorf("one gap costs %.1f bits", gap)
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
