package model

// Text is the model for literal bytes, and for the small decisions beside them in a
// Body: each bit of a byte has its probability mixed from three Bits, found by hashing
// what came before at three depths, with weights that are learned too (SPEC.md 3.6).
// All arithmetic is on integers, so that both ends, whatever their machine, know the
// same. Its zero value is untaught; it takes half a megabyte.
//
// A JSON object of 113 bytes under its place and the two bytes before costs 5.5 bits
// a byte the first time and 0.55 the second: what is new costs most of its size, and
// once is enough to know it again. TestTextCost measures it.
type Text struct {
	table   [textBits]Bit               // of bytes, found by the hash of their contexts
	fields  [textBits]Bit               // of all else, so that bytes do not push it out
	weights [textSets][textInputs]int32 // less textWeight, so that the zero value is untaught
}

const (
	// textBits is how many Bits there are for contexts to share: 256 kB for bytes and as
	// much for the rest, which a direction of a lane has once. A quarter of that makes
	// the frames of testdata/recorded 0.7 % longer, four times as much 0.3 % shorter;
	// most of it is RabbitMQ's, whose headers are long.
	textBits   = 1 << 16
	textInputs = 3
	textSets   = 4 // one for the start and one for each kind of byte before

	// textWeight is what every input weighs at first, 0.4 in units of 2^-16: three that
	// say the same are a little surer than each of them. From 0.3 to 0.6 nothing changes
	// by more than 0.01 %, since weights are learned.
	textWeight = 1 << 16 * 4 / 10

	// textRate is how fast weights are learned. Half of it is as good, twice as much
	// makes frames 0.1 % longer, and weights that stay as they are 0.3 %.
	textRate = 6

	textWeightLimit = 1 << 20 // sixteen times as sure as one input
)

// at returns the Bit that a context other than a byte's has. Contexts may share one;
// both ends find the same.
func (t *Text) at(ctx uint32) *Bit { return &t.fields[ctx*0x9e3779b1>>16] }

// Uint codes an unsigned number whose model belongs to ctx, like Int.Uint, but
// with four learned bits below the leading one: it is used for lengths and for how far
// numbers moved, where one place of a body has its own few values.
func (t *Text) Uint(c *Coder, ctx uint32, v uint64) uint64 {
	ctx *= 0x2545f491
	n := 0
	for n < 64 && c.Bool(t.at(ctx+uint32(n)), v>>n != 0) {
		n++
	}
	if n <= 1 {
		return uint64(n)
	}
	out := uint64(1)
	i := n - 2
	for ; i >= 0 && i > n-2-4; i-- {
		out = out<<1 | uint64(c.Bit(t.at(ctx+uint32(n)<<16^uint32(out)<<4^0x5bd1e995), int(v>>i)&1))
	}
	if i >= 0 {
		out = out<<(i+1) | c.Bits(v&(1<<(i+1)-1), i+1)
	}
	return out
}

// Byte codes one byte under three contexts, numbers that say what the byte depends on,
// with the mixing weights of a set below 4. Coding takes some 150 ns a byte.
func (t *Text) Byte(c *Coder, set int, ctx [textInputs]uint32, b byte) byte {
	w := &t.weights[set]
	node := uint32(1)
	for i := 7; i >= 0; i-- {
		var in [textInputs]*Bit
		var st [textInputs]int32
		sum := int64(0)
		for k := range in {
			in[k] = &t.table[(ctx[k]+node*0x3d4d51cb)*0x9e3779b1>>16]
			st[k] = stretch(in[k].p() >> (probBits - 12))
			sum += int64(w[k]+textWeight) * int64(st[k])
		}
		p := squash(int32(sum >> 16))
		v := c.split(uint32(p)<<(probBits-12)+1<<(probBits-13), int(b>>i)&1)
		miss := int32(v<<12) - p
		for k := range in {
			in[k].update(v)
			w[k] = max(-textWeightLimit, min(textWeightLimit, w[k]+(st[k]*miss*textRate+1<<9)>>10))
		}
		node = node<<1 | uint32(v)
	}
	return byte(node)
}

// squash returns 4096 / (1 + e^(-x/256)), between 1 and 4095: the probability, in 12
// bits, of what is stretched to x. squash(0) is 2047, squash(256) 2994.
func squash(x int32) int32 {
	if x > 2047 {
		return 4095
	}
	if x < -2047 {
		return 1
	}
	w := x & 127
	i := x>>7 + 16
	return (squashTable[i]*(128-w) + squashTable[i+1]*w + 64) >> 7
}

// squashTable holds squash at multiples of 128, from -2048.
var squashTable = [33]int32{1, 2, 3, 6, 10, 16, 27, 45, 73, 120, 194, 310, 488, 747, 1101,
	1546, 2047, 2549, 2994, 3348, 3607, 3785, 3901, 3975, 4022,
	4050, 4068, 4079, 4085, 4089, 4092, 4093, 4094}

// stretch is the inverse of squash, for a probability of 12 bits. Stretched, what is
// nearly certain is far from even odds, so that an input that is sure counts for more
// when inputs are added.
func stretch(p uint32) int32 { return int32(stretchTable[p]) }

var stretchTable = func() (t [4096]int16) {
	next := 0
	for x := int32(-2047); x <= 2047; x++ {
		v := int(squash(x))
		for ; next <= v; next++ {
			t[next] = int16(x)
		}
	}
	for ; next < 4096; next++ {
		t[next] = 2047
	}
	return t
}()
