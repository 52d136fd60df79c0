package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestInt(t *testing.T) {
	for _, v := range []int64{0, 1, -1, 2, -2, 3, 15, 16, -17, 1 << 20, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64} {
		var c Coder
		var w, r Int
		c.Write(nil)
		w.Int(&c, v)
		w.Uint(&c, uint64(v))
		c.Read(c.Finish())
		if got := r.Int(&c, 0); got != v {
			t.Errorf("signed: read %d, written %d", got, v)
		}
		if got := r.Uint(&c, 0); got != uint64(v) {
			t.Errorf("unsigned: read %d, written %d", got, uint64(v))
		}
		if w != r {
			t.Errorf("%d: the two ends learned different things", v)
		}
	}
}

// What Int's comment says.
func TestIntCost(t *testing.T) {
	var c Coder
	cost := func(m *Int, v uint64) float64 {
		c.Write(nil)
		m.Uint(&c, v)
		return c.Cost()
	}
	for _, tt := range []struct {
		v                uint64
		first, hundredth float64
	}{{0, 1, 0.0036}, {7, 6, 0.022}, {1000, 20, 6.05}} {
		var m Int
		about(t, fmt.Sprintf("%d, the first time", tt.v), cost(&m, tt.v), tt.first)
		for range 98 {
			cost(&m, tt.v)
		}
		about(t, fmt.Sprintf("%d, the hundredth time", tt.v), cost(&m, tt.v), tt.hundredth)
	}
	m, source, sum := Int{}, rand.New(rand.NewChaCha8([32]byte{})), 0.0
	const n = 20_000
	for range n {
		sum += cost(&m, source.Uint64N(256))
	}
	if mean := sum / n; math.Abs(mean-8.04) > 0.02 {
		t.Errorf("numbers below 256 cost %.3f bits", mean)
	}
}

// The sign of 1 is learned apart from that of larger numbers, and 0 has none.
func TestIntSign(t *testing.T) {
	var c Coder
	for _, tt := range []struct {
		v    int64
		sign [2]Bit
	}{
		{0, [2]Bit{}},
		{1, [2]Bit{lessons("0"), 0}}, {-1, [2]Bit{lessons("1"), 0}},
		{2, [2]Bit{0, lessons("0")}}, {-9, [2]Bit{0, lessons("1")}},
	} {
		var m Int
		c.Write(nil)
		if m.Int(&c, tt.v); m.sign != tt.sign {
			t.Errorf("%d: %v, want %v", tt.v, m.sign, tt.sign)
		}
	}
}
