package model

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// Steady columns cost next to nothing once learned.
func TestColumnCost(t *testing.T) {
	const n = 100
	for _, tt := range []struct {
		name  string
		value func(i int) int64
		bits  float64 // at most
	}{
		{"as predicted", func(int) int64 { return 0 }, 0.02},
		{"all ahead alike", func(int) int64 { return 7 }, 1},
		{"one exception", func(i int) int64 { return int64(b2i(i == 50)) }, 20},
		{"half ahead", func(i int) int64 { return int64(b2i(i < 50)) * 7 }, 20},
	} {
		var m Column
		var c Coder
		res := make([]int64, n)
		var cost float64
		for range 200 {
			for i := range res {
				res[i] = tt.value(i)
			}
			c.Write(nil)
			m.Code(&c, res)
			cost = c.Cost()
		}
		if cost > tt.bits {
			t.Errorf("%s: %.3f bits, want at most %g", tt.name, cost, tt.bits)
		}
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
