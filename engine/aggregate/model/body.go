package model

import (
	"bytes"
	"errors"
)

// Body codes message bodies as edits of templates: what a body has in common
// with its template costs next to nothing, numbers cost their distance, and the
// rest is literal bytes: under the Text model, or plain where they look random,
// which no model makes shorter (SPEC.md section 5). Its zero value is untaught.
type Body struct {
	text Text
	tail Bit

	plain    [2]Bit // whether a run of literals is plain, by whether the last one was
	wasPlain bool
}

// An Edit is what one call of Body.Code is about. All of it is borrowed for the call.
type Edit struct {
	Template []byte // what the body is written as a difference against
	Body     []byte // a reading Coder ignores it
	Plan     *Plan  // writing: made for Template and Body, and only there needed
	Elapsed  int64  // milliseconds since the template was current
	Limit    int    // reading: at most so many bytes are appended

	// Split is, writing, an offset into Body: Code sets SplitCost to what the bytes
	// before it cost, in bits.
	Split     int
	SplitCost float64
}

// ErrBody tells that a body in a frame does not fit its template or its limit.
var ErrBody = errors.New("model: body outside its bounds")

// MaxLiterals is how many literal bytes of one body the Text model takes, at
// most, where the template does not help; more go to the frame's literals.
const MaxLiterals = 512

