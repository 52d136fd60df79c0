package model

// A Column codes one header or body field across the members of a group, as the
// differences from what was predicted for each member (SPEC.md 3.5). Predictions are
// good, so that the cheap answers come first: all members are as predicted; all are off
// by the same; and only then, member by member, whether one is as predicted, off by as
// much as the last one that was not, or by something else. Its zero value is untaught.
//
// Of a group of 100 members, after 200 groups that were the same way, these cost
//
//	all as predicted                               0.0018 bits
//	all off by 1                                   0.0073
//	one of them off by 1, in each group another    8.3, where the least possible is 8.1
//	the first half off by 7                        7.3
//	each off by something else below 1024          1002, as much as saying so without a model
//
// and the first one that is off by 1, after 200 groups without, 29. A group of one
// member asks less: off by 1 costs 0.0055 bits. TestColumnCost measures all of it.
type Column struct {
	zero  [2]Bit // whether all are as predicted, by last
	same  [2]Bit // whether all are off by the same, by whether there are more than two
	hit   [8]Bit // whether a member is as predicted, by which of the last three were
	again [2]Bit // whether it is off by as much as the last that was off, by whether the one before was as predicted
	value Int    // by how much, where that is new: never 0
	last  int    // 1 where the last group was not all as predicted
}

// Code codes the differences in place: a reading Coder fills res. Without members
// nothing is coded.
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
		v := m.value.nonzero(c, res[0])
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
		miss = m.value.nonzero(c, res[i])
		res[i] = miss
	}
}
