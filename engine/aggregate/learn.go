package aggregate

import "gvisor.dev/gvisor/pkg/tcpip/seqnum"

// learn brings the contexts and the slot's set up to date with a group.
func (m *memory) learn(g *group) {
	if g.kind == kindRaw {
		return
	}
	payload := len(g.spans) > 0
	for i := range g.members {
		mb := &g.members[i]
		f := mb.flow
		it := item{flow: f, cid: mb.cid, fresh: mb.fresh, reverse: f.reverse, payload: payload}
		f.layout = mb.layout
		f.layout.used = m.serial
		f.sums = mb.sums()
		if mb.ipSumMode != ipSumRight {
			f.ipSum = mb.ipSum
		}
		f.clock = m.clock
		if payload {
			f.slot = g.spans[len(g.spans)-1].slot + 1
		}
		if g.kind.v4() {
			f.idStep = 0
			if mb.id != f.id {
				f.idStep = 1
			}
			f.id = mb.id
		} else {
			f.label = mb.label
		}
		if g.kind.tcp() {
			m.learnTCP(g, mb, uint32(g.size(i)))
			it.begin, it.end = mb.seq, f.end
			it.ack, it.acked = mb.ack, g.flags&flagACK != 0
			it.stamped, it.stamp = mb.layout.stamp != 0, mb.tsval
			m.items = append(m.items, it)
			m.peers.owing.remove(mb.cid)
		}
	}
	m.learnSet(g)
}

func (m *memory) learnTCP(g *group, mb *member, n uint32) {
	f := mb.flow
	end := mb.seq + n
	if g.flags&flagSYN != 0 {
		end++
	}
	if g.flags&flagFIN != 0 {
		end++
	}
	// a retransmission does not take the flow back, a new connection does
	if !f.started || g.flags&flagSYN != 0 || !seqnum.Value(end).LessThan(seqnum.Value(f.end)) {
		f.end = end
	}
	switch {
	case !f.started:
		m.freshWindow = mb.window
	case f.opened(g.flags):
		f.step = 0
		m.openWindow = mb.window
	default:
		f.step = mb.window - f.window
		if f.step > 1<<15 {
			f.step = 0 // it shrank
		}
	}
	if mb.layout.sack != 0 {
		f.oddity().sack = *mb.sack
	} else if f.odd != nil {
		f.odd.sack = sack{}
	}
	f.syn = g.flags&flagSYN != 0
	f.window = mb.window
	f.ack = mb.ack
	f.started = true
	if mb.layout.stamp != 0 {
		f.stamped = true
		f.echo = mb.tsecr
	}
}

// learnSet notes who got the slot's newest message.
func (m *memory) learnSet(g *group) {
	if len(g.members) < setMinimum {
		return
	}
	home := m.home(g)
	limit := m.setLimit()
	keep := home.set[:0]
	for _, e := range home.set {
		f := m.flows[e.cid]
		switch {
		case f == nil:
			continue
		case f.mark == m.serial:
			f.mark-- // found
			e.misses = 0
		default:
			e.misses++
		}
		if e.misses < setMisses {
			keep = append(keep, e)
		}
	}
	for i := range g.members {
		if mb := &g.members[i]; mb.flow.mark == m.serial && len(keep) < limit {
			keep = append(keep, setMember{cid: mb.cid})
		}
	}
	home.set = keep
}
