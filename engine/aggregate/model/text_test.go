package model

import (
	"math"
	"testing"
)

// The tables of SPEC.md 3.6: squash is the logistic function, stretch its
// inverse, and both rise.
func TestSquash(t *testing.T) {
	last := int32(0)
	for x := int32(-3000); x <= 3000; x++ {
		p := squash(x)
		if p < last || p < 1 || p > 4095 {
			t.Fatalf("squash(%d) = %d after %d", x, p, last)
		}
		if want := 4096 / (1 + math.Exp(-float64(x)/256)); math.Abs(float64(p)-want) > 14 {
			t.Errorf("squash(%d) = %d, the function gives %.1f", x, p, want)
		}
		last = p
	}
	for _, tt := range []struct{ x, p int32 }{{-2048, 1}, {-2047, 1}, {-1, 2043}, {0, 2047}, {1, 2051}, {2047, 4094}, {2048, 4095}} {
		if p := squash(tt.x); p != tt.p {
			t.Errorf("squash(%d) = %d, want %d", tt.x, p, tt.p)
		}
	}
}

func TestStretch(t *testing.T) {
	last := int32(math.MinInt32)
	for p := range uint32(4096) {
		x := stretch(p)
		if x < last || x < -2047 || x > 2047 {
			t.Fatalf("stretch(%d) = %d after %d", p, x, last)
		}
		// the first x at which squash reaches p
		if int32(p) <= squash(2047) && (squash(x) < int32(p) || x > -2047 && squash(x-1) >= int32(p)) {
			t.Errorf("stretch(%d) = %d", p, x)
		}
		last = x
	}
}

// Contexts that fall together, all three onto one Bit, are taught in the same
// order at both ends.
func TestTextCollision(t *testing.T) {
	w, r := new(Text), new(Text)
	var c Coder
	c.Write(nil)
	const s = "aaaaabbbbbaaaaab"
	for i := range s {
		w.Byte(&c, 0, [3]uint32{5, 5, 5}, s[i])
	}
	c.Read(c.Finish())
	for i := range s {
		if got := r.Byte(&c, 0, [3]uint32{5, 5, 5}, 0); got != s[i] {
			t.Fatalf("byte %d: read %q, written %q", i, got, s[i])
		}
	}
	if *w != *r {
		t.Error("the two ends learned different things")
	}
}

const textSample = `{"sensor":"boiler-7","temperature":61.25,"pressure":1.013,"unit":"bar","state":"running","time":1717171717123}`

// sample codes the k-th byte of textSample under its place and the two bytes before.
func sample(c *Coder, m *Text, k int) {
	const s = textSample
	m.Byte(c, 1, [3]uint32{uint32(k), uint32(s[max(k-1, 0)]), uint32(s[max(k-2, 0)])}, s[k])
}

// What Text's comment says.
func TestTextCost(t *testing.T) {
	m := new(Text)
	var c Coder
	for _, want := range []float64{5.5, 0.55} {
		c.Write(nil)
		for k := range len(textSample) {
			sample(&c, m, k)
		}
		about(t, "a byte", c.Cost()/float64(len(textSample)), want)
	}
}

// An input that is right more often comes to weigh more, in its own set only, and no
// weight goes past its limit.
func TestTextWeights(t *testing.T) {
	m := new(Text)
	var c Coder
	c.Write(nil)
	for i := range uint32(2000) {
		// the first context tells the byte, the second is always the same, the third always new
		m.Byte(&c, 2, [3]uint32{i % 2, 7, i * 977}, "\x00\xff"[i%2])
	}
	w := m.weights[2]
	if w[0] <= w[1] || w[0] <= w[2] || w[0] <= 0 {
		t.Errorf("weights %v", w)
	}
	for set, w := range m.weights {
		if set != 2 && w != [textInputs]int32{} {
			t.Errorf("set %d: weights %v", set, w)
		}
	}
	for range 30_000 {
		m.Byte(&c, 0, [3]uint32{1, 1, 1}, 'x')
	}
	for _, w := range m.weights[0] {
		if w > textWeightLimit || w < -textWeightLimit {
			t.Errorf("a weight of %d", w)
		}
	}
}

// What is coded beside bytes leaves their Bits alone, and they its.
func TestTextFields(t *testing.T) {
	m := new(Text)
	var c Coder
	c.Write(nil)
	m.Uint(&c, 5, 1000)
	if m.table != [textBits]Bit{} {
		t.Error("a number taught the model of bytes")
	}
	fields := m.fields
	m.Byte(&c, 0, [3]uint32{5, 6, 7}, 'x')
	if m.fields != fields {
		t.Error("a byte taught the model of numbers")
	}
}

func BenchmarkTextByte(b *testing.B) {
	m := new(Text)
	var c Coder
	buf := make([]byte, 0, 1<<10)
	b.SetBytes(1)
	for i := 0; b.Loop(); i++ {
		k := i % len(textSample)
		if k == 0 {
			c.Write(buf[:0])
		}
		sample(&c, m, k)
	}
}
