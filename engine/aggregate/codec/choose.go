package codec

import (
	"math/bits"

	"sheaf/engine/aggregate/model"
	"sheaf/parsers"
)

// What is chosen here, a reader is told or does not need to know: another Encoder may
// choose otherwise, and its frames are understood as well.

// chooseHead chooses what a frame begins with.
func (e *Encoder) chooseHead(f *Frame) head {
	return head{
		record: e.past.items.len()+packets(f.Groups) <= min(maxSentItems, 4*int(e.limits.Packets)),
		acked:  e.rebuilt,
		clock:  e.tick(f),
		pairs:  e.valid(e.pairs),
	}
}

// packets returns how many packets some groups have.
func packets(groups []Group) (n int) {
	for i := range groups {
		n += max(1, len(groups[i].Members))
	}
	return n
}

// tick returns what the clock is set to: so that the first TSval of a known flow is
// exactly as predicted, else by the time.
func (e *Encoder) tick(f *Frame) uint32 {
	const far = 1 << 20 // milliseconds, 17 minutes: a TSval farther off says nothing of the time
	for i := range f.Groups {
		for k := range f.Groups[i].Members {
			mb := &f.Groups[i].Members[k]
			if f := e.context(mb.Flow.cid); f != nil && f.hasTSval && mb.layout.tsval != 0 {
				t := mb.tsval - f.offset
				if d := int32(t - e.clock); d > -far && d < far {
					return t
				}
			}
		}
	}
	return e.clock + uint32((f.Now - e.now).Milliseconds())
}

// chooseContexts finds the contexts of a group's members, and counts who has none yet.
func (e *Encoder) chooseContexts(g *Group) {
	e.fresh = 0
	for i := range g.Members {
		mb := &g.Members[i]
		mb.cid = mb.Flow.cid
		if mb.fresh = mb.cid.none(); mb.fresh {
			e.fresh++
		} else {
			mb.context = e.contexts[mb.cid.place()]
		}
	}
}

// chooseNew chooses the CIDs of those members that are new, in the order in which they
// will be announced, and finds the other directions of their flows.
func (e *Encoder) chooseNew(g *Group) {
	next := uint32(len(e.contexts))
	for i := 0; e.fresh > 0; i++ {
		mb := &g.Members[i]
		if !mb.fresh {
			continue
		}
		mb.cid = CID{}
		if len(e.reuse) > 0 {
			mb.cid, e.reuse = e.reuse[0], e.reuse[1:]
		}
		if mb.cid.none() {
			mb.cid = cidAt(next)
			next++
		}
		e.fresh--
		mb.Flow.cid = mb.cid
		mb.reverse = e.reverse(&mb.Flow.Key)
	}
}

// A placing says where in a group a flow is.
type placing struct {
	group groupNumber
	place uint32
}

// chooseMembers chooses the cheaper source for a group of several, finds which of its
// candidates are members, and puts these in the order in which they will be listed. Of
// two that cost the same the flows that are expected come first: they are in the order in
// which their data went out, in which they will have answered, too.
func (e *Encoder) chooseMembers(g *Group) {
	for len(e.places) < len(e.contexts) {
		e.places = append(e.places, placing{})
	}
	for i := range g.Members {
		if mb := &g.Members[i]; !mb.fresh {
			e.places[mb.cid.place()] = placing{e.group, uint32(i)}
		}
	}
	g.source = sourceNone
	e.present = e.present[:0]
	if len(*e.set(g)) == 0 && len(g.Spans) > 0 && len(g.Members) >= setMinimum {
		// The order of a template's first group becomes that of its set. Brokers
		// mostly send in one order, which then is that of the TSvals too.
		return
	}
	cost := 4 * len(g.Members)
	for _, from := range [...]memberSource{sourceExpected, sourceSet} {
		if n := e.numCandidates(g, from); n == 0 || n > 16*len(g.Members) {
			continue
		}
		if c, ok := e.sourceCost(g, from); ok && c < cost {
			g.source, cost = from, c
		}
	}
	if g.source == sourceNone {
		return
	}
	e.listed = e.candidates(g, g.source, e.listed[:0])
	for _, cid := range e.listed {
		e.present = append(e.present, e.placed(cid))
	}
	e.order(g)
}

// placed tells whether a flow is in the group at hand.
func (e *Encoder) placed(c CID) bool {
	return e.context(c) != nil && e.places[c.place()].group == e.group
}

// sourceCost returns about what it takes to list a group's members from a source, in
// units of two bits: one for each change between members and others, four for each member
// that is not there. It reports false where the source has none of them.
func (e *Encoder) sourceCost(g *Group, from memberSource) (cost int, ok bool) {
	e.listed = e.candidates(g, from, e.listed[:0])
	hits, turns, last := 0, 0, true
	for _, cid := range e.listed {
		there := e.placed(cid)
		if there {
			hits++
		}
		if there != last {
			turns++
		}
		last = there
	}
	return 4*(len(g.Members)-hits) + turns, hits > 0
}

