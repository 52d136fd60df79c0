package model

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genBytes draws a body: JSON, fields, text in several scripts, or bytes.
func genBytes(t *rapid.T, label string) []byte {
	switch rapid.IntRange(0, 4).Draw(t, label+" kind") {
	case 0:
		return rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, label)
	case 1:
		return []byte(rapid.StringMatching(`(\{"[a-z]{1,5}":[0-9]{1,4}(\.[0-9]{1,3})?(,"[a-z]{1,5}":"[a-z0-9]{0,6}"){0,3}\})?`).Draw(t, label))
	case 2:
		return []byte(rapid.StringMatching(`([0-9]{15,22}|0{1,3}[0-9]{1,4}|[0-9]{1,18}\.[0-9]{1,18}|[,;. ])*`).Draw(t, label))
	case 3:
		return []byte(rapid.StringOfN(rapid.SampledFrom([]rune("aé€😀 Ω9.0")), 0, 40, -1).Draw(t, label))
	}
	return []byte(rapid.StringOfN(rapid.SampledFrom([]rune("ab1.0 ")), 0, 60, -1).Draw(t, label))
}

// genPair draws a base and a body that is often like it.
func genPair(t *rapid.T) (base, body []byte) {
	base = genBytes(t, "base")
	if rapid.IntRange(0, 3).Draw(t, "alike") == 0 {
		return base, genBytes(t, "body")
	}
	body = bytes.Clone(base)
	for range rapid.IntRange(0, 4).Draw(t, "changes") {
		at := rapid.IntRange(0, len(body)).Draw(t, "at")
		end := min(len(body), at+rapid.IntRange(0, 6).Draw(t, "gone"))
		with := rapid.SliceOfN(rapid.SampledFrom([]byte("0123456789.x\xc3 ")), 0, 6).Draw(t, "with")
		body = append(body[:at:at], append(with, body[end:]...)...)
	}
	return base, body
}

func genElapsed(t *rapid.T) int64 {
	return int64(int32(rapid.Uint32().Draw(t, "elapsed") >> rapid.IntRange(0, 31).Draw(t, "shift")))
}

// planned returns the edit that turns base into body, as a writer has it.
func planned(base, body []byte, elapsed int64) *Edit {
	e := &Edit{Base: base, Body: body, Plan: new(Plan), Elapsed: elapsed}
	e.Plan.Make(base, body, len(body))
	return e
}

// roundTrip codes the body of e and back with the given models.
func roundTrip(t tb, w, r *Body, e *Edit) (control []byte) {
	t.Helper()
	var c Coder
	c.Write(nil)
	if got, err := w.Code(&c, []byte("dst"), e); err != nil || string(got) != "dst" {
		t.Fatalf("writing %q against %q: %q, %v", e.Body, e.Base, got, err)
	}
	c.Bits(0x2a, 6)
	control = c.Finish()
	literals := c.Literals
	c.Read(control)
	c.Literals = literals
	got, err := r.Code(&c, []byte("dst"), &Edit{Base: e.Base, Elapsed: e.Elapsed, Limit: len(e.Body)})
	if len(c.Literals) != 0 {
		t.Fatalf("%q against %q: %d literals left", e.Body, e.Base, len(c.Literals))
	}
	if err != nil || string(got) != "dst"+string(e.Body) {
		t.Fatalf("against %q: read %q, %v; written %q", e.Base, got, err, e.Body)
	}
	if mark := c.Bits(0, 6); mark != 0x2a {
		t.Fatalf("%q against %q: what follows was read as %#x", e.Body, e.Base, mark)
	}
	return control
}