// advance returns what is expected of a number that was n so many milliseconds ago.
func advance(n number, elapsed int64) int64 {
	if n.frac != 0 || n.padded {
		return n.value
	}
	// Times since 1970 have 10 digits in seconds, 13 in milliseconds, 16 in
	// microseconds until 2286.
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

// alike tells whether new can be written as old plus a difference.
func alike(old, new []byte) bool {
	var buf [maxDigits + 2]byte
	o, n := parseNumber(old), parseNumber(new)
	return o.frac == n.frac && bytes.Equal(appendLike(buf[:0], n.value, o), new)
}

// Code codes a body as an edit of its template. A reading Coder appends the body to
// dst; a writing Coder returns dst as it was, and needs a Plan. Plain bytes go to the
// Coder's Literals, or come from there.
func (m *Body) Code(c *Coder, dst []byte, e *Edit) ([]byte, error) {
	template, body, limit := e.Template, e.Body, e.Limit
	start := len(dst)
	var ops []edit
	if !c.reading {
		ops = e.Plan.edits(template, body)
	}
	var ctx bodyContext
	out := dst // reading: what there is of the body; writing: unused
	done := 0  // writing: how much of body has been coded
	op := 0
	e.SplitCost = 0
	split, begin := e.Split, 0.0
	if !c.reading && split > 0 {
		begin = c.Cost()
	}
	for i := 0; ; {
		if !c.reading {
			out = body[:done]
			if split > 0 && done >= split {
				e.SplitCost, split = c.Cost()-begin, 0
			}
		}
		left := template[i:]
		var kind editKind
		var n int
		if !c.reading && op < len(ops) {
			kind, n = ops[op].kind, ops[op].n
		} else if !c.reading {
			kind = editEnd
		}
		op++
		var tk tokenKind
		tn := 0
		if len(left) == 0 {
			if c.Bool(&m.tail, kind == editEnd) {
				break
			}
			kind = editInsert
		} else {
			tk, tn = nextToken(template, i)
			ctx.at = i
			h := ctx.hash(tk)
			if c.Bool(m.text.at(h), kind == editSame) {
				kind = editSame
			} else {
				kind = m.codeKind(c, h+uint32(ctx.last), kind)
			}
			ctx.last = kind
		}
		switch kind {
		case editSame:
			if c.reading {
				if len(out)-start+tn > limit {
					return dst, ErrBody
				}
				out = append(out, left[:tn]...)
			} else {
				done += tn
			}
			ctx.pass(tk, left[:tn])
			i += tn
		case editNumber:
			if tk != tokenNumber {
				return dst, ErrBody
			}
			was := parseNumber(left[:tn])
			expect := advance(was, e.Elapsed)
			h := ctx.hash(tk) + 0x1000193
			var now int64
			var span []byte
			if !c.reading {
				_, nn := nextToken(body, done)
				span = body[done : done+nn]
				now = parseNumber(span).value
			}
			now = expect + m.difference(c, h, now-expect)
			if c.reading {
				if now < 0 {
					return dst, ErrBody
				}
				before := len(out)
				out = appendLike(out, now, was)
				if len(out)-start > limit {
					return dst, ErrBody
				}
				span = out[before:]
			} else {
				done += len(span)
			}
			ctx.pass(tk, span)
			i += tn
		case editReplace, editInsert:
			h := ctx.hash(tk) + uint32(kind)<<8
			n = int(m.text.Uint(c, h, uint64(n)))
			// an empty insertion would never end
			if c.reading && (n < 0 || n > limit-(len(out)-start) || n == 0 && kind == editInsert) {
				return dst, ErrBody
			}
			var lit []byte
			if !c.reading {
				lit = body[done : done+n]
				done += n
			}
			if n >= leastNoise && m.isPlain(c, lit) {
				var ok bool
				if lit, ok = c.Literal(lit, n); !ok {
					return dst, ErrBody
				}
				if c.reading {
					out = append(out, lit...)
				}
			} else if c.reading {
				out = m.literals(c, h, out, nil, n, start)
				lit = out[len(out)-n:]
			} else {
				m.literals(c, h, out, lit, n, 0)
			}
			ctx.passAll(lit)
			if kind == editReplace {
				i += tn
			}
		case editDelete:
			i += tn
		case editEnd:
			i = len(template)
		}
		if kind == editEnd {
			break
		}
	}
	if c.reading {
		return out, nil
	}
	return dst, nil
}

// codeKind codes one of the five kinds other than editSame under ctx.
func (m *Body) codeKind(c *Coder, ctx uint32, kind editKind) editKind {
	ctx *= 0x2c1b3c6d
	v := int(kind) - 1
	node := uint32(1)
	for i := 2; i >= 0; i-- {
		node = node<<1 | uint32(c.Bit(m.text.at(ctx+node), v>>i&1))
	}
	return min(editKind(node-8)+1, editEnd)
}

// difference codes a signed number under ctx.
func (m *Body) difference(c *Coder, ctx uint32, v int64) int64 {
	neg := v < 0
	mag := uint64(v)
	if neg {
		mag = -mag
	}
	mag = m.text.Uint(c, ctx, mag)
	if mag == 0 {
		return 0
	}
	if c.Bool(m.text.at(ctx^0x7feb352d+uint32(min(mag, 15))), neg) {
		return -int64(mag)
	}
	return int64(mag)
}

// literals codes n bytes that follow prior under the Text model.
func (m *Body) literals(c *Coder, h uint32, prior, lit []byte, n, start int) []byte {
	h += uint32(n) * 0x85ebca6b
	var c1, c2, c3 byte
	body := prior[start:]
	if k := len(body); k >= 3 {
		c1, c2, c3 = body[k-1], body[k-2], body[k-3]
	} else if k >= 1 {
		c1 = body[k-1]
		if k == 2 {
			c2 = body[0]
		}
	}
	for k := range n {
		var b byte
		if !c.reading {
			b = lit[k]
		}
		o1 := uint32(c1) + 1
		o2 := o1 | uint32(c2)<<9
		b = m.text.Byte(c, min(int(kindOf[c1])+1, textSets-1), [3]uint32{
			h,
			o2 * 0x9e3779b1,
			(o2 | uint32(c3)<<20) * 0x2c1b3c6d,
		}, b)
		if c.reading {
			prior = append(prior, b)
		}
		h = (h + uint32(b) + 1) * 0x01000193
		c1, c2, c3 = b, c1, c2
	}
	return prior
}

// bodyContext tells apart the places of a body: by the last word and how many
// tokens ago it was, or by the offset where words are far between.
type bodyContext struct {
	word  uint32
	since uint32
	at    int
	last  editKind
}

func (x *bodyContext) hash(kind tokenKind) uint32 {
	h := x.word + x.since*0x45d9f3b
	if x.since > 15 {
		h = uint32(x.at) * 0x45d9f3b
	}
	return (h ^ uint32(kind)<<3) * 0x01000193
}

// pass notes a token of the body.
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
