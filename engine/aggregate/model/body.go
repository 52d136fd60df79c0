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
	ops  []edit
	old  []token
	new  []token
	tail Bit

	plain    [2]Bit // whether a run of literals is plain, by whether the last one was
	wasPlain bool

	planned  bool // ops are those of the next Code
	patience int  // comparisons that meet may still make for this plan

	// Split, where a writing Coder is to set it before Code, is an offset into
	// the body; SplitCost is then what the bytes before it cost, in bits.
	Split     int
	SplitCost float64
}

// ErrBody tells that a body in a frame does not fit its template or its limit.
var ErrBody = errors.New("model: body outside its bounds")

// MaxLiterals is how many literal bytes of one body the Text model takes, at
// most, where the template does not help; more go to the frame's literals.
const MaxLiterals = 512

type editKind uint8

const (
	editSame    editKind = iota
	editNumber           // both tokens are numbers: the difference follows
	editReplace          // the template's token gives way to literal bytes
	editInsert           // literal bytes before the template's token
	editDelete           // the template's token is left out
	editEnd              // the body ends here, whatever the template has left
)

type edit struct {
	kind editKind
	n    int // literal bytes
}

type token struct {
	kind tokenKind
	at   int
	n    int
}

func tokens(dst []token, b []byte) []token {
	for i := 0; i < len(b); {
		kind, n := nextToken(b, i)
		dst = append(dst, token{kind, i, n})
		i += n
	}
	return dst
}

// Clock is what number tokens that look like times are predicted with.
type Clock struct {
	Elapsed int64 // milliseconds since the template was current
}

// advance returns what is expected of a number that was old.
func (k Clock) advance(n number) int64 {
	if n.frac != 0 || n.padded {
		return n.value
	}
	// Times since 1970 have 10 digits in seconds, 13 in milliseconds, 16 in
	// microseconds until 2286.
	switch n.digits {
	case 10:
		return n.value + k.Elapsed/1000
	case 13:
		return n.value + k.Elapsed
	case 16:
		return n.value + k.Elapsed*1000
	}
	return n.value
}

// Plan works out the edits that turn template into body, and returns how many
// literal bytes they have, without those at the end that look random. It gives up
// at more than limit of them, and returns what it had by then. The next Code has to
// be that of the two, unless Discard comes before it.
func (m *Body) Plan(template, body []byte, limit int) (literals int) {
	m.planned = false
	m.ops = m.ops[:0]
	if random(template, body) {
		m.ops = append(m.ops, edit{editInsert, len(body)}, edit{editEnd, 0})
		m.planned = true
		return 0
	}
	m.old = tokens(m.old[:0], template)
	m.new = tokens(m.new[:0], body)
	old, new := m.old, m.new
	text := func(t token) []byte { return body[t.at : t.at+t.n] }
	same := func(i, j int) bool {
		return old[i].n == new[j].n && bytes.Equal(template[old[i].at:old[i].at+old[i].n], text(new[j]))
	}
	emit := func(kind editKind, n int) {
		literals += n
		if kind == editInsert && len(m.ops) > 0 && m.ops[len(m.ops)-1].kind == editInsert {
			m.ops[len(m.ops)-1].n += n
			return
		}
		m.ops = append(m.ops, edit{kind, n})
	}
	m.patience = meetPatience + 2*len(new)
	i, j, lost := 0, 0, 0
	for i < len(old) && j < len(new) {
		if same(i, j) {
			emit(editSame, 0)
			i++
			j++
			continue
		}
		if literals > limit {
			return literals
		}
		numbers := old[i].kind == tokenNumber && new[j].kind == tokenNumber &&
			alike(template[old[i].at:old[i].at+old[i].n], text(new[j]))
		if numbers && m.goesOn(i, j, same) {
			emit(editNumber, 0)
			i++
			j++
			continue
		}
		if lost < 8 && random(template[old[i].at:], body[new[j].at:]) {
			emit(editInsert, len(body)-new[j].at)
			literals -= len(body) - new[j].at
			j, i = len(new), 0
			break
		}
		a, b := 0, 0
		if lost < 8 {
			a, b = m.meet(i, j, same)
		}
		if a < 0 || lost >= 8 {
			lost++
			if numbers {
				emit(editNumber, 0)
			} else {
				emit(editReplace, new[j].n)
			}
			i++
			j++
			continue
		}
		for ; a > 0 && b > 0; a, b = a-1, b-1 {
			emit(editReplace, new[j].n)
			i++
			j++
		}
		for ; b > 0; b-- {
			emit(editInsert, new[j].n)
			j++
		}
		for ; a > 0; a-- {
			emit(editDelete, 0)
			i++
		}
	}
	if j < len(new) {
		emit(editInsert, len(body)-new[j].at)
	}
	if i < len(old) {
		emit(editEnd, 0)
	}
	m.planned = literals <= limit
	return literals
}