func TestBodies(t *testing.T) {
	long := strings.Repeat("lorem ipsum 12 ", 60)
	for _, tt := range []struct{ base, body string }{
		{"", ""},
		{"", "x"},
		{"x", ""},
		{"same", "same"},
		{`{"t":21.5,"n":99}`, `{"t":21.4,"n":100}`},
		{"1", "999999999999999999"},
		{"999999999999999999", "1000000000000000000"},
		{"999999999999999999", "9999999999999999999"},
		{"099999999999999999", "100000000000000000"},
		{"0.99999999999999999", "1.00000000000000000"},
		{"007", "008"}, {"007", "7"}, {"7", "007"}, {"009", "1000"},
		{"1.5", "1.50"}, {"1.5", "2"}, {"1.5", "0.4"}, {"10.0", "9.9"},
		{"1717171717123", "1717171717456"},
		{"naïve café", "naïve cafés"},
		{"\xff\xfe\x00\x01", "\xff\xfd\x00\x02"},
		{"a1b2c3", "c3b2a1"},
		{long, long + "x"}, {long, "x" + long}, {long, long[300:]},
		{"", long},
	} {
		t.Run(fmt.Sprintf("%.20q to %.20q", tt.base, tt.body), func(t *testing.T) {
			for _, elapsed := range []int64{0, 1234, -5000} {
				roundTrip(t, new(Body), new(Body), planned([]byte(tt.base), []byte(tt.body), elapsed))
			}
		})
	}
}

// Any body of any base comes back, also after others have taught the models.
func TestBodyRoundTrips(t *testing.T) {
	w, r := new(Body), new(Body)
	rapid.Check(t, func(t *rapid.T) {
		*w, *r = Body{}, Body{}
		for range rapid.IntRange(1, 4).Draw(t, "bodies") {
			base, body := genPair(t)
			var c Coder
			elapsed := genElapsed(t)
			c.Write(nil)
			if _, err := w.Code(&c, nil, planned(base, body, elapsed)); err != nil {
				t.Fatal(err)
			}
			literals := c.Literals
			c.Read(c.Finish())
			c.Literals = literals
			got, err := r.Code(&c, nil, &Edit{Base: base, Elapsed: elapsed, Limit: len(body)})
			if err != nil || !bytes.Equal(got, body) {
				t.Fatalf("against %q: read %q, %v; written %q", base, got, err, body)
			}
			if w.text != r.text || w.tail != r.tail || w.plain != r.plain || w.wasPlain != r.wasPlain {
				t.Fatal("the two ends learned different things")
			}
		}
	})
}

// The place of a token: the last word and how far it is, or the offset where it is far.
func TestBodyContext(t *testing.T) {
	at := func(before string, offset int) uint32 {
		var x bodyContext
		x.passAll([]byte(before))
		x.at = offset
		return x.hash(tokenNumber)
	}
	far := "key" + strings.Repeat(",", 16)
	for _, tt := range []struct {
		rule string
		a, b uint32
		same bool
	}{
		{"as far behind the same word, wherever", at("key:", 4), at("first,key:", 40), true},
		{"behind another word", at("key:", 4), at("kez:", 4), false},
		{"farther behind it", at("key:", 4), at("key::", 4), false},
		{"15 tokens are near", at(far[:18], 4), at(far[:18], 40), true},
		{"16 are far: the offset counts", at(far, 4), at(far, 40), false},
		{"and the word does not", at(far, 4), at("x"+far, 4), true},
		{"no word yet", at("", 0), at("", 40), true},
	} {
		if (tt.a == tt.b) != tt.same {
			t.Errorf("%s: %#x and %#x", tt.rule, tt.a, tt.b)
		}
	}
	var x bodyContext
	if x.hash(tokenNumber) == x.hash(tokenWord) {
		t.Error("tokens of two kinds have one place")
	}
}

