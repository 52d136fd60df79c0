package codec

import (
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// maxLayouts bounds the table of layouts. A lane has as many places as templates, up
// to this: the captures at hand have 1 to 34 layouts, mirrors of a backbone some
// hundreds, of which few are in use at a time.
const maxLayouts = 256

// layouts is the table of the layouts that both ends know, by number; what was used
// longest ago gives way. A flow goes on with its last layout also when that one has
// lost its place, and one that comes back gets an entry of its own: so an entry
// never changes its place, and both ends have the same ones at the same flows.
type layouts struct {
	table []*layout
	max   int
	last  *layout                            // the one coded last by its number, or entered
	after [2 * (maxLayouts + 1)]layoutNumber // of the layout that followed last time
}

func (t *layouts) init(limits *wire.Limits) {
	t.max = min(maxLayouts, int(limits.Templates))
	t.table = make([]*layout, 0, t.max)
}

// enter makes an entry for l, used in the group at hand.
func (t *layouts) enter(l *layout, group groupNumber) *layout {
	at := len(t.table)
	if at < t.max {
		t.table = append(t.table, nil)
	} else {
		at = t.oldest(group)
	}
	e := *l
	e.number, e.used = layoutAt(uint32(at)), group
	t.table[at] = &e
	return &e
}

// oldest returns the place of the layout used longest before a group.
func (t *layouts) oldest(group groupNumber) (at int) {
	for i, l := range t.table {
		if group-l.used > group-t.table[at].used {
			at = i
		}
	}
	return at
}

// at returns the entry of a number, nil where there is none.
func (t *layouts) at(n layoutNumber) *layout {
	if n.place() >= uint32(len(t.table)) {
		return nil
	}
	return t.table[n.place()]
}

// guess returns where the number is noted of the layout that followed l last time;
// l is an entry or nil. first says that the segment opens a connection.
func (t *layouts) guess(l *layout, first bool) *layoutNumber {
	i := 0
	if l != nil {
		i = 2 * (int(l.number.place()) + 1)
	}
	if first {
		i++
	}
	return &t.after[i]
}

// orFirst returns n, and for none the number of the table's first entry: that is what
// is looked at while nothing is noted.
func orFirst(n layoutNumber) layoutNumber {
	if n.none() {
		return layoutAt(0)
	}
	return n
}

// codeLayouts codes the members' layouts: mostly as last time, else one that
// followed the same layout before, as that of data follows the one of a SYN, else one of
// the table, else a new one. From then on the members have entries.
func (x *codec) codeLayouts(g *Group) error {
	res := x.column(len(g.Members))
	for i := range x.written(g) {
		if mb := &g.Members[i]; mb.context.layout == nil || !mb.layout.same(mb.context.layout) {
			res[i] = 1
		}
	}
	x.models.layout[g.payload].Code(&x.coder, res)
	for i := range g.Members {
		mb := &g.Members[i]
		if res[i] == 0 {
			mb.layout = mb.context.layout
		} else if err := x.codeLayout(mb, g.Flags&parsers.FlagSYN != 0); err != nil {
			return err
		}
		if mb.layout == nil || mb.layout.kind != g.Kind || mb.layout.proto != mb.context.key.Proto {
			return invalid("layout of another kind")
		}
	}
	return nil
}

// codeLayout codes the layout of a member that is not its flow's last one. first says
// that the segment opens a connection.
func (x *codec) codeLayout(mb *Member, first bool) error {
	md := &x.models
	t := &x.layouts
	l := mb.layout // nil at the reading end
	is := func(e *layout) bool { return l != nil && e != nil && e.same(l) }
	guess := t.guess(mb.context.layout, first)
	if next := t.at(orFirst(*guess)); next != nil && x.coder.Bool(&md.layoutNext, is(next)) {
		mb.layout = next
		return nil
	}
	var hint layoutNumber
	if l != nil {
		hint = orFirst(l.number)
	}
	if x.coder.Bool(&md.layoutNew, !is(t.at(hint))) {
		shape, err := x.codeNewLayout(l, mb.context.key.Proto)
		if err != nil {
			return err
		}
		mb.layout = t.enter(shape, x.group)
		shape.number = mb.layout.number
	} else if mb.layout = t.at(layoutAt(x.coder.Index(hint.place(), uint32(len(t.table))))); mb.layout == nil {
		return invalid("layout unknown")
	}
	t.last = mb.layout
	*guess = mb.layout.number
	return nil
}

// codeNewLayout codes the bytes of a layout against those of the last one. l is the
// one to be written, nil at the reading end.
func (x *codec) codeNewLayout(l *layout, proto uint8) (*layout, error) {
	md := &x.models
	var b, was []byte
	var ip int
	if l != nil {
		b, ip = l.bytes, l.ip
	}
	if last := x.layouts.last; last != nil {
		was = last.bytes
	}
	ip = int(md.layoutLen.Uint(&x.coder, uint64(ip)))
	n := int(md.layoutLen.Uint(&x.coder, uint64(len(b))))
	if n < v4Len || n > maxHeader {
		return nil, invalid("length of a layout")
	}
	x.scratch = append(x.scratch[:0], b...)
	if l == nil {
		x.scratch = append(x.scratch, make([]byte, n)...)
	}
	b = x.scratch
	for i := range n {
		var old byte
		if i < len(was) {
			old = was[i]
		}
		if x.coder.Bool(&md.layoutSame, b[i] == old) {
			b[i] = old
		} else {
			b[i] = byte(x.coder.Bits(uint64(b[i]), 8))
		}
	}
	if l != nil {
		return l, nil
	}
	l, ok := newLayout(b, ip, proto)
	if !ok {
		return nil, invalid("layout")
	}
	return l, nil
}
