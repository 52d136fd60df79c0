package model

// Text is the model for literal bytes: each bit's probability is mixed from
// three Bits, found by hashing what came before at three depths, with weights
// that are learned too (SPEC.md 3.6). All arithmetic is on integers, so that
// both ends, whatever their machine, know the same. Its zero value is untaught.
type Text struct {
	table   [textSlots]Bit              // shared by the contexts of bytes
	fields  [textSlots]Bit              // and by those of all else
	weights [textSets][textInputs]int32 // less textWeight
}

const (
	textSlots  = 1 << 16
	textInputs = 3
	textSets   = 4
	textWeight = 1 << 16 * 4 / 10 // what every input starts with

	textWeightLimit = 1 << 20 // sixteen times as sure as one input
)

// at returns the Bit of a context.
func (t *Text) at(ctx uint32) *Bit { return &t.fields[ctx*0x9e3779b1>>16] }

// Uint codes an unsigned number whose model belongs to ctx, like Int.Uint, but
// with four learned bits below the leading one.
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

// Byte codes one byte under three contexts, with the mixing weights of set.
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
			w[k] = max(-textWeightLimit, min(textWeightLimit, w[k]+(st[k]*miss*6+1<<9)>>10))
		}
		node = node<<1 | uint32(v)
	}
	return byte(node)
}

// squash returns 4096 / (1 + e^(-x/256)), between 1 and 4095.
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

// stretch is the inverse of squash, for a probability of 12 bits.
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
