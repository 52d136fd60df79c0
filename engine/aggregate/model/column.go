package model

// A Column codes one header or body field across the members of a group, as
// the differences from what was predicted for each member. What every member
// has as predicted costs a small fraction of a bit; so does a difference that
// all members share, and runs of differences cost their ends (SPEC.md 3.5). Its
// zero value is untaught.
type Column struct {
	zero, same [2]Bit
	hit        [8]Bit
	again      [2]Bit
	value      Int
	last       int
}

// Code codes the differences in place: a reading Coder fills res.
func (m *Column) Code(c *Coder, res []int64) {
	if len(res) == 0 {
		return
	}
	zero, same := true, true
	if !c.reading {
		for _, r := range res {
			zero = zero && r == 0
			same = same && r == res[0]
		}
	}
	if c.Bool(&m.zero[m.last], zero) {
		m.last = 0
		if c.reading {
			clear(res)
		}
		return
	}
	m.last = 1
	if len(res) == 1 || c.Bool(&m.same[b2i(len(res) > 2)], same) {
		v := m.nonzero(c, res[0])
		if c.reading {
			for i := range res {
				res[i] = v
			}
		}
		return
	}
	history, miss := 0, int64(0)
	for i := range res {
		if c.Bool(&m.hit[history], res[i] == 0) {
			history = history<<1&7 | 1
			res[i] = 0
			continue
		}
		history = history << 1 & 7
		if miss != 0 && c.Bool(&m.again[history>>1&1], res[i] == miss) {
			res[i] = miss
			continue
		}
		miss = m.nonzero(c, res[i])
		res[i] = miss
	}
}

// nonzero codes v, which is not zero: ...,-2,-1,1,2,... become numbers without a gap.
func (m *Column) nonzero(c *Coder, v int64) int64 {
	neg := v < 0
	mag := uint64(v)
	if neg {
		mag = -mag
	}
	mag = m.value.Uint(c, mag-1) + 1
	if c.Bit(&m.value.sign[b2i(mag > 1)], b2i(neg)) != 0 {
		return -int64(mag)
	}
	return int64(mag)
}
