package aggregate

import "sheaf/engine/aggregate/model"

// A group is a run of segments merged with one another: they have the same kind
// of header, the same flags and the same payload, but for holes.
type group struct {
	kind    kind
	flags   uint8 // TCP flags
	members []member
	spans   []span
	holes   int      // of all spans together
	values  []uint64 // of the holes, member by member; see textValue
}

// A member is one segment of a group.
type member struct {
	flow  *flow
	cid   uint32
	fresh bool // its context is announced here
	fields
}

// A span is a run of payload with its holes taken out.
type span struct {
	body  []byte // borrowed: writing, from the packet store; reading, from the slot or the literals
	holes []hole
	slot  uint32
	advice
}

// size returns the payload length of member i.
func (g *group) size(i int) int {
	n := 0
	at := i * g.holes
	for k := range g.spans {
		s := &g.spans[k]
		n += len(s.body)
		for _, h := range s.holes {
			n += h.len(g.values[at])
			at++
		}
	}
	return n
}

// code codes the groups of a frame. At the reading end each group's packets are
// built as soon as it is complete.
func (m *memory) code(c *model.Coder, groups []group) error {
	for i := 0; ; i++ {
		if !c.Bool(&m.models.more, i < len(groups)) {
			return nil
		}
		g := &m.read
		if c.Reading() {
			*g = group{members: g.members[:0], spans: g.spans[:0], values: g.values[:0]}
			m.texts, m.sacks = m.texts[:0], m.sacks[:0]
		} else {
			g = &groups[i]
			m.w.current = g
			for k := range g.members {
				mb := &g.members[k]
				mb.cid, mb.fresh = mb.flow.cid, !mb.flow.announced
			}
		}
		if err := m.codeGroup(c, g); err != nil {
			return err
		}
		if c.Reading() {
			if c.Overrun() > maxOverrun {
				return bad("control field too short")
			}
			if err := m.r.build(g); err != nil {
				return err
			}
		}
		m.learn(g)
		if !c.Reading() {
			m.w.tally(c, g)
		}
	}
}

// maxOverrun is how many bytes past its end a well-formed control field is read.
const maxOverrun = 8

// codeHead codes what a frame begins with: whether the peer may refer to it,
// which frames of the peer its writer had rebuilt, how far the clock moves, and
// pairs of flows that turned out to be two directions of one conversation.
func (m *memory) codeHead(c *model.Coder, h *head) error {
	md := &m.models
	before := m.named
	h.record = c.Bool(&md.record, h.record)
	h.named = m.named + md.named.Uint(c, h.named-m.named)
	m.named = h.named
	m.clock += uint32(md.step.Int(c, int64(int32(h.clock-m.clock))))
	h.clock, m.ahead = m.clock, 0
	if c.Reading() {
		if err := m.r.out.named(before, m.named, &m.r.memory); err != nil {
			return err
		}
	}
	if !c.Bool(&md.linked, len(h.links) > 0) {
		return nil
	}
	n := int(md.links.Uint(c, uint64(len(h.links))))
	if n < 0 || n > len(m.flows) {
		return bad("number of pairs")
	}
	for i := range n {
		var l link
		if !c.Reading() {
			l = h.links[i]
		}
		l.own = c.Index(l.own, uint32(len(m.flows)))
		l.peer = c.Index(l.peer, uint32(len(m.peers.views)))
		if m.flow(l.own+1) == nil || int(l.peer) >= len(m.peers.views) || !m.peers.views[l.peer].valid {
			return bad("pair of unknown flows")
		}
		m.pair(l.own, l.peer)
	}
	return nil
}

// A head is what codeHead codes.
type head struct {
	record bool // the frame's changes are kept for the peer to refer to
	named  uint64
	clock  uint32
	links  []link
}

// A link is a pair of flows that are the two directions of one conversation.
type link struct{ own, peer uint32 }

func (m *memory) codeGroup(c *model.Coder, g *group) error {
	md := &m.models
	m.serial++
	g.kind = kind(c.Symbol(md.kinds[md.kind][:], uint32(g.kind)))
	if g.kind > kindIP6 {
		return bad("unknown kind of group")
	}
	md.kind = g.kind
	if g.kind == kindRaw {
		return m.codeSpans(c, g)
	}
	payload := c.Bool(&md.payload[g.kind], len(g.spans) > 0)
	pi := 0
	if payload {
		pi = 1
	}
	if g.kind.tcp() {
		g.flags = uint8(c.Symbol(md.flags[pi][:], uint32(g.flags)))
	}
	single := c.Bool(&md.single[pi], len(g.members) == 1)
	if single {
		if c.Reading() {
			g.members = append(g.members, member{})
		}
		if err := m.codeMember(c, g, pi, 0); err != nil {
			return err
		}
	}
	if payload {
		if err := m.codeSpans(c, g); err != nil {
			return err
		}
	}
	if !single {
		if err := m.codeMembers(c, g, pi); err != nil {
			return err
		}
	}
	return m.codeColumns(c, g, pi)
}
