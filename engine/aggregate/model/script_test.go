package model

import (
	"fmt"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// An op is one call of a codec: a line of a vector file, or what a property
// drew. Its text form is, by verb:
//
//	bit M V                  Coder.Bit with the M-th Bit
//	bits N V                 Coder.Bits of N bits
//	index N V                Coder.Index below N
//	symbol N V               Coder.Symbol with the tree of N nodes
//	uint M V                 Int.Uint with the M-th Int
//	int M V                  Int.Int with the M-th Int
//	column M V V ...         Column.Code with the M-th Column
//	members M 1011           Members.Code with the M-th Members
//	byte SET C C C V         Text.Byte under three contexts
//	number C V               Text.Uint under a context
//	body MS "old" "new"      Body.Code, MS milliseconds after the base
type op struct {
	verb       string
	model      uint64 // M, N, SET
	v          uint64
	ctx        [3]uint32
	list       []int64
	present    []bool
	base, body []byte
	elapsed    int64
}

// taught holds the models that scripts use, all untaught at first.
type taught struct {
	bits    [8]Bit
	trees   map[uint64][]Bit
	ints    [3]Int
	columns [3]Column
	members [3]Members
	text    Text
	body    Body
}

func (m *taught) reset() *taught {
	if m == nil {
		m = new(taught)
	}
	*m = taught{trees: map[uint64][]Bit{2: make([]Bit, 2), 4: make([]Bit, 4), 8: make([]Bit, 8), 256: make([]Bit, 256)}}
	return m
}

// run runs o and returns it with what was read. limit is for bodies.
func (o op) run(c *Coder, m *taught, limit int) (op, error) {
	var err error
	switch o.verb {
	case "bit":
		o.v = uint64(c.Bit(&m.bits[o.model], int(o.v)))
	case "bits":
		o.v = c.Bits(o.v, int(o.model))
	case "index":
		o.v = uint64(c.Index(uint32(o.v), uint32(o.model)))
	case "symbol":
		o.v = uint64(c.Symbol(m.trees[o.model], uint32(o.v)))
	case "uint":
		o.v = m.ints[o.model].Uint(c, o.v)
	case "int":
		o.v = uint64(m.ints[o.model].Int(c, int64(o.v)))
	case "column":
		m.columns[o.model].Code(c, o.list)
	case "members":
		m.members[o.model].Code(c, o.present)
	case "byte":
		o.v = uint64(m.text.Byte(c, int(o.model), o.ctx, byte(o.v)))
	case "number":
		o.v = m.text.Uint(c, o.ctx[0], o.v)
	case "body":
		var out []byte
		e := Edit{Base: o.base, Elapsed: o.elapsed, Limit: limit}
		if !c.Reading() {
			e.Body, e.Plan = o.body, new(Plan)
			e.Plan.Make(o.base, o.body, len(o.body))
		}
		out, err = m.body.Code(c, nil, &e)
		if c.Reading() {
			o.body = out
		}
	default:
		panic("unknown verb " + o.verb)
	}
	return o, err
}

// blank returns o as its reader knows it beforehand: without values.
func (o op) blank() op {
	o.v, o.body = 0, nil
	o.list = make([]int64, len(o.list))
	o.present = make([]bool, len(o.present))
	return o
}

func (o op) String() string {
	var b strings.Builder
	b.WriteString(o.verb)
	switch o.verb {
	case "int":
		fmt.Fprintf(&b, " %d %d", o.model, int64(o.v))
	case "column":
		fmt.Fprintf(&b, " %d", o.model)
		for _, v := range o.list {
			fmt.Fprintf(&b, " %d", v)
		}
	case "members":
		fmt.Fprintf(&b, " %d ", o.model)
		for _, p := range o.present {
			b.WriteByte("01"[b2i(p)])
		}
	case "byte":
		fmt.Fprintf(&b, " %d %d %d %d %d", o.model, o.ctx[0], o.ctx[1], o.ctx[2], o.v)
	case "number":
		fmt.Fprintf(&b, " %d %d", o.ctx[0], o.v)
	case "body":
		fmt.Fprintf(&b, " %d %s %s", o.elapsed, strconv.Quote(string(o.base)), strconv.Quote(string(o.body)))
	default:
		fmt.Fprintf(&b, " %d %d", o.model, o.v)
	}
	return b.String()
}

func parseOp(line string) (o op, err error) {
	fail := func(err error) (op, error) { return op{}, fmt.Errorf("%q: %w", line, err) }
	verb, rest, _ := strings.Cut(line, " ")
	o.verb = verb
	if verb == "body" {
		ms, rest, _ := strings.Cut(rest, " ")
		if o.elapsed, err = strconv.ParseInt(ms, 10, 64); err != nil {
			return fail(err)
		}
		old, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return fail(err)
		}
		base, _ := strconv.Unquote(old)
		body, err := strconv.Unquote(strings.TrimSpace(rest[len(old):]))
		if err != nil {
			return fail(err)
		}
		o.base, o.body = []byte(base), []byte(body)
		return o, nil
	}
	f := strings.Fields(rest)
	if len(f) < 2 {
		return fail(strconv.ErrSyntax)
	}
	number := func(s string) (v uint64) {
		v, e := strconv.ParseUint(s, 10, 64)
		if e != nil {
			var i int64
			i, e = strconv.ParseInt(s, 10, 64)
			v = uint64(i)
		}
		if e != nil {
			err = e
		}
		return v
	}
	switch verb {
	case "column":
		o.model = number(f[0])
		for _, s := range f[1:] {
			o.list = append(o.list, int64(number(s)))
		}
	case "members":
		o.model = number(f[0])
		for _, ch := range f[1] {
			o.present = append(o.present, ch == '1')
		}
	case "byte":
		o.model = number(f[0])
		for i := range o.ctx {
			o.ctx[i] = uint32(number(f[1+i]))
		}
		o.v = number(f[4])
	case "number":
		o.ctx[0], o.v = uint32(number(f[0])), number(f[1])
	default:
		o.model, o.v = number(f[0]), number(f[1])
	}
	if err != nil {
		return fail(err)
	}
	return o, nil
}

