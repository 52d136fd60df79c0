package codec

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// A forger writes frames that no Encoder would, for a Decoder that remembers the same:
// its methods code what they are told, whether it makes sense or not.
type forger struct {
	*Encoder
	d     *Decoder
	head  head
	group *Group
	span  payloadCoding
}

// flowsKnown is how many contexts a forger's direction has, and views; its sets have
// all of them. It is no power of two, so that an index can name one past the end.
const flowsKnown = 5

// newForger returns one at the broker's end, which has sent three topics to all clients.
func newForger(t *testing.T, limits wire.Limits, clients int) *forger {
	t.Helper()
	x := newExchange(t, Config{Limits: limits})
	fan := codectest.NewFanout(clients)
	for range 6 {
		fan.Send(func(int) []byte {
			return codectest.Publish(fmt.Sprint("topic/", fan.Round%3), fmt.Sprint("round ", fan.Round), 0)
		}, x.run)
	}
	x.settle()
	f := &forger{Encoder: x.encoder(1), d: x.decoder(1)}
	f.head = head{record: true, acked: f.acked, clock: f.clock}
	f.atBoth(func(s *state) { s.ackSet = members(0, 1, 2, 3, 4) })
	return f
}

// frame has the Decoder read what write codes behind the head.
func (f *forger) frame(write func(f *forger)) (Rebuilt, error) {
	f.coder.Write(nil)
	f.codeHead(&f.head)
	write(f)
	return f.d.Decode(f.coder.Finish(), f.coder.Literals)
}

// shape begins a group.
func (f *forger) shape(kind Kind, members, spans int) *Group {
	_ = f.codePairs(&f.head)
	f.head.pairs = nil
	return f.next(kind, members, spans)
}

// next begins another group of the frame.
func (f *forger) next(kind Kind, members, spans int) *Group {
	f.codeMore(true)
	f.group = &Group{Kind: kind, Flags: parsers.FlagACK, Members: make([]Member, members), Spans: make([]Span, spans)}
	_ = f.codeShape(f.group)
	return f.group
}

// spans codes how many spans the group has.
func (f *forger) spans(n int) {
	if n != 1 && f.coder.Bool(&f.models.oneSpan[b2i(f.group.single)], false) {
		panic("more than one")
	} else if n != 1 {
		f.models.spans.Uint(&f.coder, uint64(n))
	} else {
		f.coder.Bool(&f.models.oneSpan[b2i(f.group.single)], true)
	}
	f.span = payloadCoding{number: n, left: wire.MaxPacket, before: f.before(f.group)}
}

// begin codes the template of the i-th span, which is one that is known, or a new one.
func (f *forger) begin(i int, n templateNumber) *Span {
	s := f.group.span(i)
	s.template, s.known = n, !n.none()
	_ = f.codeTemplate(f.group, &f.span, i)
	f.enterTemplate(s, &f.span)
	return s
}

// literal codes a body that goes beside the control field.
func (f *forger) literal(s *Span, n int) {
	s.Body, s.depth, s.literal = make([]byte, n), -1, true
	_ = f.codeBody(s, &payloadCoding{left: math.MaxInt})
	f.learnBody(s)
}

// end codes that the span has no holes, and learns it.
func (f *forger) end(s *Span) {
	_ = f.codeHoles(s)
	f.learnHoles(s)
	f.span.left -= len(s.Body)
}

// verbatim codes a packet of n bytes that goes as it is, in spans of a new template each.
func (f *forger) verbatim(spans ...int) {
	f.spans(len(spans))
	for i, n := range spans {
		s := f.begin(i, templateNumber{})
		f.literal(s, n)
		f.end(s)
	}
}

// atBoth changes what both ends remember.
func (f *forger) atBoth(change func(s *state)) {
	change(&f.state)
	change(&f.d.state)
}

// learnAtBoth has both ends remember a body of a template of theirs.
func (f *forger) learnAtBoth(n templateNumber, body []byte) {
	f.atBoth(func(s *state) { s.templates.remember(n, body, 0, int(s.limits.Bodies)) })
}

