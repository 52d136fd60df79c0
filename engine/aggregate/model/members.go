package model

// Members codes which of a list of candidates are members of a group. That all
// are costs a small fraction of a bit; a run of members or of gaps costs its
// ends (SPEC.md 3.7). Its zero value is untaught.
type Members struct {
	all  [2]Bit
	bit  [8]Bit
	last int
}

// Code codes present in place: a reading Coder fills it.
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
