package aggregate

import (
	"sheaf/parsers"
	"sheaf/tunnel/wire"
)

// A group is a run of segments merged with one another: they have the same kind
// of header, the same flags and the same payload, but for holes.
type group struct {
	kind    kind
	flags   uint8 // TCP flags
	members []member
	spans   []span
	holes   int      // of all spans together
	values  []uint64 // of the holes, member by member
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

// payload returns 1 when the group has payload, the index of its models.
func (g *group) payload() int {
	if len(g.spans) > 0 {
		return 1
	}
	return 0
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
func (m *memory) code(c *wire.Coder, groups []group) error {
	for i := 0; ; i++ {
		if !c.Bool(&m.models.more, i < len(groups)) {
			return nil
		}
		g := &m.read
		if c.Reading() {
			*g = group{members: g.members[:0], spans: g.spans[:0], values: g.values[:0]}
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
func (m *memory) codeHead(c *wire.Coder, h *head) error {
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

func (m *memory) codeGroup(c *wire.Coder, g *group) error {
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

// codeMembers codes who gets the group: a known set with its gaps, or the flows
// that owe an acknowledgement, and then the members outside of it one by one.
func (m *memory) codeMembers(c *wire.Coder, g *group, pi int) error {
	md := &m.models
	home := m.home(g)
	from := sourceNone
	if !c.Reading() {
		from = m.choose(g, home)
	}
	from = memberSource(c.Symbol(md.source[pi][:], uint32(from)))
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
			if f == nil || f.mark == m.serial {
				return bad("member listed twice")
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

// list appends the candidates of a source.
func (m *memory) list(from memberSource, home *slot, dst []uint32) []uint32 {
	switch from {
	case sourceSet:
		for _, e := range home.set {
			dst = append(dst, e.cid)
		}
	case sourceOwing:
		dst = m.peers.owing.appendTo(dst, setLimit)
	}
	return dst
}

// choose picks the cheaper source for g, marks its members and puts them in the
// order in which they will be listed.
func (m *memory) choose(g *group, home *slot) memberSource {
	for i := range g.members {
		g.members[i].flow.mark = m.serial
		g.members[i].flow.place = uint32(i)
	}
	best, cost := sourceNone, 4*len(g.members)
	for _, from := range [...]memberSource{sourceSet, sourceOwing} {
		m.candidates = m.list(from, home, m.candidates[:0])
		if len(m.candidates) > 16*len(g.members) {
			continue
		}
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
func (m *memory) codeMember(c *wire.Coder, g *group, pi, i int) error {
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

// codeFlow codes a new context: its CID, and its addresses and ports as those
// of the flow in the other direction, turned round, or against the newest.
func (m *memory) codeFlow(c *wire.Coder, k kind, mb *member) error {
	md := &m.models
	if !c.Reading() {
		mb.cid = m.w.assign(mb.flow)
	}
	reuse := c.Bool(&md.reuse, int(mb.cid) < len(m.flows))
	switch {
	case reuse:
		mb.cid = c.Index(mb.cid, uint32(len(m.flows)))
		if int(mb.cid) >= len(m.flows) {
			return bad("context number")
		}
		m.forget(mb.cid)
	case len(m.flows) >= int(m.limits.Flows):
		return bad("too many contexts")
	default:
		mb.cid = uint32(len(m.flows))
		m.flows = append(m.flows, nil)
	}
	f := mb.flow
	if c.Reading() {
		f = &flow{}
		mb.flow, mb.fresh = f, true
	}
	m.flows[mb.cid] = f
	f.cid, f.announced = mb.cid, true

	p := &m.peers
	var peer uint32
	if !c.Reading() {
		peer = m.w.reverse(&f.key)
	}
	if c.Bool(&md.reversed, peer != 0) {
		if p.unpaired != 0 && c.Bool(&md.unpaired, peer == p.unpaired) {
			peer = p.unpaired
		} else {
			peer = c.Index(peer-1, uint32(len(p.views))) + 1
		}
		if int(peer) > len(p.views) || !p.views[peer-1].valid {
			return bad("other direction unknown")
		}
		f.key = p.views[peer-1].key.Reverse()
		m.pair(mb.cid, peer-1)
	} else {
		m.codeKey(c, k, &f.key)
	}
	if kindOf(&f.key) != k {
		return bad("context of another kind")
	}
	m.newest = f.key
	return nil
}

// forget ends the context of a CID.
func (m *memory) forget(cid uint32) {
	if f := m.flows[cid]; f != nil && f.reverse != 0 {
		if v := &m.peers.views[f.reverse-1]; v.own == cid+1 {
			v.own = 0
		}
	}
	m.peers.owing.remove(cid)
	m.flows[cid] = nil
}

// codeKey codes addresses, ports and protocol against those of the newest flow.
func (m *memory) codeKey(c *wire.Coder, k kind, key *parsers.FlowKey) {
	md := &m.models
	old := &m.newest
	n := 16
	key.Version = 6
	if k.v4() {
		n, key.Version = 4, 4
	}
	for i := range n {
		key.Src[i] = m.codeKeyByte(c, i, old.Src[i], key.Src[i])
	}
	for i := range n {
		key.Dst[i] = m.codeKeyByte(c, 16+i, old.Dst[i], key.Dst[i])
	}
	for i, port := range [...]*uint16{&key.SrcPort, &key.DstPort} {
		was := [...]uint16{old.SrcPort, old.DstPort}[i]
		if c.Bool(&md.keySame[32+i], *port == was) {
			*port = was
		} else {
			*port = uint16(c.Raw(uint64(*port), 16))
		}
	}
	if k.tcp() {
		key.Proto = protoTCP
		return
	}
	if c.Bool(&md.keySame[34], key.Proto == old.Proto) {
		key.Proto = old.Proto
	} else {
		key.Proto = uint8(c.Raw(uint64(key.Proto), 8))
	}
}

func (m *memory) codeKeyByte(c *wire.Coder, i int, old, b byte) byte {
	if c.Bool(&m.models.keySame[i], b == old) {
		return old
	}
	return old + byte(m.models.keyStep.Int(c, int64(int8(b-old))))
}
