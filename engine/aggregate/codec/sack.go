package codec

import "encoding/binary"

// maxBlocks is how many blocks a SACK option can have (RFC 2018 section 3): 2 and
// 8 bytes for each, in 40 bytes of options.
const maxBlocks = 4

// sackBlocks returns how many blocks a SACK option of n bytes has, 0 where n is no
// length of one.
func sackBlocks(n int) int {
	if n%8 != 2 || n > 2+8*maxBlocks {
		return 0
	}
	return n / 8
}

// A sack is what a SACK option says: blocks of data that came behind a gap, or, as
// the first, data that came twice (RFC 2883).
type sack struct {
	n      int
	blocks [maxBlocks]block
}

// A block is a run of sequence numbers, from left to the one before right.
type block struct{ left, right uint32 }

// take fills s from the blocks that b begins with, and zeroes them there.
func (s *sack) take(b []byte, n int) {
	*s = sack{n: n}
	for i := range s.blocks[:n] {
		s.blocks[i] = block{binary.BigEndian.Uint32(b[8*i:]), binary.BigEndian.Uint32(b[8*i+4:])}
	}
	clear(b[:8*n])
}

func (s *sack) put(b []byte) {
	for i, k := range s.blocks[:s.n] {
		binary.BigEndian.PutUint32(b[8*i:], k.left)
		binary.BigEndian.PutUint32(b[8*i+4:], k.right)
	}
}

// contains tells whether b is inside one of the first n blocks.
func (s *sack) contains(b block, n int) bool {
	for _, k := range s.blocks[:n] {
		if int32(b.left-k.left) >= 0 && int32(k.right-b.right) >= 0 {
			return true
		}
	}
	return false
}

// holdSack returns where the n blocks of another segment are kept, of the frame that is
// written or the group that is read.
func (x *codec) holdSack(n int) *sack {
	x.sacks = append(x.sacks, sack{n: n})
	return &x.sacks[len(x.sacks)-1] // which stays where it is, also when the array grows
}

// codeSacks codes the SACK blocks of those members that have them: the first of
// each, then the second. What comes first of a block is its right edge.
func (x *codec) codeSacks(g *Group) error {
	for k := range maxBlocks {
		x.sacked = x.sacked[:0]
		for i := range g.Members {
			mb := &g.Members[i]
			if mb.layout.blocks <= k {
				continue
			}
			if mb.sack == nil { // at the reading end
				mb.sack = x.holdSack(mb.layout.blocks)
			}
			x.sacked = append(x.sacked, uint32(i))
		}
		if len(x.sacked) == 0 {
			return nil
		}
		member := func(i int) *Member { return &g.Members[x.sacked[i]] }
		which := min(k, 1)
		x.codeWays(len(x.sacked), ways{
			column: &x.models.sackRight[which], explicit: &x.models.rightOther, other: rightOther,
			field:   func(i int) *uint32 { return &member(i).sack.blocks[k].right },
			predict: func(i, way int) (uint32, bool) { return x.predictRight(member(i), k, way) },
			base:    func(i int) uint32 { return x.baseRight(member(i), k) },
		})
		x.codeWays(len(x.sacked), ways{
			column: &x.models.sackLeft[which], explicit: &x.models.leftOther, other: leftOther,
			field:   func(i int) *uint32 { return &member(i).sack.blocks[k].left },
			predict: func(i, way int) (uint32, bool) { return x.predictLeft(member(i), k, way) },
			base:    func(i int) uint32 { return member(i).sack.blocks[k].right },
		})
	}
	return nil
}

// The ways to write where a block ends and where it begins. An end is that of one
// of the other side's last segments, of a block of the flow's last segment, or what
// the segment acknowledges, which is where data ends that came twice.
const (
	rightEdge  = 0 // to rightEdge+3: where the other side's segments ended, newest first
	rightGuess = 4 // as a block of the last segment; of a block behind the first this is way 0
	rightAck   = 5
	rightOther = 6 // a difference to that block, to the newest edge or to the acknowledgement follows

	leftGuess = 0 // as that block, or as the next
	leftEdge  = 1 // where the segment began that ended where the block does
	leftEnd   = 2 // to leftEnd+3: where the other side's segments ended, newest first
	leftOther = 6 // a difference to where the block ends follows
)

// guessBlock returns the block of the flow's last segment that its k-th one now is
// likely to be, or to have grown from: the first above what is acknowledged that is
// inside none of those before it. Receivers repeat their blocks, the newest first.
func guessBlock(mb *Member, k int) (block, bool) {
	if mb.context.odd == nil {
		return block{}, false
	}
	last := &mb.context.odd.sack
	for _, b := range last.blocks[:last.n] {
		if int32(b.right-mb.ack) > 0 && !mb.sack.contains(b, k) {
			return b, true
		}
	}
	return block{}, false
}

func (s *state) predictRight(mb *Member, k, way int) (uint32, bool) {
	if k > 0 && way <= rightGuess { // mostly one that was there before
		way = (way + rightGuess) % (rightGuess + 1)
	}
	if way == rightAck {
		return mb.ack, true
	}
	if way == rightGuess {
		b, ok := guessBlock(mb, k)
		return b.right, ok
	}
	edges := s.edges(mb.context)
	if way-rightEdge < len(edges) {
		return edges[way-rightEdge].end, true
	}
	return 0, false
}

// baseRight returns what an end is compared with that is none of those predicted.
func (s *state) baseRight(mb *Member, k int) uint32 {
	if b, ok := guessBlock(mb, k); ok {
		return b.right
	}
	if edges := s.edges(mb.context); len(edges) > 0 {
		return edges[0].end
	}
	return mb.ack
}

func (s *state) predictLeft(mb *Member, k, way int) (uint32, bool) {
	if way == leftGuess {
		if b, ok := guessBlock(mb, k); ok {
			return b.left, true
		}
		way = leftEdge
	}
	edges := s.edges(mb.context)
	if way == leftEdge {
		for _, e := range edges {
			if e.end == mb.sack.blocks[k].right {
				return e.begin, true
			}
		}
		return 0, false
	}
	if way-leftEnd < len(edges) {
		return edges[way-leftEnd].end, true
	}
	return 0, false
}
