package model

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is written is read, by any mix of codecs in one control field, and
// over several control fields that share their models.
func checkScripts(t *rapid.T) {
	writing, reading := new(taught).reset(), new(taught).reset()
	for range rapid.IntRange(1, 4).Draw(t, "fields") {
		ops := rapid.SliceOfN(genOp, 0, 30).Draw(t, "ops")
		ops = append(ops, op{verb: "bit", model: 0, v: 0}) // as all control fields end
		control, literals := writeScript(ops, writing)
		if n := readScript(t, ops, control, literals, reading); n > 8 {
			t.Fatalf("%d bytes read past the end", n)
		}
	}
}

func TestScripts(t *testing.T) { rapid.Check(t, checkScripts) }

func FuzzCoder(f *testing.F) { f.Fuzz(rapid.MakeFuzz(checkScripts)) }

// Reading what nobody wrote ends, and gives values of the right shape.
func TestReadAnything(t *testing.T) {
	m := new(taught)
	rapid.Check(t, func(t *rapid.T) {
		m.reset()
		var c Coder
		c.Read(rapid.SliceOf(rapid.Byte()).Draw(t, "control"))
		for _, o := range rapid.SliceOf(genOp).Draw(t, "ops") {
			limit := rapid.IntRange(0, 300).Draw(t, "limit")
			got, err := o.blank().run(&c, m, limit)
			switch {
			case err != nil:
				if o.verb != "body" || err != ErrBody {
					t.Fatalf("%s: %v", o, err)
				}
			case len(got.body) > limit:
				t.Fatalf("%d bytes of body, limit %d", len(got.body), limit)
			case o.verb == "symbol" && got.v >= o.model,
				o.verb == "index" && got.v >= 2*o.model,
				o.verb == "bit" && got.v > 1:
				t.Fatalf("read %s", got)
			}
		}
	})
}

// No control field that is shorter reads the same (SPEC.md 3.1): the readings
// of one length that are the same are neighbours, so the longest one below and
// the one after it tell for all.
func TestFinishMinimal(t *testing.T) {
	m := new(taught)
	// Columns, member lists and bodies can be written in more ways than one.
	onlyWay := genOp.Filter(func(o op) bool { return o.verb != "column" && o.verb != "members" && o.verb != "body" })
	rapid.Check(t, func(t *rapid.T) {
		ops := append(rapid.SliceOfN(onlyWay, 0, 6).Draw(t, "ops"), op{verb: "bit", model: 0, v: 0})
		control, _ := writeScript(ops, m.reset())
		for n := range control {
			short := bytes.Clone(control[:n])
			if same(ops, short, m.reset()) {
				t.Fatalf("%x reads as %x", short, control)
			}
			i := n - 1
			for ; i >= 0; i-- {
				if short[i]++; short[i] != 0 {
					break
				}
			}
			if i >= 0 && same(ops, short, m.reset()) {
				t.Fatalf("%x reads as %x", short, control)
			}
		}
	})
}

// A control field that goes on, or ends early, is not complete even where it reads the
// same: there is one way to write something.
func TestComplete(t *testing.T) {
	read := func(control []byte) (v uint64, complete bool) {
		var c Coder
		c.Read(control)
		v = c.Bits(0, 20)
		return v, c.Complete()
	}
	for _, want := range []uint64{0, 1, 0x12345, 0xffff0, 0xfffff} {
		var c Coder
		c.Write(nil)
		c.Bits(want, 20)
		control := c.Finish()
		if v, complete := read(control); v != want || !complete {
			t.Errorf("%x: %#x, complete %v", control, v, complete)
		}
		for _, more := range []string{"\x00", "\x01", "\x00\x00\x00\x00\x00\x00\x00\x00\x00"} {
			long := append(bytes.Clone(control), more...)
			if v, complete := read(long); v == want && complete {
				t.Errorf("%x is complete, as %x is", long, control)
			}
		}
		if n := len(control); n > 0 {
			others := [][]byte{control[:n-1]}
			for by := range byte(255) {
				others = append(others, append(bytes.Clone(control[:n-1]), control[n-1]+1+by))
			}
			for _, other := range others {
				if v, complete := read(other); v == want && complete {
					t.Errorf("%x is complete, as %x is", other, control)
				}
			}
		}
	}
}

// The output follows what was there, which stays.
func TestWriteAppends(t *testing.T) {
	for _, before := range []string{"", "ab", "\x00\x00"} {
		var c Coder
		c.Write([]byte(before))
		c.Bits(0x123456, 24)
		if c.Len() > 3 {
			t.Errorf("after %q: length %d before the end", before, c.Len())
		}
		out := c.Finish()
		if !bytes.HasPrefix(out, []byte(before)) {
			t.Fatalf("%q became %q", before, out)
		}
		c.Read(out[len(before):])
		if got := c.Bits(0, 24); got != 0x123456 {
			t.Errorf("after %q: read %#x", before, got)
		}
	}
}

