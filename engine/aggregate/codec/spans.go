package codec

import (
	"slices"

	"sheaf/engine/aggregate/model"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// maxSpans bounds the spans of a segment: each has a byte at least.
const maxSpans = wire.MaxPacket

// A payloadCoding is where the codec is in the payload of a group.
type payloadCoding struct {
	number int             // of spans
	left   int             // bytes that the packet may still have
	before *templateNumber // where it is noted what follows what came before; nil for nothing before
}

// codeSpanCount codes how many spans a group has.
func (x *codec) codeSpanCount(g *Group) (p payloadCoding, err error) {
	md := &x.models
	p.number = len(g.Spans)
	if x.coder.Bool(&md.oneSpan[b2i(g.single)], p.number == 1) {
		p.number = 1
	} else {
		p.number = int(md.spans.Uint(&x.coder, uint64(p.number)))
	}
	if p.number < 1 || p.number > maxSpans {
		return p, invalid("number of spans")
	}
	p.left = wire.MaxPacket
	p.before = x.before(g)
	return p, nil
}

// before returns where the template is noted that followed the one before the group:
// of a single segment, that of the flow's last span; of a group of several, that of the
// last such group. It returns nil where there was none.
func (x *codec) before(g *Group) *templateNumber {
	if g.single {
		if f := g.first(); f != nil && x.templates.holds(f.template) {
			return &x.templates.at(f.template).next
		}
	} else if x.templates.holds(x.lastTemplate) {
		return &x.templates.at(x.lastTemplate).follow
	}
	return nil
}

// first returns the context of the first member, nil where there is none.
func (g *Group) first() *context {
	if len(g.Members) == 0 {
		return nil
	}
	return g.Members[0].context
}

// codeTemplate codes which template the i-th span belongs to, and of a new one, which
// other one has the body to begin with, its base. The template is mostly the one that
// followed what came before last time: a sensor that sends humidity behind temperature
// does so each time.
func (x *codec) codeTemplate(g *Group, p *payloadCoding, i int) error {
	md := &x.models
	s := g.span(i)
	which := b2i(g.single)
	if i > 0 {
		which = 2
	}
	if p.before != nil && x.templates.holds(*p.before) &&
		x.coder.Bool(&md.templateGuess[which], s.known && s.template == *p.before) {
		s.template, s.known = *p.before, true
		return nil
	}
	size := uint32(len(x.templates.table))
	s.known = !x.coder.Bool(&md.templateNew, !s.known)
	switch {
	case s.known:
		s.template = templateAt(x.coder.Index(s.template.place(), size))
		if !x.templates.holds(s.template) {
			return invalid("template unknown")
		}
	case x.coder.Bool(&md.based, !s.base.none()):
		s.base = templateAt(x.coder.Index(s.base.place(), size))
		if !x.templates.holds(s.base) {
			return invalid("base of a template unknown")
		}
	default:
		s.base = templateNumber{}
	}
	return nil
}

// enterTemplate makes a span's template the one used last, a new one where it was not
// known, and notes that it followed what came before.
func (x *codec) enterTemplate(s *Span, p *payloadCoding) {
	if !s.known {
		clock := x.clock
		x.scratch = x.scratch[:0]
		if !s.base.none() {
			t := x.templates.at(s.base)
			x.scratch = append(x.scratch, t.body(0)...) // the base may have to give way
			clock = t.clock
		}
		s.template = x.templates.take(int(x.limits.Templates))
		x.templates.at(s.template).clock = clock
	}
	x.templates.touch(s.template)
	if p.before != nil {
		*p.before = s.template
	}
	p.before = &x.templates.at(s.template).next
}

// base returns what the body of a span is written as an edit of, borrowed until the
// next call of enterTemplate: the newest body of its template, or of the template's
// base.
func (x *codec) base(s *Span) []byte {
	if t := x.templates.at(s.template); t.count > 0 {
		return t.body(0)
	}
	if s.base.none() || s.known {
		return nil
	}
	return x.scratch
}

// codeBody codes the bytes of a span: as one of the template's bodies again, which costs
// a decision or two, as an edit of the newest, or as literals, which go beside the control
// field. {"t":21.5} behind {"t":21.4} is an edit of one number by 1: some two bits.
func (x *codec) codeBody(s *Span, p *payloadCoding) error {
	md := &x.models
	t := x.templates.at(s.template)
	if t.count > 0 && x.coder.Bool(&md.exact[b2i(t.exact)], s.depth >= 0) {
		s.depth = int(x.coder.Symbol(md.depth[:], uint32(s.depth)))
		if s.depth >= t.count || len(t.body(s.depth)) > p.left {
			return invalid("body unknown")
		}
		s.Body = t.body(s.depth)
		return nil
	}
	s.depth = -1
	before := len(x.coder.Literals)
	if s.literal = x.coder.Bool(&md.literal[b2i(t.count > 0)], s.literal); s.literal {
		n := int(md.literalLen.Uint(&x.coder, uint64(len(s.Body))))
		var ok bool
		if s.Body, ok = x.coder.Literal(s.Body, n); !ok || n > p.left {
			return invalid("more literals than there are")
		}
	} else if err := x.codeEdit(s, p.left); err != nil {
		return err
	}
	s.Literals = len(x.coder.Literals) - before
	return nil
}

// codeEdit codes the bytes of a span, at most limit of them, as an edit of the newest
// body of its template, or of the template's base.
func (x *codec) codeEdit(s *Span, limit int) error {
	e := model.Edit{
		Base: x.base(s), Body: s.Body, Plan: &x.plan, Split: s.Split, Limit: limit,
		Elapsed: int64(int32(x.clock - x.templates.at(s.template).clock)),
	}
	before := x.coder.Len() + len(x.coder.Literals)
	b, err := x.models.body.Code(&x.coder, x.body[:0], &e)
	if err != nil {
		return invalid(err.Error())
	}
	x.took, x.topic = x.coder.Len()+len(x.coder.Literals)-before, e.SplitCost
	if x.coder.Reading() {
		x.body, s.Body = b, b
	}
	return nil
}

// learnBody makes the body of a span the newest of its template, where it is none of
// those there are.
func (x *codec) learnBody(s *Span) {
	t := x.templates.at(s.template)
	if t.count > 0 {
		t.exact = s.depth >= 0
	}
	if s.depth < 0 && len(s.Body) <= maxBody {
		x.templates.remember(s.template, s.Body, x.clock, int(x.limits.Bodies))
	}
}

// codeHoles codes where a body has holes, mostly where the last one had them.
func (x *codec) codeHoles(s *Span) error {
	md := &x.models
	was := x.templates.at(s.template).holes
	if x.coder.Bool(&md.holesSame[b2i(len(was) > 0)], slices.Equal(s.Holes, was)) {
		if x.coder.Reading() {
			s.Holes = x.holdHoles(was)
		}
		return s.checkHoles()
	}
	n := int(md.hole.Uint(&x.coder, uint64(len(s.Holes))))
	if n < 0 || n > parsers.MaxHoles {
		return invalid("number of holes")
	}
	if x.coder.Reading() {
		s.Holes = x.holdHoles(make([]Hole, parsers.MaxHoles)[:n])
	}
	for i := range s.Holes {
		h := &s.Holes[i]
		h.at = int(md.hole.Uint(&x.coder, uint64(h.at)))
		h.kind = parsers.HoleKind(x.coder.Bits(uint64(h.kind), 2))
		h.width = uint8(x.coder.Bits(uint64(h.width), 4))
		h.counter = uint8(x.coder.Bits(uint64(h.counter), 2))
		h.step = uint8(x.coder.Bits(uint64(h.step), 1))
	}
	return s.checkHoles()
}

// checkHoles tells whether the holes of a span are in its body, in their order.
func (s *Span) checkHoles() error {
	at := 0
	for i, h := range s.Holes {
		if h.at < at || h.at > len(s.Body) || !h.valid(i) {
			return invalid("hole outside the body")
		}
		at = h.at
	}
	return nil
}

// learnHoles notes where the newest body of a span's template has holes.
func (x *codec) learnHoles(s *Span) {
	t := x.templates.at(s.template)
	t.holes = append(t.holes[:0], s.Holes...)
}

// holdHoles returns a copy of some holes that stays until the group has been built:
// another span of it may change those of the template.
func (x *codec) holdHoles(holes []Hole) []Hole {
	n := len(x.holes)
	x.holes = append(x.holes, holes...)
	return x.holes[n:len(x.holes):len(x.holes)]
}

// learnSpans notes the template of a group of several, by which the next one's is guessed.
func (x *codec) learnSpans(g *Group) {
	if !g.single && g.Kind != Verbatim {
		x.lastTemplate = g.Spans[0].template
	}
}
