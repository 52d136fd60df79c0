package aggregate

import "sheaf/engine/aggregate/model"

// codeMembers codes who gets the group: a known set with its gaps, or the flows
// that owe an acknowledgement, and then the members outside of it one by one.
func (m *memory) codeMembers(c *model.Coder, g *group, pi int) error {
	md := &m.models
	home := m.home(g)
	from := sourceNone
	if !c.Reading() {
		from = m.choose(g, home)
	}
	from = memberSource(c.Symbol(md.source[pi][:], uint32(from)))
	if from > sourceOwing {
		return bad("source of members")
	}
	m.candidates = m.list(from, home, m.candidates[:0])
	m.present = m.present[:0]
	listed := 0
	for _, cid := range m.candidates {
		there := false
		if f := m.flows[cid]; !c.Reading() && f != nil {
			there = f.mark == m.serial
		}
		m.present = append(m.present, there)
	}
	if from != sourceNone {
		md.members[from].Code(c, m.present)
	}
	for i, cid := range m.candidates {
		if !m.present[i] {
			continue
		}
		if c.Reading() {
			f := m.flows[cid]
			if f == nil || f.mark == m.serial || kindOf(&f.key) != g.kind {
				return bad("member listed twice, or without a context")
			}
			f.mark = m.serial
			g.members = append(g.members, member{flow: f, cid: cid})
		}
		listed++
	}
	var extra int
	if from == sourceNone {
		extra = int(md.count[pi].Uint(c, uint64(len(g.members)-listed))) // two at least
	} else {
		extra = int(md.extra[pi].Uint(c, uint64(len(g.members)-listed)))
	}
	if c.Reading() {
		if extra < 0 || extra > int(m.limits.Packets) || listed+extra == 0 {
			return bad("too many members")
		}
	}
	for i := listed; i < listed+extra; i++ {
		if c.Reading() {
			g.members = append(g.members, member{})
		}
		if err := m.codeMember(c, g, pi, i); err != nil {
			return err
		}
		if c.Overrun() > maxOverrun {
			return bad("control field too short")
		}
	}
	return nil
}

// memberSource says where the candidates for a group's members come from.
type memberSource uint8

const (
	sourceNone  memberSource = iota
	sourceSet                // the set of the group's slot
	sourceOwing              // the flows that owe an acknowledgement
)

// home returns the slot whose set the group belongs to.
func (m *memory) home(g *group) *slot {
	if len(g.spans) == 0 {
		return &m.acks
	}
	return &m.slots.table[g.spans[0].slot]
}

// setLimit returns how many flows a set has at most: more could not be in a group.
func (m *memory) setLimit() int { return min(setLimit, int(m.limits.Packets)) }

// list appends the candidates of a source.
func (m *memory) list(from memberSource, home *slot, dst []uint32) []uint32 {
	switch from {
	case sourceSet:
		for _, e := range home.set {
			dst = append(dst, e.cid)
		}
	case sourceOwing:
		dst = m.peers.owing.appendTo(dst, m.setLimit())
	}
	return dst
}

// length returns how many candidates a source has.
func (m *memory) length(from memberSource, home *slot) int {
	if from == sourceSet {
		return len(home.set)
	}
	return min(m.peers.owing.count, m.setLimit())
}

// choose picks the cheaper source for g, marks its members and puts them in the
// order in which they will be listed. Of two that cost the same the flows that owe
// come first: they are in the order in which their data went out, in which they
// will have answered, too.
func (m *memory) choose(g *group, home *slot) memberSource {
	for i := range g.members {
		g.members[i].flow.mark = m.serial
		g.members[i].flow.place = uint32(i)
	}
	best, cost := sourceNone, 4*len(g.members)
	if len(home.set) == 0 && len(g.spans) > 0 && len(g.members) >= setMinimum {
		// The order of a slot's first group becomes that of its set. Brokers
		// mostly send in one order, which then is that of the timestamps too.
		return best
	}
	for _, from := range [...]memberSource{sourceOwing, sourceSet} {
		if n := m.length(from, home); n == 0 || n > 16*len(g.members) {
			continue
		}
		m.candidates = m.list(from, home, m.candidates[:0])
		hits, turns, last := 0, 0, true
		for _, cid := range m.candidates {
			there := m.flows[cid] != nil && m.flows[cid].mark == m.serial
			if there {
				hits++
			}
			if there != last {
				turns++
			}
			last = there
		}
		if w := 4*(len(g.members)-hits) + turns; hits > 0 && w < cost {
			best, cost = from, w
		}
	}
	if best == sourceNone {
		return best
	}
	m.candidates = m.list(best, home, m.candidates[:0])
	m.order(g)
	return best
}

// order sorts the members as the candidates have them, the others behind.
func (m *memory) order(g *group) {
	at := 0
	for _, cid := range m.candidates {
		f := m.flows[cid]
		if f == nil || f.mark != m.serial {
			continue
		}
		if from := int(f.place); from != at {
			other := g.members[at].flow
			g.swap(at, from)
			f.place, other.place = uint32(at), uint32(from)
		}
		at++
	}
}

func (g *group) swap(i, j int) {
	g.members[i], g.members[j] = g.members[j], g.members[i]
	for k := range g.holes {
		a, b := &g.values[i*g.holes+k], &g.values[j*g.holes+k]
		*a, *b = *b, *a
	}
}

// codeMember codes one member by its CID, and its context where it is new.
func (m *memory) codeMember(c *model.Coder, g *group, pi, i int) error {
	md := &m.models
	mb := &g.members[i]
	last := m.flow(m.lastCID[pi])
	if c.Bool(&md.fresh[pi], mb.fresh) {
		if err := m.codeFlow(c, g.kind, mb); err != nil {
			return err
		}
	} else {
		known := last != nil && last.next[pi] != 0 && m.flow(last.next[pi]) != nil
		if known && c.Bool(&md.follows[pi], last.next[pi] == mb.cid+1) {
			mb.cid = last.next[pi] - 1
		} else {
			mb.cid = c.Index(mb.cid, uint32(len(m.flows)))
		}
	}
	f := m.flow(mb.cid + 1)
	if f == nil || kindOf(&f.key) != g.kind {
		return bad("member without a context")
	}
	if c.Reading() {
		if i > 0 && f.mark == m.serial {
			return bad("member listed twice")
		}
		mb.flow = f
	}
	f.mark = m.serial
	if last != nil {
		last.next[pi] = mb.cid + 1
	}
	m.lastCID[pi] = mb.cid + 1
	return nil
}