// refused holds that an error is one of a frame and has a reason.
func (f *forger) refused(t *testing.T, name string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want == "":
		if at := codectest.Differ(f.Encoder, f.d, true); at != "" {
			t.Errorf("%s: %s", name, at)
		}
	case err == nil:
		t.Errorf("%s: no error", name)
	case !errors.Is(err, ErrFrame) || err.Error() != ErrFrame.Error()+": "+want:
		t.Errorf("%s: %v, expected %s", name, err, want)
	case errors.Is(err, ErrLimit) != strings.HasPrefix(want, "past a limit"):
		t.Errorf("%s: %v is told as past a limit: %t", name, err, errors.Is(err, ErrLimit))
	}
}

// nothing codes that there are no pairs and no groups.
func (f *forger) nothing() {
	f.coder.Bool(&f.models.paired, false)
	f.codeMore(false)
}

// paired codes n pairs, or as many as there are numbers of flows for.
func (f *forger) paired(n uint64, flows ...uint32) {
	f.coder.Bool(&f.models.paired, true)
	f.models.pairs.Uint(&f.coder, n)
	for _, v := range flows {
		f.coder.Index(v, flowsKnown)
	}
}

// fresh codes that the member of a group with payload is new, and whether it has the
// CID of another flow.
func (f *forger) fresh(reuse bool) {
	f.coder.Bool(&f.models.fresh[f.group.payload], true)
	f.coder.Bool(&f.models.reuse, reuse)
}

// from codes where members are listed from, and which of the candidates are members.
func (f *forger) from(g *Group, source memberSource, present ...int) {
	f.coder.Symbol(f.models.source[g.payload][:], uint32(source))
	all := make([]bool, len(present))
	for i, p := range present {
		all[i] = p != 0
	}
	if len(all) > 0 {
		f.models.members[source].Code(&f.coder, all)
	}
}

// member codes a member by its CID.
func (f *forger) member(i int, place uint32) {
	f.group.member(i).cid = cidAt(place)
	_ = f.codeMember(f.group, i)
}

// guessed codes whether the first span has the template that followed the one before.
func (f *forger) guessed(yes bool) {
	if p := &f.span; p.before != nil && f.templates.holds(*p.before) {
		f.coder.Bool(&f.models.templateGuess[b2i(f.group.single)], yes)
	}
}

// copied codes a body that is one of the template's, and no holes.
func (f *forger) copied(s *Span, depth uint32) {
	t := f.templates.at(s.template)
	f.coder.Bool(&f.models.exact[b2i(t.exact)], true)
	f.coder.Symbol(f.models.depth[:], depth)
	if int(depth) < t.count {
		s.Body, s.depth = t.body(int(depth)), int(depth)
		f.learnBody(s)
		f.end(s)
	}
}

// edited codes a body of n bytes that is an edit of the template's newest.
func (f *forger) edited(s *Span, n int) {
	s.Body, s.depth, s.literal = []byte(strings.Repeat("q", n)), -1, false
	f.plan.Make(f.base(s), s.Body, n)
	_ = f.codeBody(s, &payloadCoding{left: math.MaxInt})
	f.learnBody(s)
}

// holes codes a packet of ten bytes with holes, or as many as n says.
func (f *forger) holes(n int, holes ...Hole) {
	f.shape(Verbatim, 0, 1)
	f.spans(1)
	s := f.begin(0, templateNumber{})
	f.literal(s, 10)
	if n == len(holes) {
		s.Holes = holes
		_ = f.codeHoles(s)
		f.learnHoles(s)
		return
	}
	f.coder.Bool(&f.models.holesSame[0], false)
	f.models.hole.Uint(&f.coder, uint64(n))
}

// A demand is a frame that asks for something.
type demand struct {
	name  string
	want  string // how the error ends; empty for none
	write func(f *forger)
}

// holdAgainst has each demand read by a Decoder that knows flowsKnown flows.
func holdAgainst(t *testing.T, demands []demand) {
	t.Helper()
	for _, of := range demands {
		f := newForger(t, wire.DefaultLimits, flowsKnown)
		_, err := f.frame(of.write)
		f.refused(t, of.name, err, of.want)
	}
}
