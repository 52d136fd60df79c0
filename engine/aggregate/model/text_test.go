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

func BenchmarkTextByte(b *testing.B) {
	const s = `{"sensor":"boiler-7","temperature":61.25,"pressure":1.013,"unit":"bar","state":"running","time":1717171717123}`
	m := new(Text)
	var c Coder
	buf := make([]byte, 0, 1<<10)
	b.SetBytes(1)
	for i := 0; b.Loop(); i++ {
		k := i % len(s)
		if k == 0 {
			c.Write(buf[:0])
		}
		m.Byte(&c, 1, [3]uint32{uint32(k), uint32(s[max(k-1, 0)]), uint32(s[max(k-2, 0)])}, s[k])
	}
}
