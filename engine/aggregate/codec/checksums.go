package codec

// sumMode says what the transport checksum is, so that it can mostly be left out.
type sumMode uint8

const (
	sumRight    sumMode = iota // what the bytes compute to
	sumOther                   // right too, with the other of the two ways to write zero
	sumPartial                 // the pseudo-header only: the sender left the rest to its network card
	sumZero                    // zero: none (UDP, RFC 768)
	sumExplicit                // anything else: 16 bits follow
	numSumModes
)

// ipSumMode says what the IPv4 header checksum is: right, but for what a host
// sends to itself or leaves to its network card, which is mostly one value, 0.
type ipSumMode uint8

const (
	ipSumRight    ipSumMode = iota // what the header computes to
	ipSumSame                      // not right, and as the flow's last one that was not
	ipSumExplicit                  // anything else: 16 bits follow
	numIPSumModes
)

// sums returns both checksum modes as one number.
func (f *Fields) sums() uint8 { return uint8(numSumModes)*uint8(f.ipSumMode) + uint8(f.sumMode) }

// unresolved marks fields whose checksum mode is still to be found.
const unresolved sumMode = 0xff

// resolveIP finds the header checksum from its mode or, while encoding, whether
// it is right; if not, Encoder.chooseSums finds which mode it has.
func (f *Fields) resolveIP(right uint16) {
	switch {
	case f.sumMode != unresolved:
		if f.ipSumMode == ipSumRight {
			f.ipSum = right
		}
	case f.ipSum == right:
		f.ipSumMode = ipSumRight
	default:
		f.ipSumMode = ipSumExplicit
	}
}

// resolve finds the checksum from its mode or, while encoding, the mode from
// the checksum.
func (f *Fields) resolve(right, partial uint16) {
	other := right
	if right == 0 || right == 0xffff {
		other = ^right
	}
	switch f.sumMode {
	case unresolved:
		switch f.sum {
		case right:
			f.sumMode = sumRight
		case other:
			f.sumMode = sumOther
		case partial:
			f.sumMode = sumPartial
		case 0:
			f.sumMode = sumZero
		default:
			f.sumMode = sumExplicit
		}
	case sumRight:
		f.sum = right
	case sumOther:
		f.sum = other
	case sumPartial:
		f.sum = partial
	case sumZero:
		f.sum = 0
	}
}

// codeSums codes what the checksums are, not their bytes: a right one is computed again
// at the far end, from the same packet. Any other costs 16 bits. Both modes of a segment are one number: where neither is as last time
// the other mostly is not either.
func (x *codec) codeSums(g *Group) error {
	res := x.column(len(g.Members))
	for i := range x.written(g) {
		mb := &g.Members[i]
		res[i] = int64(mb.sums()) - int64(mb.context.sums)
	}
	x.models.sums[g.payload].Code(&x.coder, res)
	limit := int64(numSumModes)
	if g.Kind.v4() {
		limit *= int64(numIPSumModes)
	}
	for i := range g.Members {
		mb := &g.Members[i]
		mode := int64(mb.context.sums) + res[i]
		if mode < 0 || mode >= limit {
			return invalid("checksum mode")
		}
		mb.sumMode, mb.ipSumMode = sumMode(mode%int64(numSumModes)), ipSumMode(mode/int64(numSumModes))
		switch mb.ipSumMode {
		case ipSumSame:
			mb.ipSum = mb.context.ipSum
		case ipSumExplicit:
			mb.ipSum = uint16(x.coder.Bits(uint64(mb.ipSum), 16))
		}
		if mb.sumMode == sumExplicit {
			mb.sum = uint16(x.coder.Bits(uint64(mb.sum), 16))
		}
	}
	return nil
}
