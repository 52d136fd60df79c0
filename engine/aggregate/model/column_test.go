package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// What Column's comment says.
func TestColumnCost(t *testing.T) {
	var c Coder
	source := rand.New(rand.NewChaCha8([32]byte{1}))
	last := func(n int, column func(res []int64)) float64 {
		var m Column
		sum := 0.0
		for group := range 200 {
			res := make([]int64, n)
			column(res)
			c.Write(nil)
			m.Code(&c, res)
			if group >= 190 {
				sum += c.Cost()
			}
		}
		return sum / 10
	}
	zero := func([]int64) {}
	all := func(res []int64) {
		for i := range res {
			res[i] = 1
		}
	}
	about(t, "all as predicted", last(100, zero), 0.0018)
	about(t, "all off by 1", last(100, all), 0.0073)
	about(t, "one of them off by 1", last(100, func(res []int64) { res[source.IntN(100)] = 1 }), 8.3)
	about(t, "the first half off by 7", last(100, func(res []int64) {
		for i := range res[:50] {
			res[i] = 7
		}
	}), 7.3)
	about(t, "each off by something else", last(100, func(res []int64) {
		for i := range res {
			res[i] = source.Int64N(1024)
		}
	}), 1002)
	about(t, "the only one off by 1", last(1, all), 0.0055)

	var m Column
	res := make([]int64, 100)
	for range 200 {
		c.Write(nil)
		m.Code(&c, res)
	}
	c.Write(nil)
	res[50] = 1
	m.Code(&c, res)
	about(t, "the first one off by 1", c.Cost(), 29)
}

// What a column asks, in turn: each question is taught once by each column that asks it
// once, and no other is.
func TestColumnQuestions(t *testing.T) {
	for _, tt := range []struct {
		rule string
		res  []int64
		want Column
	}{
		{"none without members", nil, Column{}},
		{"as predicted is one question", []int64{0, 0, 0}, Column{zero: [2]Bit{lessons("1"), 0}}},
		{"one member is not asked whether it is like others", []int64{1},
			Column{zero: [2]Bit{lessons("0"), 0}, last: 1}},
		{"two that are alike are one thing", []int64{1, 1},
			Column{zero: [2]Bit{lessons("0"), 0}, same: [2]Bit{lessons("1"), 0}, last: 1}},
		{"three another", []int64{1, 1, 1},
			Column{zero: [2]Bit{lessons("0"), 0}, same: [2]Bit{0, lessons("1")}, last: 1}},
		{"hits by the three before", []int64{0, 0, 0, 1},
			Column{zero: [2]Bit{lessons("0"), 0}, same: [2]Bit{0, lessons("0")}, last: 1,
				hit: [8]Bit{0: lessons("1"), 1: lessons("1"), 3: lessons("1"), 7: lessons("0")}}},
		{"again, behind one that was not as predicted", []int64{1, 1, 0},
			Column{zero: [2]Bit{lessons("0"), 0}, same: [2]Bit{0, lessons("0")}, last: 1,
				hit: [8]Bit{0: lessons("001")}, again: [2]Bit{lessons("1"), 0}}},
		{"again, behind one that was", []int64{1, 0, 1},
			Column{zero: [2]Bit{lessons("0"), 0}, same: [2]Bit{0, lessons("0")}, last: 1,
				hit: [8]Bit{0: lessons("01"), 1: lessons("0")}, again: [2]Bit{0, lessons("1")}}},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			var m Column
			var c Coder
			c.Write(nil)
			m.Code(&c, slices.Clone(tt.res))
			m.value = Int{} // has a test of its own
			if m != tt.want {
				t.Errorf("%d: zero %v, same %v, hit %v, again %v, last %v", tt.res, m.zero, m.same, m.hit, m.again, m.last)
			}
		})
	}
}

func TestColumnEdges(t *testing.T) {
	for _, res := range [][]int64{
		{0}, {1}, {-1}, {math.MinInt64}, {math.MaxInt64},
		{0, 0}, {5, 5}, {5, 6}, {0, 5}, {5, 0},
		{3, 0, 3, 0, 4, 4, math.MinInt64, math.MinInt64, 0},
	} {
		t.Run(fmt.Sprint(res), func(t *testing.T) {
			var w, r Column
			var c Coder
			c.Write(nil)
			want := slices.Clone(res)
			w.Code(&c, res)
			if !slices.Equal(res, want) {
				t.Fatalf("writing changed %d to %d", want, res)
			}
			c.Read(c.Finish())
			got := make([]int64, len(res))
			for i := range got {
				got[i] = 99 // must not matter
			}
			r.Code(&c, got)
			if !slices.Equal(got, want) {
				t.Errorf("read %d", got)
			}
			if w != r {
				t.Error("the two ends learned different things")
			}
		})
	}
}