func TestNothingCostsNothing(t *testing.T) {
	var c Coder
	c.Write(nil)
	if out := c.Finish(); len(out) != 0 {
		t.Errorf("no decisions took % x", out)
	}
}

// What is learned gets cheap, and Cost says so.
func TestCost(t *testing.T) {
	var c Coder
	var m Bit
	c.Write(nil)
	if cost := c.Cost(); math.Abs(cost) > 1e-9 {
		t.Errorf("cost of nothing: %g bits", cost)
	}
	for range 1000 {
		c.Bit(&m, 1)
	}
	if cost := c.Cost(); cost < 1 || cost > 12 {
		t.Errorf("1000 equal decisions cost %.2f bits", cost)
	}
	before := c.Cost()
	c.Bits(0x55, 8)
	if cost := c.Cost() - before; math.Abs(cost-8) > 0.01 {
		t.Errorf("8 bits without a model cost %.3f", cost)
	}
	n := len(c.Finish())
	if n > 3 {
		t.Errorf("20 bits took %d bytes", n)
	}
}

// Literals are handed out in turn, and no more of them than there are.
func TestLiteral(t *testing.T) {
	var c Coder
	c.Write(nil)
	c.Literals = []byte("x")
	if b, ok := c.Literal([]byte("abcd"), 3); !ok || string(b) != "abc" || string(c.Literals) != "xabc" {
		t.Errorf("writing: %q, %v; %q", b, ok, c.Literals)
	}
	c.Read(c.Finish())
	c.Literals = []byte("abc")
	for _, tt := range []struct {
		n    int
		want string
		ok   bool
	}{{-1, "", false}, {-1 << 63, "", false}, {4, "", false}, {2, "ab", true}, {2, "", false}, {0, "", true}, {1, "c", true}, {1, "", false}} {
		if b, ok := c.Literal(nil, tt.n); string(b) != tt.want || ok != tt.ok {
			t.Errorf("reading %d: %q, %v; want %q, %v", tt.n, b, ok, tt.want, tt.ok)
		}
	}
}

func TestIndexOfOne(t *testing.T) {
	var c Coder
	c.Write(nil)
	for _, n := range []uint32{0, 1} {
		if v := c.Index(7, n); v != 0 {
			t.Errorf("index below %d is %d", n, v)
		}
	}
	if out := c.Finish(); len(out) != 0 {
		t.Errorf("took % x", out)
	}
}

func TestCoderAllocates(t *testing.T) {
	m := new(taught).reset()
	column := []int64{0, 0, 5, 0, -3}
	present := []bool{true, false, true, true}
	buf := make([]byte, 0, 256)
	var c Coder
	pass := func() {
		c.Bit(&m.bits[0], 1)
		c.Bits(77, 9)
		c.Symbol(m.trees[256], 16)
		m.ints[0].Int(&c, -900)
		m.columns[0].Code(&c, column)
		m.members[0].Code(&c, present)
		m.text.Byte(&c, 1, [3]uint32{1, 2, 3}, 'x')
		m.text.Uint(&c, 4, 5000)
	}
	if n := testing.AllocsPerRun(200, func() {
		c.Write(buf[:0])
		pass()
		buf = c.Finish()
	}); n != 0 {
		t.Errorf("writing allocates %g times", n)
	}
	control := bytes.Clone(buf)
	if n := testing.AllocsPerRun(200, func() {
		c.Read(control)
		pass()
	}); n != 0 {
		t.Errorf("reading allocates %g times", n)
	}
}

func BenchmarkBit(b *testing.B) {
	values := make([]int, 4096)
	x := uint32(1)
	for i := range values {
		x = x*1664525 + 1013904223
		values[i] = b2i(x>>24 < 20) // mostly as expected
	}
	var c Coder
	var m [16]Bit
	buf := make([]byte, 0, 4096)
	b.Run("write", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if i%len(values) == 0 {
				c.Write(buf[:0])
			}
			c.Bit(&m[i%16], values[i%len(values)])
		}
	})
	c.Write(buf[:0])
	for i, v := range values {
		c.Bit(&m[i%16], v)
	}
	control := c.Finish()
	b.Run("read", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if i%len(values) == 0 {
				c.Read(control)
			}
			c.Bit(&m[i%16], 0)
		}
	})
}

// about tells where a cost in bits is not what a comment says, to a twentieth.
func about(t *testing.T, what string, bits, said float64) {
	t.Helper()
	if math.Abs(bits-said) > said/20 {
		t.Errorf("%s costs %.4g bits, the comment says %g", what, bits, said)
	}
}
