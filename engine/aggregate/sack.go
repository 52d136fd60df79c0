package aggregate

import (
	"encoding/binary"

	"sheaf/engine/aggregate/model"
)

// maxBlocks is how many blocks a SACK option can have (RFC 2018 section 3): 2 and
// 8 bytes for each, in 40 bytes of options.
const maxBlocks = 4

// sackBlocks returns how many blocks a SACK option of n bytes has, 0 where that is no
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

// hold returns where the blocks of another segment are kept, of the frame that is
// written or the group that is read.
func (m *memory) hold(n int) *sack {
	m.sacks = append(m.sacks, sack{n: n})
	return &m.sacks[len(m.sacks)-1] // which stays where it is, also when the array grows
}

// codeSacks codes the SACK blocks of those members that have them: the first of
// each, then the second.
func (m *memory) codeSacks(c *model.Coder, g *group) {
	for k := range maxBlocks {
		m.sacked = m.sacked[:0]
		for i := range g.members {
			mb := &g.members[i]
			if mb.layout.blocks <= k {
				continue
			}
			if k == 0 && c.Reading() {
				mb.sack = m.hold(mb.layout.blocks)
			}
			m.sacked = append(m.sacked, uint32(i))
		}
		if len(m.sacked) == 0 {
			return
		}
		member := func(i int) *member { return &g.members[m.sacked[i]] }
		which := min(k, 1)
		m.codeWays(c, len(m.sacked), ways{
			column: &m.models.sackRight[which], explicit: &m.models.sackOther[0], other: rightOther,
			field:  func(i int) *uint32 { return &member(i).sack.blocks[k].right },
			expect: func(i, way int) (uint32, bool) { return m.expectRight(member(i), k, way) },
			base:   func(i int) uint32 { return m.baseRight(member(i), k) },
		})
		m.codeWays(c, len(m.sacked), ways{
			column: &m.models.sackLeft[which], explicit: &m.models.sackOther[1], other: leftOther,
			field:  func(i int) *uint32 { return &member(i).sack.blocks[k].left },
			expect: func(i, way int) (uint32, bool) { return m.expectLeft(member(i), k, way) },
			base:   func(i int) uint32 { return member(i).sack.blocks[k].right },
		})
	}
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
func guessBlock(mb *member, k int) (block, bool) {
	if mb.flow.odd == nil {
		return block{}, false
	}
	last := &mb.flow.odd.sack
	for _, b := range last.blocks[:last.n] {
		if int32(b.right-mb.ack) > 0 && !mb.sack.contains(b, k) {
			return b, true
		}
	}
	return block{}, false
}

// edges returns where the last segments of the flow's other direction ended, newest
// first.
func (m *memory) edges(f *flow) []edge {
	v := m.view(f)
	if v == nil {
		return nil
	}
	return v.edges[:v.count]
}

func (m *memory) expectRight(mb *member, k, way int) (uint32, bool) {
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
	edges := m.edges(mb.flow)
	if way-rightEdge < len(edges) {
		return edges[way-rightEdge].end, true
	}
	return 0, false
}

// baseRight returns what an end is compared with that is none of those expected.
func (m *memory) baseRight(mb *member, k int) uint32 {
	if b, ok := guessBlock(mb, k); ok {
		return b.right
	}
	if edges := m.edges(mb.flow); len(edges) > 0 {
		return edges[0].end
	}
	return mb.ack
}

func (m *memory) expectLeft(mb *member, k, way int) (uint32, bool) {
	if way == leftGuess {
		if b, ok := guessBlock(mb, k); ok {
			return b.left, true
		}
		way = leftEdge
	}
	edges := m.edges(mb.flow)
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