// From 12 literal bytes on it is said whether they are plain, by whether the last ones
// were.
func TestBodyPlain(t *testing.T) {
	source := rand.NewChaCha8([32]byte{6})
	random := func(n int) []byte {
		b := make([]byte, n)
		for source.Read(b); len(b) > 11 && !Noise(b); {
			source.Read(b)
		}
		return b
	}
	m := new(Body)
	var c Coder
	c.Write(nil)
	want := [2]Bit{}
	for _, tt := range []struct {
		body     []byte
		by       int    // index of the Bit that is taught
		lessons  string // it then had
		literals int    // so far
	}{
		{random(11), 0, "", 0},
		{[]byte("twelve bytes"), 0, "0", 0},
		{random(12), 0, "01", 12},
		{random(20), 1, "1", 32},
		{random(5), 1, "1", 32},
		{[]byte("twelve bytes"), 1, "10", 32},
		{random(12), 0, "011", 44},
	} {
		if _, err := m.Code(&c, nil, planned(nil, tt.body, 0)); err != nil {
			t.Fatal(err)
		}
		want[tt.by] = lessons(tt.lessons)
		if m.plain != want || len(c.Literals) != tt.literals {
			t.Errorf("%x: %v, %d literals; want %v, %d", tt.body, m.plain, len(c.Literals), want, tt.literals)
		}
	}
}

// What Body's comment says: a counter and a clock that go on get cheap, what is new is
// dear.
func TestBodyCost(t *testing.T) {
	m := new(Body)
	var c Coder
	cost := func(old, new string, elapsed int64) float64 {
		c.Write(nil)
		if _, err := m.Code(&c, nil, planned([]byte(old), []byte(new), elapsed)); err != nil {
			t.Fatal(err)
		}
		return c.Cost()
	}
	at := func(i int) string {
		return fmt.Sprintf(`{"sensor":"boiler-7","n":%d,"state":"running","time":%d}`, 4711+i, 1_717_171_717_123+int64(i)*500)
	}
	about(t, "the first body", cost("", at(0), 0), 61*8)
	for i := 1; i <= 300; i++ {
		got := cost(at(i-1), at(i), 500)
		if want, ok := map[int]float64{1: 42, 10: 1.7, 100: 0.17}[i]; ok {
			about(t, fmt.Sprintf("edit %d", i), got, want)
		}
	}
	about(t, "a millisecond off", cost(at(300), at(301), 499), 12)
	about(t, "another word", cost(at(301), strings.Replace(at(302), "running", "stopped", 1), 500), 72)
}

// SplitCost is the part of the cost before Split.
func TestSplitCost(t *testing.T) {
	m := new(Body)
	var c Coder
	c.Write(nil)
	e := planned(nil, []byte("sensors/boiler/seven{\"t\":21.5}"), 0)
	e.Split = 20
	if _, err := m.Code(&c, nil, e); err != nil {
		t.Fatal(err)
	}
	if all := c.Cost(); e.SplitCost <= 0 || e.SplitCost >= all {
		t.Errorf("%.1f of %.1f bits", e.SplitCost, all)
	}

	// whole tokens, each of which costs a bit untaught; nothing past the end
	same := []byte("abc,def")
	for split, want := range []float64{0, 1, 1, 1, 2, 3, 3, 3, 0} {
		e := planned(same, same, 0)
		e.Split = split
		if _, err := new(Body).Code(&c, nil, e); err != nil || math.Abs(e.SplitCost-want) > 0.01 {
			t.Errorf("split at %d: %.2f bits, want %g; %v", split, e.SplitCost, want, err)
		}
	}
	e.Split = 0
	if _, err := m.Code(&c, nil, e); err != nil || e.SplitCost != 0 {
		t.Errorf("without a split: %.1f bits, %v", e.SplitCost, err)
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte(""), []byte("x"), int64(0))
	f.Add([]byte(`{"t":21.5,"n":99}`), []byte(`{"t":21.4,"n":100}`), int64(50))
	f.Add([]byte("999999999999999999"), []byte("9999999999999999999"), int64(-1))
	f.Add([]byte("0.99999999999999999"), []byte("1.00000000000000000"), int64(1<<40))
	f.Add([]byte("1717171717123"), []byte("1717171717456"), int64(1<<62))
	w, r := new(Body), new(Body)
	f.Fuzz(func(t *testing.T, base, body []byte, elapsed int64) {
		*w, *r = Body{}, Body{}
		roundTrip(t, w, r, planned(base, body, elapsed))
		control := roundTrip(t, w, r, planned(body, base, -elapsed))
		if *r = (Body{}); len(base) > 0 {
			// Whatever the models make of it, the limit holds.
			var c Coder
			c.Read(control)
			got, err := r.Code(&c, nil, &Edit{Base: body, Limit: len(base) - 1})
			if err == nil && len(got) >= len(base) {
				t.Fatalf("%d bytes with a limit of %d", len(got), len(base)-1)
			}
		}
	})
}

