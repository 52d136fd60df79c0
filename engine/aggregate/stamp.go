package aggregate

import (
	"math/bits"

	"sheaf/engine/aggregate/model"
)

// codeStamp codes the timestamps (RFC 7323): the flow's last, moved on by the
// clock. All flows tick together, nearly, so what one is ahead of the clock the
// next one will be too: a member is compared with the one before. Where a broker
// shuffles its subscribers for each message, the members of the set are not in
// the order of time: then all are compared with the first.
func (m *memory) codeStamp(c *model.Coder, g *group, pi int) {
	ahead := m.room(len(g.members)) // of the clock, for those who have a timestamp known before
	for i := range g.members {
		mb := &g.members[i]
		if mb.layout.stamp == 0 {
			continue
		}
		if !mb.flow.stamped {
			mb.tsval = uint32(c.Bits(uint64(mb.tsval), 32))
		} else if !c.Reading() {
			ahead[i] = int64(int32(mb.tsval - mb.flow.offset - m.clock))
		}
	}
	shuffled := len(g.members) >= setMinimum &&
		c.Bool(&m.models.shuffled[pi], !c.Reading() && m.shuffled(g, ahead))
	column := &m.models.columns[pi][colStamp]
	if shuffled {
		column = &m.models.scattered[pi]
	}
	if !c.Reading() {
		last := int32(m.ahead)
		first := true
		for i := range g.members {
			if !g.members[i].ticks() {
				continue
			}
			now := int32(ahead[i])
			ahead[i] = int64(now - last)
			if !shuffled || first {
				last, first = now, false
			}
		}
	}
	column.Code(c, ahead)
	first := true
	moved := uint32(0) // offsets of this group so far, which those behind move along with
	for i := range g.members {
		mb := &g.members[i]
		f := mb.flow
		if mb.layout.stamp == 0 {
			continue
		}
		if !f.stamped {
			f.offset = mb.tsval - m.clock - m.ahead
			continue
		}
		surprise := int32(ahead[i])
		if c.Reading() {
			mb.tsval = m.ahead + uint32(surprise) + f.offset + m.clock
		}
		if !shuffled || first {
			m.ahead += uint32(surprise)
			by, all := f.adjust(surprise)
			f.offset += moved + by
			if all {
				moved += by
			}
			first = false
		}
	}
}

// ticks tells whether a member has a timestamp, and one to compare it with.
func (mb *member) ticks() bool { return mb.layout.stamp != 0 && mb.flow.stamped }

// shuffled tells whether the members' timestamps are nearer to the first than
// each to the one before.
func (m *memory) shuffled(g *group, ahead []int64) bool {
	near, far := 0, 0
	var first, last int32
	begun := false
	for i := range g.members {
		if !g.members[i].ticks() {
			continue
		}
		now := int32(ahead[i])
		if begun {
			near += effort(now - last)
			far += effort(now - first)
		} else {
			first, begun = now, true
		}
		last = now
	}
	return far < near
}

// effort is about what a difference costs, in half bits.
func effort(d int32) int {
	if d == 0 {
		return 0
	}
	return 3 + 2*bits.Len32(uint32(max(d, -d)))
}

// adjust returns by how much a flow's offset has to move, where its timestamps
// came out too high, or too low, many times in a row: that is its host's clock or
// a bad guess at its SYN, and not the moment. Where they did so by the same each
// time, the members behind it, which are compared with it, have to move as well:
// else the next one would stand out in its place.
func (f *flow) adjust(surprise int32) (by uint32, all bool) {
	sign := int8(1)
	if surprise < 0 {
		sign, surprise = -1, -surprise
	}
	least := uint16(min(surprise, 1<<16-1))
	switch {
	case surprise == 0:
		f.streak = 0
		return 0, false
	case f.streak*sign <= 0:
		f.streak, f.least, f.uneven = sign, least, false
	default:
		f.streak += sign
		f.uneven = f.uneven || f.least != least
		f.least = min(f.least, least)
	}
	if n := f.streak * sign; n < maxStreak || n < maxEven && !f.uneven {
		return 0, false
	}
	f.streak = 0
	return uint32(int32(f.least) * int32(sign)), !f.uneven
}

const (
	// maxStreak is how many times in a row is many, maxEven how many times by
	// the same: moving a whole group for what was chance costs more.
	maxStreak = 5
	maxEven   = 8
)

// expectEcho returns the echoed timestamp that way means.
func (m *memory) expectEcho(mb *member, way int) (uint32, bool) {
	f := mb.flow
	v := m.view(f)
	if way == echoSame {
		return f.echo, true
	}
	if !f.stamped && (v == nil || v.count == 0) {
		return 0, way == echoEdge // a SYN echoes nothing
	}
	if v == nil || v.count == 0 {
		return f.echo + m.clock - f.clock, way == echoEdge
	}
	if way == echoNew {
		return v.stamp, true
	}
	if mb.ack == f.ack && f.started {
		return v.stamp, way == echoEdge
	}
	for k := range v.count {
		if v.edges[k].end != mb.ack {
			continue
		}
		if way == echoOlder {
			k++
		}
		if k < v.count {
			return v.edges[k].stamp, true
		}
		break
	}
	return 0, false
}

func (m *memory) codeEcho(c *model.Coder, g *group, pi int) {
	m.codeWays(c, len(g.members), ways{
		column: &m.models.columns[pi][colEcho], explicit: &m.models.explicit[pi][1], other: echoOther,
		field: func(i int) *uint32 { return &g.members[i].tsecr },
		expect: func(i, way int) (uint32, bool) {
			if mb := &g.members[i]; mb.layout.stamp != 0 {
				return m.expectEcho(mb, way)
			}
			return 0, true
		},
		base: func(i int) uint32 {
			f := g.members[i].flow
			if v := m.view(f); v != nil {
				return v.stamp
			}
			return f.echo
		},
	})
}
