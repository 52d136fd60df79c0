package model

// Members codes which of a list of candidates are members of a group (SPEC.md 3.7).
// Its zero value is untaught.
//
// Of 100 candidates, after 200 groups that were the same way, it costs 0.0018 bits to
// say that all are members, and 8.3 that two neighbours are not, since a run of
// members or of others costs its ends. The first such gap, after 200 groups without
// one, costs 26. TestMembersCost measures it.
type Members struct {
	all  [2]Bit // whether all are, by last
	bit  [8]Bit // whether a candidate is, by which of the last three are
	last int    // 1 where all were in the last group
}

// Code codes present in place: a reading Coder fills it. Without candidates it still
// says that all are members.
func (m *Members) Code(c *Coder, present []bool) {
	all := true
	if !c.reading {
		for _, p := range present {
			all = all && p
		}
	}
	if c.Bool(&m.all[m.last], all) {
		m.last = 1
		if c.reading {
			for i := range present {
				present[i] = true
			}
		}
		return
	}
	m.last = 0
	history := 0
	for i := range present {
		present[i] = c.Bool(&m.bit[history], present[i])
		history = history<<1&7 | b2i(present[i])
	}
}
