package model

import "errors"

// Body codes message bodies as edits of other bodies, their bases: what a body has in
// common with its base costs next to nothing, numbers cost their distance, and the rest
// is literal bytes: under the Text model, or plain where they look random, which no
// model makes shorter (SPEC.md section 5). Its zero value is untaught.
//
// Every half second a sensor sends these 69 bytes, each body being the base of the
// next:
//
//	{"sensor":"boiler-7","n":4711,"state":"running","time":1717171717123}
//
// The first body costs 61 bytes, without a base. The first edit costs 42 bits, for a
// counter that went up by 1 and a time that came as the clock says; the tenth costs 1.7,
// the hundredth 0.17. A time that is a millisecond off costs 12 bits then, and another
// word in place of "running" 72. TestBodyCost measures it.
type Body struct {
	text     Text
	tail     Bit    // whether the body ends where its base does
	plain    [2]Bit // whether a run of literals is plain, by whether the last one was
	wasPlain bool
}

// An Edit is what one call of Body.Code is about. All of it is borrowed for the call.
type Edit struct {
	Base    []byte // what the body is written as a difference against; empty where nothing is alike
	Body    []byte // writing; a reading Coder ignores it
	Plan    *Plan  // writing: made for Base and Body
	Elapsed int64  // milliseconds since the base was current, by which times in it are moved on
	Limit   int    // reading: at most so many bytes are appended

	// Split is an offset into Body where its writer wants to know what the bytes before
	// it cost, such as a topic before a payload: Code sets SplitCost to that, in bits.
	// At 0 nothing is measured. It says nothing to a reader.
	Split     int
	SplitCost float64
}

// ErrBody tells that a body in a frame does not fit its base or its limit: the
// frame is malformed, or the two ends do not remember the same.
var ErrBody = errors.New("model: body outside its bounds")

// MaxLiterals is how many literal bytes of one body a writer should leave to the Text
// model where the base does not help; more are better left to the frame's literals
// and zstd, which takes a hundredth of the time. With 256 the frames of bodies to 2 kB
// (testdata/recorded/mqtt-mixed-50x20) are 11 % longer, with 1024 and more 0.5 % shorter.
const MaxLiterals = 512

// advance returns what is expected of a number that was n so many milliseconds ago.
func advance(n number, elapsed int64) int64 {
	if n.frac != 0 || n.padded {
		return n.value
	}
	// Times since 1970 have 10 digits in seconds, 13 in milliseconds and 16 in
	// microseconds, from 2001 to 2286. What only looks like one costs its difference
	// from the clock, each time the same: the models get used to it.
	switch n.digits {
	case 10:
		return n.value + elapsed/1000
	case 13:
		return n.value + elapsed
	case 16:
		return n.value + elapsed*1000
	}
	return n.value
}

// Code codes a body as an edit of its base. A reading Coder appends the body to
// dst; a writing Coder returns dst as it was, and needs a Plan. Plain bytes go to the
// Coder's Literals, or come from there. The error is ErrBody, for a malformed frame.
func (m *Body) Code(c *Coder, dst []byte, e *Edit) ([]byte, error) {
	x := edition{Edit: *e, m: m, c: c, out: dst, start: len(dst)}
	if !c.reading {
		x.ops = e.Plan.edits(e.Base, e.Body)
		x.out, x.start = e.Body[:0], 0
	}
	begin, split := 0.0, 0
	if e.SplitCost = 0; !c.reading && e.Split > 0 {
		begin, split = c.Cost(), e.Split
	}
	for {
		if split > 0 && len(x.out) >= split {
			e.SplitCost, split = c.Cost()-begin, 0
		}
		op, t := x.next()
		if op.kind == editEnd {
			break
		}
		ok := true
		switch op.kind {
		case editSame: // most are, and a call for each costs a reader 5 %
			text := e.Base[t.at : t.at+t.n]
			if ok = x.room(t.n); ok && c.reading {
				x.out = append(x.out, text...)
			} else if ok {
				x.out = e.Body[:len(x.out)+t.n]
			}
			x.ctx.pass(t.kind, text)
		case editNumber:
			ok = x.number(t)
		case editReplace, editInsert:
			ok = x.literal(op, t)
		}
		if !ok {
			return dst, ErrBody
		}
		if op.kind != editInsert {
			x.at += t.n
		}
	}
	if c.reading {
		return x.out, nil
	}
	return dst, nil
}

// An edition is one body while it is being coded.
type edition struct {
	Edit  // a copy: where the edit itself was kept, each of them would be on the heap
	m     *Body
	c     *Coder
	out   []byte // what there is of the body: reading, behind dst; writing, in Body
	start int    // where it begins in out
	at    int    // how much of the base is behind
	ops   []edit // writing: those to come
	ctx   bodyContext
}

// next codes the next edit, without its literal bytes, and returns the token of the
// base that it is about.
func (x *edition) next() (op edit, t token) {
	op.kind = editEnd // a plan leaves the last one out where nothing is left of the base
	if len(x.ops) > 0 {
		op, x.ops = x.ops[0], x.ops[1:]
	}
	t.at = x.at
	if x.at == len(x.Base) {
		if !x.c.Bool(&x.m.tail, op.kind == editEnd) {
			op.kind = editInsert
		} else {
			op.kind = editEnd
		}
		return op, t
	}
	t.kind, t.n = nextToken(x.Base, x.at)
	x.ctx.at = x.at
	h := x.ctx.hash(t.kind)
	if x.c.Bool(x.m.text.at(h), op.kind == editSame) {
		op.kind = editSame
	} else {
		op.kind = x.m.codeKind(x.c, h+uint32(x.ctx.last), op.kind)
	}
	x.ctx.last = op.kind
	return op, t
}

