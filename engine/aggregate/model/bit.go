package model

import "math/bits"

const (
	probBits  = 22 // of a Bit: its probability
	countBits = 10 // of a Bit: how often it was taught

	// countLimit is how many lessons a Bit counts, and so how slow it gets: the share
	// of its error that a lesson corrects falls from 1/1.5 to 1/256.5. Where nothing
	// changes a high limit is cheaper, since a Bit that is sure costs less each time;
	// where traffic changes a low one is, which learns that sooner. 1000 makes the
	// frames of testdata/recorded 0.8 % longer, 60 makes them 1.3 % shorter; in captures
	// of 20 to 40 s it is 0.6 % and 0.3 %, and a fan-out to 500 gets 0.7 % longer with 60.
	countLimit = 255
)

// A Bit is the learned probability of one kind of binary decision: 22 bits of
// probability of a 1 and 10 bits of how often it was taught (SPEC.md 3.2). The
// topmost bit is kept inverted, so that the zero value is even odds, untaught.
//
// A decision that is always the same costs 1 bit the first time, 0.26 the second,
// 0.038 the tenth and 0.0036 the hundredth; when it comes out otherwise after a
// thousand times, 13.5. One that is 1 in a hundred times costs 0.079 bits on average,
// where the least possible is 0.081.
type Bit uint32

// evenOdds is a probability of one half where a Bit keeps it.
const evenOdds Bit = 1 << (probBits - 1) << countBits

// p returns the probability of a 1 in units of 2^-22.
func (m Bit) p() uint32 { return uint32(m^evenOdds) >> countBits }

// rates[n] is 2^16 / (n + 1.5), the share of the error that the n-th lesson corrects,
// from 0, in units of 2^-16. With 1 / (n + 1) a Bit would be the share of ones among
// its lessons; the half more keeps one lesson from making it certain.
var rates = func() (r [countLimit + 1]uint32) {
	for n := range r {
		r[n] = uint32(1 << 17 / (2*n + 3))
	}
	return r
}()

// update teaches m that a decision was v.
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
// under the bits before it. The number of nodes is a power of two. One of 256 symbols
// costs 8 bits untaught; one that is always the same 0.03 the hundredth time.
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

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
