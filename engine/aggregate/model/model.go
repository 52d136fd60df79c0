package model

import "math/bits"

const (
	probBits  = 22
	countBits = 10
	// countLimit bounds how slowly a Bit learns: its rate falls from 1/1.5 to
	// 1/(countLimit+1.5).
	countLimit = 255
)

// A Bit is the learned probability of one kind of binary decision: 22 bits of
// probability of a 1 and 10 bits of how often it was taught (SPEC.md 3.2). The
// topmost bit is kept inverted, so that the zero value is even odds, untaught.
type Bit uint32

const evenOdds Bit = 1 << (probBits - 1) << countBits

// p returns the probability of a 1 in units of 2^-22.
func (m Bit) p() uint32 { return uint32(m^evenOdds) >> countBits }

// rates[n] is 2^16 / (n + 1.5), the share of the error that the n-th lesson corrects.
var rates = func() (r [countLimit + 1]uint32) {
	for n := range r {
		r[n] = uint32(1 << 17 / (2*n + 3))
	}
	return r
}()

func (m *Bit) update(v int) {
	p, n := m.p(), uint32(*m)&(1<<countBits-1)
	if v != 0 {
		p += uint32(uint64(1<<probBits-1-p) * uint64(rates[n]) >> 16)
	} else {
		p -= uint32(uint64(p) * uint64(rates[n]) >> 16)
	}
	if n < countLimit {
		n++
	}
	*m = Bit(p<<countBits|n) ^ evenOdds
}

// Symbol codes a symbol v < len(nodes), most significant bit first, each bit
// under the bits before it. The number of nodes is a power of two.
func (c *Coder) Symbol(nodes []Bit, v uint32) uint32 {
	n := uint32(len(nodes))
	node := uint32(1)
	for node < n {
		// the remaining bits of v are those below the ones already in node
		shift := bits.LeadingZeros32(node) - bits.LeadingZeros32(n) - 1
		node = node<<1 | uint32(c.Bit(&nodes[node], int(v>>shift)&1))
	}
	return node - n
}

// modelled is how many bits below the leading one of a number are learned.
const modelled = 3

// An Int codes unsigned numbers: their bit length in unary, then the bits below
// the leading one, of which the first three are learned (SPEC.md 3.4). Its zero
// value is untaught.
type Int struct {
	length [64]Bit
	below  [65][1 << modelled]Bit
	sign   [2]Bit
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

// Int codes v, magnitude first.
func (m *Int) Int(c *Coder, v int64) int64 {
	mag := uint64(v)
	if v < 0 {
		mag = -mag
	}
	mag = m.Uint(c, mag)
	if mag == 0 {
		return 0
	}
	if c.Bit(&m.sign[b2i(mag > 1)], b2i(v < 0)) != 0 {
		return -int64(mag)
	}
	return int64(mag)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