// writeScript returns the control field that ops make, and the literals beside it.
func writeScript(ops []op, m *taught) (control, literals []byte) {
	var c Coder
	c.Write(nil)
	for _, o := range ops {
		if _, err := o.run(&c, m, 0); err != nil {
			panic(err) // writing does not fail
		}
	}
	return c.Finish(), c.Literals
}

// tb is what testing.T and rapid.T have in common.
type tb interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// readScript reads ops from control and literals, tells where they come out
// different, and wants nothing left.
func readScript(t tb, ops []op, control, literals []byte, m *taught) (overrun int) {
	t.Helper()
	var c Coder
	c.Read(control)
	c.Literals = literals
	for i, o := range ops {
		got, err := o.blank().run(&c, m, len(o.body))
		if err != nil {
			t.Fatalf("operation %d, %s: %v", i, o, err)
		}
		if got.String() != o.String() {
			t.Fatalf("operation %d: read %s, written %s", i, got, o)
		}
	}
	if len(c.Literals) != 0 {
		t.Fatalf("%d literals left", len(c.Literals))
	}
	if !c.Complete() {
		t.Fatal("the control field goes on, or ends before its time")
	}
	return c.Overrun()
}

// same tells whether control reads as ops.
func same(ops []op, control []byte, m *taught) bool {
	var c Coder
	c.Read(control)
	for _, o := range ops {
		got, err := o.blank().run(&c, m, len(o.body))
		if err != nil || got.String() != o.String() {
			return false
		}
	}
	return true
}

// anyNumber draws numbers of all lengths alike.
func anyNumber(t *rapid.T, label string) uint64 {
	n := rapid.IntRange(0, 64).Draw(t, label+" bits")
	if n == 0 {
		return 0
	}
	return rapid.Uint64().Draw(t, label) >> (64 - n)
}

var genOp = rapid.Custom(func(t *rapid.T) op {
	o := op{verb: rapid.SampledFrom([]string{
		"bit", "bit", "bits", "index", "symbol", "uint", "int", "column", "members", "byte", "number", "body",
	}).Draw(t, "verb")}
	switch o.verb {
	case "bit":
		o.model = rapid.Uint64Range(0, 7).Draw(t, "model")
		o.v = rapid.Uint64Range(0, 1).Draw(t, "value")
	case "bits":
		o.model = rapid.Uint64Range(0, 64).Draw(t, "bits")
		if o.model > 0 {
			o.v = rapid.Uint64().Draw(t, "value") >> (64 - o.model)
		}
	case "index":
		o.model = max(1, anyNumber(t, "below")>>32)
		o.v = rapid.Uint64Range(0, o.model-1).Draw(t, "value")
	case "symbol":
		o.model = rapid.SampledFrom([]uint64{2, 4, 8, 256}).Draw(t, "nodes")
		o.v = rapid.Uint64Range(0, o.model-1).Draw(t, "value")
	case "uint", "int":
		o.model = rapid.Uint64Range(0, 2).Draw(t, "model")
		o.v = anyNumber(t, "value")
	case "column":
		o.model = rapid.Uint64Range(0, 2).Draw(t, "model")
		n := rapid.IntRange(1, 12).Draw(t, "members")
		some := int64(anyNumber(t, "some"))
		for range n {
			v := some
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				v = int64(anyNumber(t, "residual"))
			case 1, 2:
				v = 0
			}
			o.list = append(o.list, v)
		}
	case "members":
		o.model = rapid.Uint64Range(0, 2).Draw(t, "model")
		if o.present = rapid.SliceOfN(rapid.Bool(), 0, 20).Draw(t, "present"); rapid.Bool().Draw(t, "all") {
			for i := range o.present {
				o.present[i] = true
			}
		}
	case "byte":
		o.model = rapid.Uint64Range(0, textSets-1).Draw(t, "set")
		for i := range o.ctx {
			// few contexts, so that they come again and fall together
			o.ctx[i] = rapid.SampledFrom([]uint32{0, 1, 0xffffffff, 0x12345678}).Draw(t, "context")
		}
		o.v = uint64(rapid.Byte().Draw(t, "value"))
	case "number":
		o.ctx[0] = rapid.Uint32().Draw(t, "context")
		o.v = anyNumber(t, "value")
	case "body":
		o.base, o.body = genPair(t)
		o.elapsed = genElapsed(t)
	}
	return o
})
