package model

import (
	"math"
	"testing"
)

// The values of SPEC.md 3.2.
func TestBitLearns(t *testing.T) {
	for _, tt := range []struct {
		lessons string
		p       uint32
	}{
		{"", 1 << 21},
		{"1", 3495231},
		{"0", 699072},
		{"11", 3774855},
		{"10", 2097160},
		{"1101", 3029221},
	} {
		var m Bit
		for _, v := range tt.lessons {
			m.update(int(v - '0'))
		}
		if m.p() != tt.p {
			t.Errorf("after %q: probability %d, want %d", tt.lessons, m.p(), tt.p)
		}
		if n := uint32(m) & (1<<countBits - 1); n != uint32(len(tt.lessons)) {
			t.Errorf("after %q: taught %d times", tt.lessons, n)
		}
	}
}

// However often it was taught, a Bit stays off the ends, where a surprise would
// cost without bound.
func TestBitEnds(t *testing.T) {
	for v := range 2 {
		var m Bit
		for range 100_000 {
			m.update(v)
		}
		p := float64(m.p()) / (1 << probBits)
		if v == 0 {
			p = 1 - p
		}
		if cost := -math.Log2(1 - p); cost < 10 || cost > 16 {
			t.Errorf("after only %d: a surprise costs %.1f bits", v, cost)
		}
		if n := uint32(m) & (1<<countBits - 1); n != countLimit {
			t.Errorf("taught %d times", n)
		}
	}
}

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

func TestSymbol(t *testing.T) {
	for n := 2; n <= 256; n *= 2 {
		w, r := make([]Bit, n), make([]Bit, n)
		var c Coder
		c.Write(nil)
		for v := range n {
			c.Symbol(w, uint32(v))
		}
		c.Read(c.Finish())
		for v := range n {
			if got := c.Symbol(r, 0); got != uint32(v) {
				t.Fatalf("%d nodes: read %d, written %d", n, got, v)
			}
		}
	}
}