func FuzzBodyRead(f *testing.F) {
	f.Add([]byte(""), []byte(""), uint16(10))
	f.Add([]byte("n=5 t=1717171717123"), []byte("\x12\x34\x56\x78"), uint16(100))
	f.Add([]byte("999999999999999999"), []byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff"), uint16(1000))
	m := new(Body)
	f.Fuzz(func(t *testing.T, base, control []byte, limit uint16) {
		*m = Body{}
		var c Coder
		c.Read(control)
		got, err := m.Code(&c, []byte("dst"), &Edit{Base: base, Elapsed: 12345, Limit: int(limit)})
		switch {
		case err != nil && string(got) != "dst":
			t.Fatalf("%q beside %v", got, err)
		case !bytes.HasPrefix(got, []byte("dst")) || len(got)-3 > int(limit):
			t.Fatalf("%d bytes with a limit of %d", len(got)-3, limit)
		}
	})
}

const benchOld = `{"sensor":"boiler-7","site":"plant 12","temperature":61.25,"pressure":1.013,"state":"running","n":4711,"time":1717171717123}`
const benchNew = `{"sensor":"boiler-7","site":"plant 12","temperature":61.31,"pressure":1.009,"state":"running","n":4712,"time":1717171717625}`

func TestBodyAllocates(t *testing.T) {
	m := new(Body)
	var c Coder
	buf := make([]byte, 0, 1<<10)
	old, new := []byte(benchOld), []byte(benchNew)
	p := Plan{}
	write := func() {
		c.Write(buf[:0])
		p.Make(old, new, len(new))
		_, _ = m.Code(&c, nil, &Edit{Base: old, Body: new, Plan: &p, Elapsed: 500})
		buf = c.Finish()
	}
	if n := testing.AllocsPerRun(100, write); n != 0 {
		t.Errorf("writing allocates %g times", n)
	}
	control := bytes.Clone(buf)
	dst := make([]byte, 0, 1<<10)
	if n := testing.AllocsPerRun(100, func() {
		c.Read(control)
		_, _ = m.Code(&c, dst, &Edit{Base: old, Elapsed: 500, Limit: cap(dst)})
	}); n != 0 {
		t.Errorf("reading allocates %g times", n)
	}
}

func BenchmarkBody(b *testing.B) {
	old, new := []byte(benchOld), []byte(benchNew)
	var c Coder
	buf := make([]byte, 0, 1<<10)
	b.Run("write", func(b *testing.B) {
		m, p := Body{}, Plan{}
		b.SetBytes(int64(len(new)))
		for b.Loop() {
			c.Write(buf[:0])
			p.Make(old, new, len(new))
			_, _ = m.Code(&c, nil, &Edit{Base: old, Body: new, Plan: &p, Elapsed: 500})
		}
	})
	b.Run("read", func(b *testing.B) {
		// The reader's models keep up with a writer's, as on a lane.
		w, r := Body{}, Body{}
		dst := make([]byte, 0, 1<<10)
		const n = 256
		controls := make([][]byte, n)
		for i := range controls {
			c.Write(nil)
			_, _ = w.Code(&c, nil, planned(old, new, 500))
			controls[i] = c.Finish()
		}
		b.SetBytes(int64(len(new)))
		for i := 0; b.Loop(); i++ {
			if i%n == 0 {
				b.StopTimer()
				r = Body{}
				b.StartTimer()
			}
			c.Read(controls[i%n])
			if got, err := r.Code(&c, dst, &Edit{Base: old, Elapsed: 500, Limit: cap(dst)}); err != nil || len(got) != len(new) {
				b.Fatal(len(got), err)
			}
		}
	})
}
