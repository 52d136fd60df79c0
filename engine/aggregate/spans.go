package aggregate

import (
	"sheaf/engine/aggregate/model"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// maxSpans bounds the spans of a segment: each has a byte at least.
const maxSpans = wire.MaxPacket

// advice is what the writing end knows about a span beyond its bytes.
type advice struct {
	key      uint64 // of the slot it belongs to
	message  uint64 // names protocol, kind and event; the same for all parts of a message
	split    int    // where its message body begins, in the body without holes
	at       int    // where it starts inside its message
	protocol parsers.ProtocolID
	name     uint8
	class    parsers.Class
	sealed   bool   // ciphertext: not worth a comparison
	noise    bool   // its message body looks random
	literal  int    // bytes of it that are among the frame's literals
	event    []byte // borrowed from the packet store
}

// codeSpans codes the payload of a group: for each span the slot that it
// belongs to, and then its bytes as one of the slot's bodies, as an edit of the
// newest, or as literals.
func (m *memory) codeSpans(c *model.Coder, g *group) error {
	md := &m.models
	before0 := 0.0
	if !c.Reading() {
		before0 = c.Cost()
	}
	single := 0
	if len(g.members) == 1 {
		single = 1
	}
	n := len(g.spans)
	if c.Bool(&md.oneSpan[single], n == 1) {
		n = 1
	} else {
		n = int(md.spans.Uint(c, uint64(n)))
	}
	if n < 1 || n > maxSpans {
		return bad("number of spans")
	}
	if c.Reading() {
		m.payload = m.payload[:0]
	}
	// what came before, to guess what comes now
	var before *uint32
	if single == 1 && g.members[0].flow != nil {
		if f := g.members[0].flow; f.slot != 0 && m.slots.holds(f.slot-1) {
			before = &m.slots.table[f.slot-1].next
		}
	} else if m.lastSlot != 0 && m.slots.holds(m.lastSlot-1) {
		before = &m.slots.table[m.lastSlot-1].follow
	}
	left := wire.MaxPacket
	for i := range n {
		if c.Reading() {
			g.spans = append(g.spans, span{})
		}
		s := &g.spans[i]
		which := single
		if i > 0 {
			which = 2
		}
		guess := uint32(0)
		if before != nil && *before != 0 && m.slots.holds(*before-1) {
			guess = *before
		}
		template, err := m.codeSlot(c, s, guess, which)
		if err != nil {
			return err
		}
		if before != nil {
			*before = s.slot + 1
		}
		if err := m.codeBody(c, s, template, left); err != nil {
			return err
		}
		if err := m.codeHoles(c, s); err != nil {
			return err
		}
		if len(s.body)+len(s.holes) == 0 {
			return bad("empty span")
		}
		left -= len(s.body)
		if c.Reading() && n > 1 {
			// a later span of the segment may replace the remembered body
			at := len(m.payload)
			m.payload = append(m.payload, s.body...)
			s.body = m.payload[at:]
		}
		g.holes += len(s.holes)
		before = &m.slots.table[s.slot].next
		if c.Overrun() > maxOverrun {
			return bad("control field too short")
		}
	}
	if !c.Reading() {
		m.w.costs.bodies += c.Cost() - before0
		g.holes = 0
		for i := range g.spans {
			g.holes += len(g.spans[i].holes)
		}
	}
	if single == 0 && g.kind != kindRaw {
		m.lastSlot = g.spans[0].slot + 1
	}
	return nil
}

// codeSlot codes which slot a span belongs to, and returns the template to
// compare its body with where the slot has none of its own yet.
func (m *memory) codeSlot(c *model.Coder, s *span, guess uint32, which int) (template []byte, err error) {
	md := &m.models
	clock := m.clock
	var known bool
	var from uint32 // writing: slot of the template, plus one
	if !c.Reading() {
		s.slot, known, from = m.w.place(s)
	}
	if guess != 0 && c.Bool(&md.slotKnown[which], known && s.slot+1 == guess) {
		s.slot = guess - 1
	} else if c.Bool(&md.slotNew, !known) {
		if c.Bool(&md.templated, from != 0) {
			from = c.Index(from-1, uint32(len(m.slots.table))) + 1
			if !m.slots.holds(from - 1) {
				return nil, bad("template unknown")
			}
			t := &m.slots.table[from-1]
			m.scratch = append(m.scratch[:0], t.body(0)...)
			template, clock = m.scratch, t.clock
		}
		s.slot = m.slots.take(int(m.limits.Templates))
		m.slots.table[s.slot].clock = clock
		if !c.Reading() {
			m.w.settle(s)
		}
	} else {
		s.slot = c.Index(s.slot, uint32(len(m.slots.table)))
	}
	if !m.slots.holds(s.slot) {
		return nil, bad("slot unknown")
	}
	m.slots.touch(s.slot)
	return template, nil
}

// codeBody codes the bytes of a span.
func (m *memory) codeBody(c *model.Coder, s *span, template []byte, limit int) error {
	md := &m.models
	sl := &m.slots.table[s.slot]
	depth := -1
	if !c.Reading() {
		depth = sl.find(s.body)
	}
	first := 0
	if sl.count > 0 {
		first = 1
		was := 0
		if sl.exact {
			was = 1
		}
		if sl.exact = c.Bool(&md.exact[was], depth >= 0); sl.exact {
			depth = int(c.Symbol(md.depth[:], uint32(depth)))
			if depth >= sl.count || len(sl.body(depth)) > limit {
				return bad("body unknown")
			}
			s.body = sl.body(depth)
			return nil
		}
		template = sl.body(0)
	}
	raw := false
	before := len(c.Literals)
	if !c.Reading() {
		raw = m.w.bulky(template, s)
	}
	if c.Bool(&md.raw[first], raw) {
		n := int(md.rawLen.Uint(c, uint64(len(s.body))))
		var ok bool
		if s.body, ok = c.Literal(s.body, n); !ok || n > limit {
			return bad("more literals than there are")
		}
	} else {
		e := model.Edit{Template: template, Elapsed: int64(int32(m.clock - sl.clock)), Limit: limit}
		if !c.Reading() {
			e.Body, e.Plan, e.Split = s.body, &m.w.plan, s.split
		}
		start := c.Len()
		body, err := md.body.Code(c, m.bodyBuf[:0], &e)
		if err != nil {
			return bad(err.Error())
		}
		if c.Reading() {
			m.bodyBuf = body
			s.body = body
		} else {
			m.w.costs.topics += e.SplitCost
			m.w.edited(c.Len()-start+len(c.Literals)-before, s.body)
		}
	}
	s.literal = len(c.Literals) - before
	if len(s.body) <= maxBody {
		m.slots.remember(s.slot, s.body, m.clock, int(m.limits.Bodies))
		if c.Reading() {
			s.body = sl.body(0)
		}
	} else if c.Reading() && !raw {
		s.body = append([]byte(nil), s.body...)
	}
	return nil
}

// codeHoles codes where a body has holes, mostly where the last one had them.
func (m *memory) codeHoles(c *model.Coder, s *span) error {
	md := &m.models
	sl := &m.slots.table[s.slot]
	same := len(s.holes) == len(sl.holes)
	if !c.Reading() {
		for i := range s.holes {
			same = same && s.holes[i] == sl.holes[i]
		}
	}
	some := 0
	if len(sl.holes) > 0 {
		some = 1
	}
	if c.Bool(&md.holesSame[some], same) {
		if c.Reading() {
			s.holes = sl.holes
			for _, h := range s.holes {
				if h.at > len(s.body) {
					return bad("hole outside the body")
				}
			}
		}
		return nil
	}
	n := int(md.hole.Uint(c, uint64(len(s.holes))))
	if n < 0 || n > parsers.MaxHoles {
		return bad("number of holes")
	}
	holes := sl.holes[:0]
	if c.Reading() {
		holes = nil // earlier spans of this frame may still use the array
	}
	for i := range n {
		var h hole
		if !c.Reading() {
			h = s.holes[i]
		}
		h.at = int(md.hole.Uint(c, uint64(h.at)))
		h.kind = parsers.HoleKind(c.Bits(uint64(h.kind), 2))
		h.width = uint8(c.Bits(uint64(h.width), 4))
		h.counter = uint8(c.Bits(uint64(h.counter), 2))
		h.step = uint8(c.Bits(uint64(h.step), 1))
		if h.at < 0 || h.at > len(s.body) || i > 0 && h.at < holes[i-1].at || !h.valid(i) {
			return bad("hole outside the body")
		}
		holes = append(holes, h)
	}
	sl.holes = holes
	if c.Reading() {
		s.holes = holes
	}
	return nil
}
