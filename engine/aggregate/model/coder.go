package model

import (
	"math"
	"math/bits"
)

// A Coder writes or reads the control field of one frame: a sequence of binary
// decisions, each coded with the probability that its Bit has learned (SPEC.md
// section 3). Encoding and decoding go through the same calls, so that a
// frame's syntax is written once and the two sides cannot drift apart: every
// method takes the value to write and returns the value written or read; a
// reading Coder ignores the value it is given.
//
// A decision costs minus the logarithm of the probability that it was given: 0.014
// bits where it was expected at 99 %, 6.6 where the other one was. Costs add up to
// fractions, and only the sum becomes bytes: a frame of 300 decisions that all come as
// expected has a control field of one or two.
//
// A Coder never fails and never reads outside its input: past the end it reads
// zero bytes, and Overrun tells by how many.
type Coder struct {
	// Literals are the bytes that go beside the control field: a writer's so far, to
	// which Literal appends, or what is left of a reader's, borrowed. Write and Read leave
	// none; whoever has some sets them then.
	Literals []byte

	reading bool
	lo, hi  uint64 // the current interval, both ends inclusive: all that could still follow
	x       uint64 // reading: the next bytes of input, between lo and hi for well-formed input
	buf     []byte // writing: the output; reading: the rest of the input, borrowed
	kept    int    // writing: length of buf at Write
	over    int    // reading: bytes past the end
}

// Write makes c a writing Coder that appends to dst, which it owns until Finish.
// Nothing is kept of what c was before.
func (c *Coder) Write(dst []byte) {
	*c = Coder{hi: math.MaxUint64, buf: dst, kept: len(dst)}
}

// Read makes c a reading Coder over the control field src, borrowed until the last
// read. Nothing is kept of what c was before.
func (c *Coder) Read(src []byte) {
	*c = Coder{reading: true, hi: math.MaxUint64, buf: src}
	for range 8 {
		c.x = c.x<<8 | uint64(c.next())
	}
}

// Reading tells which of the two c is: true after Read, false after Write.
func (c *Coder) Reading() bool { return c.reading }

// Overrun returns how many bytes were read past the end of the input. A well-formed
// control field needs up to 8: a reader looks eight bytes ahead, and Finish leaves out
// zeros. With more, what was read is not what anybody wrote.
func (c *Coder) Overrun() int { return c.over }

// next returns the next byte of the input, 0 past its end.
func (c *Coder) next() byte {
	if len(c.buf) == 0 {
		c.over++
		return 0
	}
	b := c.buf[0]
	c.buf = c.buf[1:]
	return b
}

// tail returns the bytes that end a control field, the first n of v: as few as name
// a point of the interval with zeros behind them, which the reader supplies.
func (c *Coder) tail() (v uint64, n int) {
	for v < c.lo {
		n++
		v = c.hi &^ (math.MaxUint64 >> (8 * n))
	}
	return v, n
}

// Finish ends writing and returns dst with the control field appended. What it ends
// with is as short as it can be, 0 to 8 bytes: a reader goes on with zeros by itself.
func (c *Coder) Finish() []byte {
	v, n := c.tail()
	for i := range n {
		c.buf = append(c.buf, byte(v>>(56-8*i)))
	}
	return c.buf
}

// Complete tells whether a reading Coder has come to the end of its input, and the
// input ends as Finish would end it.
func (c *Coder) Complete() bool {
	v, n := c.tail()
	return c.x == v && len(c.buf)+8-c.over == n
}

// Cost returns what has been written so far, in bits, to a fraction of one, for a
// writer's statistics. The difference of two calls is the cost of what was written
// between them. It is the only place here that uses floating point; nothing written
// depends on it.
func (c *Coder) Cost() float64 {
	return float64(len(c.buf)-c.kept)*8 + 64 - math.Log2(float64(c.hi-c.lo)+1)
}

// Len returns the bytes written so far, without those that Finish adds.
func (c *Coder) Len() int { return len(c.buf) - c.kept }

// split codes one decision whose probability of being 1 is p / 2^22, 0 < p < 2^22: a 1
// keeps the lower part of the interval, a 0 the upper, and neither is ever empty. Where
// the ends have come close without sharing their first byte, fewer than 2^22 values
// apart, a 1 keeps only one value: it is dearer than it should be, and still right.
func (c *Coder) split(p uint32, v int) int {
	mid := c.lo + (c.hi-c.lo)>>probBits*uint64(p)
	if c.reading {
		v = 0
		if c.x <= mid {
			v = 1
		}
	}
	if v != 0 {
		c.hi = mid
	} else {
		c.lo = mid + 1
	}
	if (c.lo^c.hi)>>56 == 0 {
		c.shift()
	}
	return v
}

// shift drops the bytes that both ends of the interval have in common.
func (c *Coder) shift() {
	for (c.lo^c.hi)>>56 == 0 {
		if c.reading {
			c.x = c.x<<8 | uint64(c.next())
		} else {
			c.buf = append(c.buf, byte(c.hi>>56))
		}
		c.lo <<= 8
		c.hi = c.hi<<8 | 0xff
	}
}

// Bit codes v, 0 or 1, with m's probability, and teaches m. A reading Coder returns
// what it reads, and so do all that follow.
func (c *Coder) Bit(m *Bit, v int) int {
	v = c.split(m.p(), v)
	m.update(v)
	return v
}

// Bool is Bit for a bool.
func (c *Coder) Bool(m *Bit, v bool) bool {
	b := 0
	if v {
		b = 1
	}
	return c.Bit(m, b) != 0
}

// Bits codes the n low bits of v, 0 <= n <= 64, most significant first, without a model:
// each costs a bit. They are for what is as good as random, such as the initial
// sequence number of a connection.
func (c *Coder) Bits(v uint64, n int) uint64 {
	var out uint64
	for n--; n >= 0; n-- {
		out = out<<1 | uint64(c.split(1<<(probBits-1), int(v>>n)&1))
	}
	return out
}

// Literal codes n bytes, those of b when writing, beside the control field, each at the
// cost of a byte there. It returns them, borrowed from b or from Literals, and reports
// false where a reading Coder has less.
func (c *Coder) Literal(b []byte, n int) ([]byte, bool) {
	if !c.reading {
		c.Literals = append(c.Literals, b[:n]...)
		return b[:n], true
	}
	if n < 0 || n > len(c.Literals) {
		return nil, false
	}
	b, c.Literals = c.Literals[:n], c.Literals[n:]
	return b, true
}

// Index codes v < n, without a model, in as many bits as n-1 has: of 5 templates, in 3.
// A value read can be n or more only in a malformed frame: the caller looks.
func (c *Coder) Index(v, n uint32) uint32 {
	if n <= 1 {
		return 0
	}
	return uint32(c.Bits(uint64(v), bits.Len32(n-1)))
}
