package aggregate

import (
	"sheaf/engine/aggregate/model"
	"sheaf/engine/wire"
)

// maxLayouts bounds the table of layouts. A lane has as many places as slots, up
// to this.
const maxLayouts = 256

// layouts is the table of the layouts that both ends know, by place; what was used
// longest ago gives way. A flow goes on with its last layout also when that has
// lost its place, and one that comes back gets an entry of its own: so an entry
// never changes its place, and both ends have the same ones at the same flows.
type layouts struct {
	table []*layout
	max   int
	last  *layout                     // the one coded last by its place, or entered
	after [2 * (maxLayouts + 1)]uint8 // place of the layout that followed last time
}

func (t *layouts) init(limits *wire.Limits) {
	t.max = min(maxLayouts, int(limits.Templates))
	t.table = make([]*layout, 0, t.max)
}

// enter makes an entry for l, used in the group with the number serial.
func (t *layouts) enter(l *layout, serial uint32) *layout {
	at := len(t.table)
	if at < t.max {
		t.table = append(t.table, nil)
	} else {
		at = t.oldest(serial)
	}
	e := *l
	e.place, e.used = uint8(at), serial
	t.table[at] = &e
	return &e
}

// oldest returns the place of the layout used longest before the group serial.
func (t *layouts) oldest(serial uint32) (at int) {
	for i, l := range t.table {
		if serial-l.used > serial-t.table[at].used {
			at = i
		}
	}
	return at
}

// at returns the entry at a place, nil where there is none.
func (t *layouts) at(place uint8) *layout {
	if int(place) >= len(t.table) {
		return nil
	}
	return t.table[place]
}

// guess returns where the place is noted of the layout that followed l last time;
// l is an entry or nil. first says that the segment opens a connection.
func (t *layouts) guess(l *layout, first bool) *uint8 {
	i := 0
	if l != nil {
		i = 2 * (int(l.place) + 1)
	}
	if first {
		i++
	}
	return &t.after[i]
}

// codeLayouts codes the members' layouts: mostly as last time, else one that
// followed the same layout before, else one of the table, else a new one. From
// then on the members have entries.
func (m *memory) codeLayouts(c *model.Coder, g *group, pi int) error {
	md := &m.models
	res := m.room(len(g.members))
	if !c.Reading() {
		for i := range g.members {
			if mb := &g.members[i]; mb.flow.layout == nil || !mb.layout.same(mb.flow.layout) {
				res[i] = 1
			}
		}
	}
	md.layout[pi].Code(c, res)
	for i := range g.members {
		mb := &g.members[i]
		if res[i] == 0 {
			mb.layout = mb.flow.layout
		} else if err := m.codeLayout(c, g, mb); err != nil {
			return err
		}
		if mb.layout == nil || mb.layout.kind != g.kind || mb.layout.proto != mb.flow.key.Proto {
			return bad("layout of another kind")
		}
	}
	return nil
}

func (m *memory) codeLayout(c *model.Coder, g *group, mb *member) error {
	md := &m.models
	t := &m.layouts
	guess := t.guess(mb.flow.layout, g.flags&flagSYN != 0)
	l := mb.layout
	is := func(e *layout) bool { return !c.Reading() && e != nil && e.same(l) }
	if next := t.at(*guess); next != nil && c.Bool(&md.layoutNext, is(next)) {
		mb.layout = next
		return nil
	}
	place := uint32(0) // writing: where the entry may be
	if !c.Reading() {
		place = uint32(l.place)
	}
	if c.Bool(&md.layoutNew, !is(t.at(uint8(place)))) {
		shape, err := m.codeNewLayout(c, mb)
		if err != nil {
			return err
		}
		e := t.enter(shape, m.serial)
		shape.place = e.place
		mb.layout = e
	} else if mb.layout = t.at(uint8(c.Index(place, uint32(len(t.table))))); mb.layout == nil {
		return bad("layout unknown")
	}
	t.last = mb.layout
	*guess = mb.layout.place
	return nil
}

// codeNewLayout codes the bytes of a layout against those of the last one.
func (m *memory) codeNewLayout(c *model.Coder, mb *member) (*layout, error) {
	md := &m.models
	l := mb.layout
	var b, was []byte
	var ip, n int
	if !c.Reading() {
		b, ip, n = l.bytes, l.ip, len(l.bytes)
	}
	if last := m.layouts.last; last != nil {
		was = last.bytes
	}
	ip = int(md.layoutLen.Uint(c, uint64(ip)))
	n = int(md.layoutLen.Uint(c, uint64(n)))
	if n < 20 || n > maxHeader {
		return nil, bad("length of a layout")
	}
	if c.Reading() {
		b = m.scratch[:0]
	}
	for i := range n {
		var old, v byte
		if i < len(was) {
			old = was[i]
		}
		if !c.Reading() {
			v = b[i]
		}
		if !c.Bool(&md.layoutSame, v == old) {
			v = byte(c.Bits(uint64(v), 8))
		} else {
			v = old
		}
		if c.Reading() {
			b = append(b, v)
		}
	}
	if !c.Reading() {
		return l, nil
	}
	m.scratch = b
	l, ok := newLayout(b, ip, mb.flow.key.Proto)
	if !ok {
		return nil, bad("layout")
	}
	return l, nil
}
