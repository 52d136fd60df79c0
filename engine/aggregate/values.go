package aggregate

import "sheaf/tunnel/wire"

// codeValues codes what fills the holes: each flow has counters.
func (m *memory) codeValues(c *wire.Coder, g *group) error {
	if g.holes == 0 {
		return nil
	}
	if c.Reading() {
		n := len(g.members) * g.holes
		if n > int(m.limits.Bytes) {
			return bad("too many holes")
		}
		if cap(g.values) < n {
			g.values = make([]uint64, n, 2*n)
		}
		g.values = g.values[:n]
	}
	k := 0
	for s := range g.spans {
		for _, h := range g.spans[s].holes {
			res := m.room(len(g.members))
			for i := range g.members {
				if !c.Reading() {
					res[i] = int64(g.values[i*g.holes+k] - m.expectValue(&g.members[i], h))
				}
			}
			m.models.columns[1][colHole+int(h.counter)].Code(c, res)
			for i := range g.members {
				v := m.expectValue(&g.members[i], h) + uint64(res[i])
				if h.kind == 0 && h.width < 8 {
					v &= 1<<(8*h.width) - 1
				}
				g.values[i*g.holes+k] = v
				g.members[i].flow.counters[h.counter] = v
			}
			k++
		}
	}
	return nil
}

func (m *memory) expectValue(mb *member, h hole) uint64 {
	v := mb.flow.counters[h.counter] + uint64(h.step)
	if h.kind == 0 && h.width < 8 {
		v &= 1<<(8*h.width) - 1
	}
	return v
}
