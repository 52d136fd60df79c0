package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// lessons returns a Bit that was taught some ones and zeros.
func lessons(s string) (m Bit) {
	for _, v := range s {
		m.update(int(v - '0'))
	}
	return m
}

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
		m := lessons(tt.lessons)
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

// What Bit's and Symbol's comments say.
func TestBitCost(t *testing.T) {
	var c Coder
	cost := func(code func()) float64 {
		c.Write(nil)
		code()
		return c.Cost()
	}
	var m Bit
	tree := make([]Bit, 256)
	for i := 1; i <= 1000; i++ {
		got := cost(func() { c.Bit(&m, 1) })
		symbol := cost(func() { c.Symbol(tree, 77) })
		if want, ok := map[int]float64{1: 1, 2: 0.26, 10: 0.038, 100: 0.0036}[i]; ok {
			about(t, fmt.Sprintf("decision %d", i), got, want)
			about(t, fmt.Sprintf("symbol %d", i), symbol, 8*want)
		}
	}
	about(t, "the first other one", cost(func() { c.Bit(&m, 0) }), 13.5)

	m, source, sum := 0, rand.New(rand.NewChaCha8([32]byte{})), 0.0
	const n = 100_000
	for range n {
		v := b2i(source.IntN(100) == 0)
		sum += cost(func() { c.Bit(&m, v) })
	}
	about(t, "one in a hundred", sum/n, 0.081)
}

// A reader's Bit learns what it reads, as the writer's did.
func TestBitLearnsAtBothEnds(t *testing.T) {
	var c Coder
	var w, r Bit
	c.Write(nil)
	for _, v := range "11010001" {
		c.Bit(&w, int(v-'0'))
	}
	c.Read(c.Finish())
	for range "11010001" {
		c.Bit(&r, 0)
	}
	if w != r {
		t.Errorf("written %#x, read %#x", w, r)
	}
}
