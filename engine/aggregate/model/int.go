package model

import "math/bits"

// modelled is how many bits below the leading one of a number are learned. Each one
// more doubles an Int, which has 2.3 kB. With 2 the frames of testdata/recorded are
// 0.8 % longer, with 4 they are 0.5 % shorter; in captures of 20 to 40 s it is 0.2 %
// and 0.1 %.
const modelled = 3

// An Int codes numbers: their length in bits in unary, then the bits below the
// leading one, of which the first three are learned (SPEC.md 3.4). Its zero value is
// untaught.
//
// Small numbers and those that come again are cheap: 0 costs 1 bit untaught, 7 costs
// 6 and 1000 costs 20; at the hundredth time 7 costs 0.02 bits and 1000 costs 6.05,
// as its last 6 bits are not learned. Numbers below 256 of which none is more likely
// than another cost 8.04.
type Int struct {
	length [64]Bit                // whether a number is longer than so many bits
	below  [65][1 << modelled]Bit // by length, then by the learned bits before
	sign   [2]Bit                 // whether it is negative, by whether it is above 1
}

// Uint codes v.
func (m *Int) Uint(c *Coder, v uint64) uint64 {
	want := bits.Len64(v)
	n := 0
	for n < 64 && c.Bit(&m.length[n], b2i(want > n)) != 0 {
		n++
	}
	if n <= 1 {
		return uint64(n)
	}
	out := uint64(1)
	node := 1
	i := n - 2
	for ; i >= 0 && i > n-2-modelled; i-- {
		b := c.Bit(&m.below[n][node], int(v>>i)&1)
		node = node<<1 | b
		out = out<<1 | uint64(b)
	}
	if i >= 0 {
		out = out<<(i+1) | c.Bits(v&(1<<(i+1)-1), i+1)
	}
	return out
}

// Int codes v: its magnitude, which of -2^63 is 2^63, then its sign, but of 0.
func (m *Int) Int(c *Coder, v int64) int64 {
	mag := m.Uint(c, magnitude(v))
	if mag == 0 {
		return 0
	}
	return m.signed(c, mag, v < 0)
}

// nonzero codes v, which is not 0: its magnitude is at least 1, so one less is coded.
func (m *Int) nonzero(c *Coder, v int64) int64 {
	return m.signed(c, m.Uint(c, magnitude(v)-1)+1, v < 0)
}

// signed codes the sign of a number whose magnitude is known, and returns the number.
func (m *Int) signed(c *Coder, mag uint64, negative bool) int64 {
	if c.Bool(&m.sign[b2i(mag > 1)], negative) {
		return -int64(mag)
	}
	return int64(mag)
}

// magnitude returns how far v is from 0.
func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}
