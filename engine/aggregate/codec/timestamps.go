package codec

// codeTSval codes the TSvals (RFC 7323 section 3.2): the flow's last, moved on by the
// clock. All flows tick together, nearly, so what one is ahead of the clock the
// next one will be too: a member is compared with the one before. Where a broker
// shuffles its subscribers for each message, the members of the set are not in
// the order of time: then all are compared with the first.
//
// With the clock at 100 and offsets of 7000 and 9000, TSvals of 7103 and 9103 are
// differences of 3 and 0: the first is 3 ahead of the clock, and so is the second.
func (x *codec) codeTSval(g *Group) error {
	ahead := x.column(len(g.Members)) // of the clock, for those whose last TSval is known
	for i := range g.Members {
		mb := &g.Members[i]
		if mb.layout.tsval == 0 {
			continue
		}
		if !mb.context.hasTSval {
			mb.tsval = uint32(x.coder.Bits(uint64(mb.tsval), 32))
		} else {
			ahead[i] = int64(int32(mb.tsval - mb.context.offset - x.clock))
		}
	}
	g.shuffled = len(g.Members) >= setMinimum && x.coder.Bool(&x.models.shuffled[g.payload], g.shuffled)
	column := &x.models.tsval[g.payload]
	if g.shuffled {
		column = &x.models.scattered[g.payload]
	}
	last := int32(x.ahead)
	first := true
	for i := range x.written(g) {
		if !g.Members[i].ticks() {
			continue
		}
		now := int32(ahead[i])
		ahead[i] = int64(now - last)
		if !g.shuffled || first {
			last, first = now, false
		}
	}
	column.Code(&x.coder, ahead)
	x.moveOffsets(g, ahead)
	return nil
}

// moveOffsets makes TSvals of what they are ahead of the one they are compared with,
// and corrects the offsets of flows that are wrong many times in a row.
func (x *codec) moveOffsets(g *Group, ahead []int64) {
	first := true
	moved := uint32(0) // offsets of this group so far, which those behind move along with
	for i := range g.Members {
		mb := &g.Members[i]
		f := mb.context
		if mb.layout.tsval == 0 {
			continue
		}
		if !f.hasTSval {
			f.offset = mb.tsval - x.clock - x.ahead
			continue
		}
		surprise := int32(ahead[i])
		mb.tsval = x.ahead + uint32(surprise) + f.offset + x.clock
		if !g.shuffled || first {
			x.ahead += uint32(surprise)
			by, all := f.adjust(surprise)
			f.offset += moved + by
			if all {
				moved += by
			}
			first = false
		}
	}
}

// ticks tells whether a member has a TSval, and one to compare it with.
func (mb *Member) ticks() bool { return mb.layout.tsval != 0 && mb.context.hasTSval }

// adjust returns by how much a flow's offset has to move, where its timestamps
// came out too high, or too low, many times in a row: that is its host's clock or
// a bad guess at its SYN, and not the moment. Where they did so by the same each
// time, the members behind it, which are compared with it, have to move as well:
// else the next one would stand out in its place.
func (f *context) adjust(surprise int32) (by uint32, all bool) {
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
	// the same: moving a whole group for what was chance costs more where hosts tick
	// unevenly. In the captures of testdata 3 and 8 cost -0.08 and +0.05 % for the one, 5
	// and 16 -0.13 and +0.1 % for the other.
	maxStreak = 5
	maxEven   = 8
)

// The ways to write a TSecr.
const (
	tsecrEdge  = 0 // the TSval of the segment acknowledged, or the newest
	tsecrNew   = 1 // the other side's newest TSval
	tsecrSame  = 2 // as last time
	tsecrOlder = 3 // the TSval of the segment before the one acknowledged
	tsecrOther = 4 // a difference to the newest, or to last time, follows
)

// predictTSecr returns the TSecr that way means. Where the other side's last segments
// ended at 900 with a TSval of 50 and at 800 with 41, an acknowledgement of 900 has a
// TSecr of 50 (tsecrEdge) or, where the host delayed it, of 41 (tsecrOlder).
func (s *state) predictTSecr(mb *Member, way int) (uint32, bool) {
	f := mb.context
	v := s.view(f)
	if way == tsecrSame {
		return f.tsecr, true
	}
	if !f.hasTSval && (v == nil || v.count == 0) {
		return 0, way == tsecrEdge // a SYN has none
	}
	if v == nil || v.count == 0 {
		return f.tsecr + s.clock - f.clock, way == tsecrEdge
	}
	if way == tsecrNew {
		return v.tsval, true
	}
	if mb.ack == f.ack && f.started {
		return v.tsval, way == tsecrEdge
	}
	for k := range v.count {
		if v.edges[k].end != mb.ack {
			continue
		}
		if way == tsecrOlder {
			k++
		}
		if k < v.count {
			return v.edges[k].tsval, true
		}
		break
	}
	return 0, false
}

// codeTSecr codes the TSecrs: mostly the TSval of the segment that is acknowledged.
func (x *codec) codeTSecr(g *Group) error {
	x.codeWays(len(g.Members), ways{
		column: &x.models.tsecr[g.payload], explicit: &x.models.tsecrOther[g.payload], other: tsecrOther,
		field: func(i int) *uint32 { return &g.Members[i].tsecr },
		predict: func(i, way int) (uint32, bool) {
			if mb := &g.Members[i]; mb.layout.tsval != 0 {
				return x.predictTSecr(mb, way)
			}
			return 0, true
		},
		base: func(i int) uint32 {
			f := g.Members[i].context
			if v := x.view(f); v != nil {
				return v.tsval
			}
			return f.tsecr
		},
	})
	return nil
}
