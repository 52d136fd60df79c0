package codec

import (
	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers"
)

// learn brings the contexts and the set that a group belongs to up to date with it. What
// later decisions of the same group look at has been learned at once, beside the code:
// contexts and lists of members, templates and bodies, layouts, counters and texts, and
// the offsets of TSvals.
func (x *codec) learn(g *Group) {
	if g.Kind == Verbatim {
		return
	}
	for i := range g.Members {
		mb := &g.Members[i]
		f := mb.context
		f.layout = mb.layout
		f.layout.used = x.group
		f.sums = mb.sums()
		if mb.ipSumMode != ipSumRight {
			f.ipSum = mb.ipSum
		}
		f.clock = x.clock
		if n := len(g.Spans); n > 0 {
			f.template = g.Spans[n-1].template
		}
		if g.Kind.v4() {
			f.idStep = 0
			if mb.id != f.id {
				f.idStep = 1
			}
			f.id = mb.id
		} else {
			f.label = mb.label
		}
		if g.Kind.TCP() {
			x.learnTCP(g, mb, uint32(g.Size(i)))
		}
	}
	x.learnSet(g)
}

// learnTCP brings a TCP flow's context up to date with a segment of n bytes of
// payload, and notes for the peer's views what there is to know of it.
func (x *codec) learnTCP(g *Group, mb *Member, n uint32) {
	f := mb.context
	end := mb.seq + n
	if g.Flags&parsers.FlagSYN != 0 {
		end++
	}
	if g.Flags&parsers.FlagFIN != 0 {
		end++
	}
	// a retransmission does not take the flow back, a new connection does
	if !f.started || g.Flags&parsers.FlagSYN != 0 || !seqnum.Value(end).LessThan(seqnum.Value(f.end)) {
		f.end = end
	}
	x.learnWindow(f, mb.window, g.Flags)
	if mb.layout.sack != 0 {
		f.oddity().sack = *mb.sack
	} else if f.odd != nil {
		f.odd.sack = sack{}
	}
	f.syn = g.Flags&parsers.FlagSYN != 0
	f.ack = mb.ack
	f.started = true
	if mb.layout.tsval != 0 {
		f.hasTSval = true
		f.tsecr = mb.tsecr
	}
	x.items = append(x.items, item{
		context: f, cid: mb.cid, fresh: mb.fresh, reverse: f.reverse, payload: len(g.Spans) > 0,
		begin: mb.seq, end: f.end, ack: mb.ack, hasAck: g.Flags&parsers.FlagACK != 0,
		hasTSval: mb.layout.tsval != 0, tsval: mb.tsval,
	})
	x.views.expected.remove(mb.cid)
}

// learnWindow notes a flow's receive window, and by how much it grew: what shrinks,
// as an application that does not read lets it, is expected to stay as it is.
func (s *state) learnWindow(f *context, window uint16, flags uint8) {
	switch {
	case !f.started:
		s.freshWindow = window
	case f.opened(flags):
		f.step = 0
		s.openWindow = window
	default:
		f.step = window - f.window
		if f.step > 1<<15 {
			f.step = 0
		}
	}
	f.window = window
}

// learnSet notes who got the newest message of the group's template.
func (x *codec) learnSet(g *Group) {
	if len(g.Members) < setMinimum {
		return
	}
	set := x.set(g)
	keep := (*set)[:0]
	for _, e := range *set {
		switch {
		case x.context(e.cid) == nil:
			continue
		case x.marked(e.cid):
			x.marks[e.cid.place()]-- // it has its place in the set
			e.misses = 0
		default:
			e.misses++
		}
		if e.misses < setMisses {
			keep = append(keep, e)
		}
	}
	limit := x.setLimit()
	for i := range g.Members {
		if c := g.Members[i].cid; x.marked(c) && len(keep) < limit {
			keep = append(keep, setMember{cid: c})
		}
	}
	*set = keep
}
