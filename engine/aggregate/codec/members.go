package codec

// codeMembers codes who gets a group of several: candidates, with gaps, and then the
// members that are none of them, one by one. A message for all hundred flows of its
// template's set takes the source, one decision that all are there, and one that no
// other is: less than a bit together.
func (x *codec) codeMembers(g *Group) error {
	md := &x.models
	g.source = memberSource(x.coder.Symbol(md.source[g.payload][:], uint32(g.source)))
	if g.source > sourceExpected {
		return invalid("source of members")
	}
	x.listed = x.candidates(g, g.source, x.listed[:0])
	if n := len(x.listed); n <= cap(x.present) { // writing: as chosen
		x.present = x.present[:n]
	} else {
		x.present = make([]bool, n, 2*n)
	}
	count := &md.count[g.payload]
	if g.source != sourceNone {
		md.members[g.source].Code(&x.coder, x.present)
		count = &md.extra[g.payload]
	}
	listed := 0
	for i, cid := range x.listed {
		if !x.present[i] {
			continue
		}
		if err := x.listMember(g, listed, cid); err != nil {
			return err
		}
		listed++
	}
	extra := int(count.Uint(&x.coder, uint64(len(g.Members)-listed)))
	switch {
	case extra < 0 || listed+extra == 0:
		return invalid("number of members")
	case extra > int(x.limits.Packets):
		return pastLimit("members of a group")
	}
	for i := listed; i < listed+extra; i++ {
		if err := x.codeMember(g, i); err != nil {
			return err
		}
		if err := x.fits(); err != nil {
			return err
		}
	}
	return nil
}

// listMember makes the i-th member that of a candidate.
func (x *codec) listMember(g *Group, i int, cid CID) error {
	mb := g.member(i)
	f := x.context(cid)
	if f == nil || KindOf(&f.key) != g.Kind {
		return invalid("member listed twice, or without a context")
	}
	mark := &x.marks[cid.place()]
	if *mark == x.group {
		return invalid("member listed twice, or without a context")
	}
	*mark = x.group
	mb.context, mb.cid = f, cid
	return nil
}

// codeMember codes the i-th member by its CID, and its context where it is new. The CID
// is mostly the one that was listed behind the last member's last time: where 4, 9, 2
// were listed once, 4 and then 9 predict 2.
func (x *codec) codeMember(g *Group, i int) error {
	md := &x.models
	mb := g.member(i)
	last := x.context(x.lastMember[g.payload])
	if mb.fresh = x.coder.Bool(&md.fresh[g.payload], mb.fresh); mb.fresh {
		if err := x.codeContext(g.Kind, mb); err != nil {
			return err
		}
	} else {
		known := last != nil && x.context(last.next[g.payload]) != nil
		if known && x.coder.Bool(&md.follows[g.payload], last.next[g.payload] == mb.cid) {
			mb.cid = last.next[g.payload]
		} else {
			mb.cid = cidAt(x.coder.Index(mb.cid.place(), uint32(len(x.contexts))))
		}
	}
	f := x.context(mb.cid)
	if f == nil || KindOf(&f.key) != g.Kind {
		return invalid("member without a context")
	}
	if i > 0 && x.marked(mb.cid) {
		return invalid("member listed twice")
	}
	mb.context = f
	x.learnMember(g, mb.cid, last)
	return nil
}

// learnMember notes that a flow is listed in the group at hand, and behind which one.
func (x *codec) learnMember(g *Group, c CID, last *context) {
	x.mark(c)
	if last != nil {
		last.next[g.payload] = c
	}
	x.lastMember[g.payload] = c
}

// marked tells whether a flow has been listed in the group at hand.
func (x *codec) marked(c CID) bool { return x.marks[c.place()] == x.group }

func (x *codec) mark(c CID) { x.marks[c.place()] = x.group }

// candidates appends the CIDs that a source has for a group.
func (s *state) candidates(g *Group, from memberSource, dst []CID) []CID {
	switch from {
	case sourceSet:
		for _, e := range *s.set(g) {
			dst = append(dst, e.cid)
		}
	case sourceExpected:
		dst = s.views.expected.appendTo(dst, s.setLimit())
	}
	return dst
}

// numCandidates returns how many candidates a source has.
func (s *state) numCandidates(g *Group, from memberSource) int {
	if from == sourceSet {
		return len(*s.set(g))
	}
	return min(s.views.expected.count, s.setLimit())
}
