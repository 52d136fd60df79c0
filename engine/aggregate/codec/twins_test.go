package codec

import (
	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// Twins are two codecs that remember the same, one that writes and one that reads, for
// tests of a single rule of the syntax.
type twins struct {
	t    tester
	w, r codec
}

// newTwins returns two codecs with n contexts of TCP over IPv4, whose layout has
// timestamps.
func newTwins(t tester, n int) *twins {
	p := &twins{t: t}
	for _, x := range [...]*codec{&p.w, &p.r} {
		x.init(wire.DefaultLimits)
		l := x.layouts.enter(stampedLayout(t), 0)
		for i := range n {
			x.enterContext(cidAt(uint32(i)), &context{
				key: parsers.FlowKey{Version: 4, Proto: ip.TCP, SrcPort: uint16(i + 1)}, layout: l,
			})
		}
	}
	return p
}

// stampedLayout returns a layout of TCP over IPv4 with timestamps.
func stampedLayout(t tester) *layout {
	f, _ := describe(t, codectest.Segment{TSval: 1}.Packet())
	return f.layout
}

// both changes what both remember.
func (p *twins) both(change func(s *state)) {
	change(&p.w.state)
	change(&p.r.state)
}

// see gives the flow of context i another direction with some edges, newest first.
func (p *twins) see(i int, v view) {
	p.both(func(s *state) {
		for len(s.views.table) <= i {
			s.views.table = append(s.views.table, view{})
		}
		v.valid = true
		s.views.table[i] = v
		s.pair(cidAt(uint32(i)), peerCIDAt(uint32(i)))
	})
}

// group returns a group with a member for each context, all as context and layout have it.
func (p *twins) group(x *codec) *Group {
	g := &Group{Kind: TCP4, Flags: parsers.FlagACK}
	for i, f := range x.contexts {
		g.Members = append(g.Members, Member{context: f, cid: cidAt(uint32(i)), Fields: Fields{layout: f.layout}})
	}
	return g
}

// code has a rule write a group, which fill has filled, and read it. It returns both
// groups and the bits that it took, and checks that both remember the same afterwards.
func (p *twins) code(fill func(g *Group), rule func(*codec, *Group) error) (written, read *Group, bits float64) {
	p.t.Helper()
	return p.codeShared(fill, nil, rule)
}

// codeShared is code for a rule at which the reader knows some of the group already.
func (p *twins) codeShared(fill, share func(g *Group), rule func(*codec, *Group) error) (written, read *Group, bits float64) {
	p.t.Helper()
	written, read = p.group(&p.w), p.group(&p.r)
	if share != nil {
		share(written)
		share(read)
	}
	fill(written)
	p.w.coder.Write(nil)
	if err := rule(&p.w, written); err != nil {
		p.t.Fatal(err)
	}
	bits = p.w.coder.Cost()
	p.r.coder.Read(p.w.coder.Finish())
	if err := rule(&p.r, read); err != nil {
		p.t.Fatal(err)
	}
	if !p.r.coder.Complete() {
		p.t.Fatal("the reader did not read all that was written")
	}
	if d := codectest.Differ(&p.w, &p.r, true); d != "" {
		p.t.Fatal(d)
	}
	return written, read, bits
}

// refused has a rule write a group that no writer makes, and returns what the reader
// says to it. The writer goes on where it would see that itself.
func (p *twins) refused(fill func(g *Group), rule func(*codec, *Group) error) error {
	g := p.group(&p.w)
	fill(g)
	p.w.coder.Write(nil)
	_ = rule(&p.w, g)
	p.r.coder.Read(p.w.coder.Finish())
	return rule(&p.r, p.group(&p.r))
}

// steady returns the bits that a rule takes once it has been used n times.
func (p *twins) steady(n int, fill func(g *Group), rule func(*codec, *Group) error) (bits float64) {
	p.t.Helper()
	for range n + 1 {
		_, _, bits = p.code(fill, rule)
	}
	return bits
}

// atMost and atLeast check what something takes.
func atMost(t tester, what string, bits, most float64) {
	t.Helper()
	if bits > most {
		t.Fatalf("%s: %.2f bits, expected %.2f at most", what, bits, most)
	}
}

func atLeast(t tester, what string, bits, least float64) {
	t.Helper()
	if bits < least {
		t.Fatalf("%s: %.2f bits, expected %.2f at least", what, bits, least)
	}
}

// each calls fill for all members of a group.
func each(fill func(i int, mb *Member)) func(*Group) {
	return func(g *Group) {
		for i := range g.Members {
			fill(i, &g.Members[i])
		}
	}
}