// Discard drops what Plan worked out.
func (m *Body) Discard() { m.planned = false }

// goesOn tells whether template and body are alike behind a number: their next
// tokens are the same, or both are numbers, or both end.
func (m *Body) goesOn(i, j int, same func(i, j int) bool) bool {
	switch last := i+1 == len(m.old); {
	case last || j+1 == len(m.new):
		return last && j+1 == len(m.new)
	case same(i+1, j+1):
		return true
	default:
		return m.old[i+1].kind == tokenNumber && m.new[j+1].kind == tokenNumber
	}
}

// meetPatience is how many comparisons meet makes for a plan, besides two for
// each token: enough for bodies that are alike, and little for those that are
// not.
const meetPatience = 2000

// meet looks for the nearest pair of places, a tokens on in the template and b
// in the body, from which they agree again. It returns -1 when there is none
// near.
func (m *Body) meet(i, j int, same func(i, j int) bool) (a, b int) {
	const reach = 24
	for sum := 1; sum <= 2*reach; sum++ {
		for a := max(0, sum-reach); a <= min(sum, reach); a++ {
			b := sum - a
			if m.patience--; m.patience < 0 {
				return -1, 0
			}
			if i+a >= len(m.old) || j+b >= len(m.new) || !same(i+a, j+b) {
				continue
			}
			if m.new[j+b].n >= 3 {
				return a, b
			}
			if i+a+1 >= len(m.old) || j+b+1 >= len(m.new) {
				if i+a+1 == len(m.old) && j+b+1 == len(m.new) {
					return a, b
				}
				continue
			}
			if same(i+a+1, j+b+1) {
				return a, b
			}
		}
	}
	return -1, 0
}

// alike tells whether new can be written as old plus a difference.
func alike(old, new []byte) bool {
	var buf [maxDigits + 2]byte
	o, n := parseNumber(old), parseNumber(new)
	return o.frac == n.frac && bytes.Equal(appendLike(buf[:0], n.value, o), new)
}

// Code codes body as an edit of template. A reading Coder ignores body and
// appends to dst, to which at most limit bytes are added; a writing Coder
// returns dst as it was. Template and body are borrowed for the call. Plain bytes
// go to the Coder's Literals, or come from there.
func (m *Body) Code(c *Coder, dst, template, body []byte, clock Clock, limit int) ([]byte, error) {
	start := len(dst)
	if !c.reading && !m.planned {
		m.Plan(template, body, len(body))
	}
	m.planned = false
	var ctx bodyContext
	out := dst // reading: what there is of the body; writing: unused
	done := 0  // writing: how much of body has been coded
	op := 0
	m.SplitCost = 0
	split, begin := m.Split, 0.0
	if !c.reading && split > 0 {
		begin = c.Cost()
	}
	for i := 0; ; {
		if !c.reading {
			out = body[:done]
			if split > 0 && done >= split {
				m.SplitCost, split = c.Cost()-begin, 0
			}
		}
		left := template[i:]
		var kind editKind
		var n int
		if !c.reading && op < len(m.ops) {
			kind, n = m.ops[op].kind, m.ops[op].n
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
			expect := clock.advance(was)
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
