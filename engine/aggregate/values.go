package aggregate

import (
	"bytes"

	"sheaf/engine/aggregate/model"
	"sheaf/parsers"
)

// codeValues codes what fills the holes: each flow has counters, and texts that
// are the same again.
func (m *memory) codeValues(c *model.Coder, g *group) error {
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
			if h.kind == parsers.HoleText {
				if err := m.codeTexts(c, g, h, k); err != nil {
					return err
				}
			} else {
				m.codeNumbers(c, g, h, k)
			}
			k++
		}
	}
	return nil
}

// codeNumbers codes the numbers that fill the k-th hole of each member: the
// flow's counter, moved on by the hole's step.
func (m *memory) codeNumbers(c *model.Coder, g *group, h hole, k int) {
	expect := func(f *flow) uint64 { return h.wrap(f.counters[h.counter] + uint64(h.step)) }
	res := m.room(len(g.members))
	if !c.Reading() {
		for i := range g.members {
			res[i] = int64(g.values[i*g.holes+k] - expect(g.members[i].flow))
			if h.kind == parsers.HoleMask {
				res[i] = int64(h.wrap(uint64(res[i]))) // a new key is random: no sign to be paid for
			}
		}
	}
	m.models.columns[1][colHole+int(h.counter)].Code(c, res)
	for i := range g.members {
		f := g.members[i].flow
		v := h.wrap(expect(f) + uint64(res[i]))
		g.values[i*g.holes+k] = v
		f.counters[h.counter] = v
	}
}

// codeTexts codes the texts that fill the k-th hole of each member: the flow's
// last, or else as an edit of the newest of any flow.
func (m *memory) codeTexts(c *model.Coder, g *group, h hole, k int) error {
	res := m.room(len(g.members))
	if !c.Reading() {
		for i := range g.members {
			f := g.members[i].flow
			if f.texts == nil || !bytes.Equal(f.texts[h.counter], text(g.values[i*g.holes+k], m.texts)) {
				res[i] = 1
			}
		}
	}
	m.models.columns[1][colHole+int(h.counter)].Code(c, res)
	for i := range g.members {
		f := g.members[i].flow
		v := &g.values[i*g.holes+k]
		if f.texts == nil {
			f.texts = new([parsers.NumCounters][]byte)
		}
		own := &f.texts[h.counter]
		if res[i] != 0 {
			e := model.Edit{Template: m.tags[h.counter], Limit: parsers.MaxHoleText}
			if !c.Reading() {
				e.Body, e.Plan = text(*v, m.texts), &m.w.plan
				e.Plan.Make(e.Template, e.Body, len(e.Body))
			}
			t := e.Body
			b, err := m.models.body.Code(c, m.scratch[:0], &e)
			if err != nil {
				return bad(err.Error())
			}
			if c.Reading() {
				m.scratch, t = b, b
			}
			*own = append((*own)[:0], t...)
			m.tags[h.counter] = append(m.tags[h.counter][:0], t...)
		}
		if c.Reading() {
			if len(*own) == 0 || len(m.texts) > int(m.limits.Bytes) {
				return bad("empty text, or too many")
			}
			*v = textValue(len(m.texts), len(*own))
			m.texts = append(m.texts, *own...)
		}
	}
	return nil
}