// room tells whether n more bytes are inside a reader's limit.
func (x *edition) room(n int) bool { return !x.c.reading || n <= x.Limit-(len(x.out)-x.start) }

// number codes the number in place of the base's as the difference from what is
// expected of that.
func (x *edition) number(t token) bool {
	if t.kind != tokenNumber {
		return false
	}
	was := parseNumber(x.Base[t.at : t.at+t.n])
	expect := advance(was, x.Elapsed)
	h := x.ctx.hash(t.kind) + 0x1000193
	before := len(x.out)
	if x.c.reading {
		now := expect + x.m.difference(x.c, h, 0)
		if now < 0 {
			return false
		}
		x.out = appendLike(x.out, now, was)
		if !x.room(0) {
			return false
		}
	} else {
		_, n := nextToken(x.Body, before)
		x.out = x.Body[:before+n]
		x.m.difference(x.c, h, parseNumber(x.out[before:]).value-expect)
	}
	x.ctx.pass(t.kind, x.out[before:])
	return true
}

// literal codes bytes that come before the base's token or in its place.
func (x *edition) literal(op edit, t token) bool {
	h := x.ctx.hash(t.kind) + uint32(op.kind)<<8
	n := int(x.m.text.Uint(x.c, h, uint64(op.n)))
	// an empty insertion would never end
	if x.c.reading && n < 0 || !x.room(n) || x.c.reading && n == 0 && op.kind == editInsert {
		return false
	}
	before := len(x.out)
	var lit []byte
	if !x.c.reading {
		lit = x.Body[before : before+n]
	}
	if n >= leastNoise && x.m.isPlain(x.c, lit) {
		var ok bool
		if lit, ok = x.c.Literal(lit, n); !ok {
			return false
		}
		if x.c.reading {
			x.out = append(x.out, lit...)
		}
	} else {
		x.text(h, lit, n)
	}
	if !x.c.reading {
		x.out = x.Body[:before+n]
	}
	x.ctx.passAll(x.out[before:])
	return true
}

// text codes n literal bytes, lit where they are known, under the Text model.
func (x *edition) text(h uint32, lit []byte, n int) {
	h += uint32(n) * 0x85ebca6b
	var last [3]byte // the newest first
	body := x.out[x.start:]
	for k := range min(len(last), len(body)) {
		last[k] = body[len(body)-1-k]
	}
	for k := range n {
		var b byte
		if !x.c.reading {
			b = lit[k]
		}
		o1 := uint32(last[0]) + 1
		o2 := o1 | uint32(last[1])<<9
		b = x.m.text.Byte(x.c, min(int(kindOf[last[0]])+1, textSets-1), [3]uint32{
			h,
			o2 * 0x9e3779b1,
			(o2 | uint32(last[2])<<20) * 0x2c1b3c6d,
		}, b)
		if x.c.reading {
			x.out = append(x.out, b)
		}
		h = (h + uint32(b) + 1) * 0x01000193
		last = [3]byte{b, last[0], last[1]}
	}
}

// isPlain codes whether a run of literals, known to a writer, is plain.
func (m *Body) isPlain(c *Coder, lit []byte) bool {
	m.wasPlain = c.Bool(&m.plain[b2i(m.wasPlain)], !c.reading && Noise(lit))
	return m.wasPlain
}

// codeKind codes one of the five kinds other than editSame under ctx.
func (m *Body) codeKind(c *Coder, ctx uint32, kind editKind) editKind {
	ctx *= 0x2c1b3c6d
	v := int(kind) - 1
	node := uint32(1)
	for i := 2; i >= 0; i-- {
		node = node<<1 | uint32(c.Bit(m.text.at(ctx+node), v>>i&1))
	}
	return min(editKind(node-8)+1, editEnd) // three bits may say more than the five
}

// difference codes a signed number under ctx.
func (m *Body) difference(c *Coder, ctx uint32, v int64) int64 {
	mag := m.text.Uint(c, ctx, magnitude(v))
	if mag == 0 {
		return 0
	}
	if c.Bool(m.text.at(ctx^0x7feb352d+uint32(min(mag, 15))), v < 0) {
		return -int64(mag)
	}
	return int64(mag)
}

// bodyContext tells apart the places of a body: by the last word and how many
// tokens ago it was, or by the offset in the base where words are far between. In
// {"t":21.5,"n":99} the place of 99 is "two tokens behind n", wherever in the body that
// is, so that what was learned of a field stays with it when others before it change
// their length.
type bodyContext struct {
	word  uint32   // hash of the last word
	since uint32   // tokens behind it
	at    int      // offset in the base
	last  editKind // the last edit
}

// hash returns the number of the place, for a token of the base of some kind.
func (x *bodyContext) hash(kind tokenKind) uint32 {
	h := x.word + x.since*0x45d9f3b
	if x.since > 15 {
		h = uint32(x.at) * 0x45d9f3b
	}
	return (h ^ uint32(kind)<<3) * 0x01000193
}

// pass notes a token of the body. A word is hashed with FNV-1a.
func (x *bodyContext) pass(kind tokenKind, text []byte) {
	if kind != tokenWord {
		x.since++
		return
	}
	h := uint32(2166136261)
	for _, b := range text {
		h = (h ^ uint32(b)) * 16777619
	}
	x.word, x.since = h, 0
}

// passAll notes literal bytes.
func (x *bodyContext) passAll(b []byte) {
	for len(b) > 0 {
		kind, n := nextToken(b, 0)
		x.pass(kind, b[:n])
		b = b[n:]
	}
}