// order sorts the members as the candidates have them, the others behind.
func (e *Encoder) order(g *Group) {
	at := 0
	for i, cid := range e.listed {
		if !e.present[i] {
			continue
		}
		if from := int(e.places[cid.place()].place); from != at {
			other := &g.Members[at]
			if !other.fresh {
				e.places[other.cid.place()].place = uint32(from)
			}
			g.swap(at, from)
		}
		at++
	}
}

// chooseSums finds what the IPv4 header checksums are that are not right.
func (e *Encoder) chooseSums(g *Group) {
	for i := range g.Members {
		mb := &g.Members[i]
		if mb.ipSumMode == ipSumRight {
			continue
		}
		mb.ipSumMode = ipSumExplicit
		if mb.ipSum == mb.context.ipSum {
			mb.ipSumMode = ipSumSame
		}
	}
}

// chooseShuffled tells whether the members' TSvals are nearer to the first than each to
// the one before.
func (e *Encoder) chooseShuffled(g *Group) {
	g.shuffled = false
	if !g.Kind.TCP() || len(g.Members) < setMinimum {
		return
	}
	near, far := 0, 0
	var first, last int32
	begun := false
	for i := range g.Members {
		mb := &g.Members[i]
		if mb.layout.tsval == 0 || !mb.context.hasTSval {
			continue
		}
		now := int32(mb.tsval - mb.context.offset - e.clock)
		if begun {
			near += halfBits(now - last)
			far += halfBits(now - first)
		} else {
			first, begun = now, true
		}
		last = now
	}
	g.shuffled = far < near
}

// halfBits is about what a difference costs, in half bits.
func halfBits(d int32) int {
	if d == 0 {
		return 0
	}
	return 3 + 2*bits.Len32(uint32(max(d, -d)))
}

// chooseBody chooses whether a span's body is a copy of a remembered one, an edit, or
// literals.
func (e *Encoder) chooseBody(g *Group, s *Span) {
	s.depth, s.literal = e.templates.at(s.template).find(s.Body), false
	if s.depth < 0 {
		s.literal = e.chooseLiteral(g, s)
	}
}

// A flow's edits are futile when so many of its bodies in a row were longer as edits
// than they are, as masked ones are. So many of the next are left to the literals before
// another is tried. That saves time, not bytes: 1 and 10, 5 and 60 change the captures of
// testdata by less than 0.02 %.
const (
	futileAfter = 3
	futileFor   = 15
)

// maxEffort bounds the literal bytes of a frame that the Text model takes: it
// is good at few bytes, and a hundred times slower than zstd, which is left the
// rest: at 200 ns a byte it is 0.8 ms a frame. 1 and 16 kB change no
// capture of testdata.
const maxEffort = 4 << 10

// chooseLiteral tells whether a body is better left to the literals. If not, there is a
// plan for the edit.
func (e *Encoder) chooseLiteral(g *Group, s *Span) bool {
	body, base := s.Body, e.base(s)
	if e.similarity&ByNothing != 0 || s.Encrypted {
		return true
	}
	// an edit would save the little that is before the noise, and take longer
	if s.noise && len(body) > model.MaxLiterals && s.Split <= len(body)/8 && !similar(base, body) {
		return true
	}
	if f := g.singleton(); f != nil && f.futile >= futileAfter && !similar(base, body) {
		if f.futile++; f.futile <= futileAfter+futileFor {
			return true
		}
		f.futile = futileAfter - 1 // one more chance
	}
	if e.effort <= maxEffort && (len(body) <= model.MaxLiterals && len(base) == 0 || len(body) <= 128) {
		e.effort += e.plan.Make(base, body, len(body))
		return false
	}
	long := s.Protocol == parsers.Opaque || len(body) > 4*model.MaxLiterals
	if len(base) == 0 || long && !similar(base, body) || e.effort > maxEffort {
		return true
	}
	n := e.plan.Make(base, body, model.MaxLiterals)
	if n > model.MaxLiterals || n > 64 && n > len(body)*3/4 {
		return true
	}
	e.effort += n
	return false
}

// noteBody notes what an edit took for a body.
func (e *Encoder) noteBody(g *Group, s *Span) {
	if s.depth >= 0 || s.literal {
		return
	}
	g.Cost.Topics += e.topic
	if f := g.singleton(); f == nil {
		return
	} else if e.took <= len(s.Body) {
		f.futile = 0
	} else {
		f.futile++
	}
}

// singleton returns the flow of a group of a single segment, nil for another group.
func (g *Group) singleton() *Flow {
	if len(g.Members) != 1 {
		return nil
	}
	return g.Members[0].Flow
}
