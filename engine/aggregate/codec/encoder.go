package codec

import (
	"time"

	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// Config says how a gateway's end of a lane codes.
type Config struct {
	Similarity Similarity  // what makes messages comparable
	Limits     wire.Limits // those negotiated for the lane
	Sealer     Sealer      // of the Decoder; nil where neither end opens records
}

// A Sealer makes TLS records of opened payloads, at a reading end. Its errors match
// ErrFrame where the peer asked for what it cannot have.
type Sealer interface {
	// Tell takes in what the peer tells of the secrets of a flow and of its other
	// direction. The bytes are borrowed, and cleared after the call.
	Tell(key *parsers.FlowKey, secrets []byte) error
	// Seal appends the payload that a flow's segment had to dst, of the opened one.
	// Segments come in the order in which the peer's Opener made them.
	Seal(dst []byte, key *parsers.FlowKey, opened []byte) ([]byte, error)
	// Passed is told of each rebuilt TCP segment, sealed or not, whose payload
	// begins like a TLS handshake, or whose flags say that a connection begins or
	// ends. The payload is borrowed for the call.
	Passed(key *parsers.FlowKey, flags uint8, payload []byte)
	// Forget says that a flow has given its context to another.
	Forget(key *parsers.FlowKey)
}

// New returns the two halves of one gateway's end of a lane, at the start of an epoch:
// what codes its own frames, and what decodes the peer's.
func New(cfg Config) (*Encoder, *Decoder) {
	past := &history{}
	e := &Encoder{
		past: past, similarity: cfg.Similarity,
		shapes: make(map[string]*layout), byKey: make(map[uint64]templateNumber),
		alike: make(map[uint64]templateNumber), unpaired: make(map[parsers.FlowKey]peerCID),
	}
	e.init(cfg.Limits)
	d := &Decoder{past: past}
	d.init(cfg.Limits)
	e.seals, d.seals, d.sealer = cfg.Sealer != nil, cfg.Sealer != nil, cfg.Sealer
	return e, d
}

// An Encoder is the writing end of one direction of a lane (the compressor of RFC 5795
// section 2.1): it makes control fields of groups of segments. What it has beside the
// codec is what it chooses by; its Decoder at the far end never asks for any of it.
type Encoder struct {
	codec
	past       *history
	similarity Similarity
	rebuilt    uint64        // frames of the peer that the Decoder beside it has rebuilt
	now        time.Duration // when the last frame was written

	// Headers.
	shapes map[string]*layout // by their bytes
	header []byte             // scratch: the header of a segment, its fields zeroed
	member Member             // scratch: a member made of it
	blocks sack               // scratch: its SACK blocks
	runs   []run              // scratch: its runs
	proof  []byte             // scratch: a header rebuilt

	// Members.
	reuse    []CID                       // the frame's
	fresh    int                         // members of the group at hand that have no CID yet
	places   []placing                   // by CID
	unpaired map[parsers.FlowKey]peerCID // the peer's flows whose other direction is not known
	pairs    []pair                      // found since the last frame

	// Templates and bodies.
	notes  []templateNotes           // by template
	byKey  map[uint64]templateNumber // what spans of a key belong to
	alike  map[uint64]templateNumber // the newest by name, by length, by both
	heads  [256]uint64               // keys of random bytes, seen lately
	effort int                       // literal bytes of the frame given to the Text model
}

// A Flow is what the Encoder keeps of one direction of a conversation beyond what both
// ends remember of it. Its zero value, with a key, is a flow that the peer does not
// know. The caller owns it, and forgets it when it gives its CID to Frame.Reuse.
type Flow struct {
	Key    parsers.FlowKey
	cid    CID     // none until it is announced
	layout *layout // of its last segment, which may still be pending
	futile uint8   // its bodies in a row that were longer as edits, and then left out
}

// CID returns the number under which the peer knows the flow; it reports false where it
// does not.
func (f *Flow) CID() (c CID, announced bool) { return f.cid, !f.cid.none() }

// A Frame is what an Encoder makes a control field of.
type Frame struct {
	Now    time.Duration // by the caller's clock
	Groups []Group       // in the order in which their packets are to come out
	Reuse  []CID         // what the new flows of the groups are called, in turn; none for a CID that is new as well
}

// A Result is what an Encoder made of a Frame.
type Result struct {
	Control  []byte  // the control field
	Literals []byte  // what goes beside it
	Head     float64 // bits of the control field in front of the groups
}

// Written returns how many frames there were.
func (e *Encoder) Written() uint64 { return e.past.frames }

// Contexts returns how many CIDs have been given out; the next new one is behind them.
func (e *Encoder) Contexts() int { return len(e.contexts) }

// Unreported returns how many frames of the peer were rebuilt that no frame has told
// the peer of.
func (e *Encoder) Unreported() uint64 { return e.rebuilt - e.acked }

// Encode appends a control field to control, and the literals beside it to literals.
// Its flows are known to the peer from then on, and its groups say what they cost.
func (e *Encoder) Encode(f Frame, control, literals []byte) Result {
	c := &e.coder
	c.Write(control)
	c.Literals = literals
	e.items, e.reuse, e.effort = e.items[:0], f.Reuse, 0

	h := e.chooseHead(&f)
	e.codeHead(&h)
	must(e.codePairs(&h))
	e.now, e.pairs = f.Now, e.pairs[:0]

	r := Result{Head: c.Cost()}
	at := r.Head
	for i := range f.Groups {
		g := &f.Groups[i]
		before := len(c.Literals)
		g.Cost = Cost{}
		e.codeMore(true)
		e.encodeGroup(g)
		now := c.Cost()
		g.Cost.Bits, g.Cost.Literals, at = now-at, len(c.Literals)-before, now
	}
	e.codeMore(false)

	e.past.frames++
	if h.record {
		e.past.add(e.items)
	}
	e.texts, e.sacks = e.texts[:0], e.sacks[:0]
	r.Control, r.Literals = c.Finish(), c.Literals
	return r
}

// must panics: an Encoder writes what its own limits allow.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// encodeGroup goes the way of Decoder.decodeGroup, and chooses before each step what
// there is to be coded.
func (e *Encoder) encodeGroup(g *Group) {
	e.chooseContexts(g)
	must(e.codeShape(g))
	if g.single {
		e.chooseNew(g)
		must(e.codeMember(g, 0))
	}
	if g.payload == 1 {
		e.encodeSpans(g)
	}
	g.CountHoles()
	if g.Kind == Verbatim {
		return
	}
	if !g.single {
		e.chooseMembers(g)
		e.chooseNew(g)
		must(e.codeMembers(g))
	}
	e.chooseSums(g)
	e.chooseShuffled(g)
	must(e.codeColumns(g))
	e.learn(g)
}

// encodeSpans goes the way of Decoder.decodeSpans. A span may be like the one before it
// in the same segment, so each is learned before the next is chosen.
func (e *Encoder) encodeSpans(g *Group) {
	begin := e.coder.Cost()
	p, err := e.codeSpanCount(g)
	must(err)
	for i := range g.Spans {
		s := &g.Spans[i]
		e.chooseTemplate(g, s)
		must(e.codeTemplate(g, &p, i))
		e.enterTemplate(s, &p)
		e.noteTemplate(s)
		e.chooseBody(g, s)
		must(e.codeBody(s, &p))
		e.noteBody(g, s)
		e.learnBody(s)
		must(e.codeHoles(s))
		e.learnHoles(s)
		p.left -= len(s.Body)
	}
	e.learnSpans(g)
	g.Cost.Bodies = e.coder.Cost() - begin
}

// Text keeps a text that fills a hole, until the frame has been encoded, and returns
// what stands for it among a group's values.
func (e *Encoder) Text(b []byte) uint64 { return e.addText(b) }

// Dissect takes the headers of a segment apart. It reports false where no layout can
// describe them. The key of a fragment is to have no ports.
func (e *Encoder) Dissect(seg *parsers.Segment) (Kind, bool) {
	e.member = Member{Fields: Fields{sack: &e.blocks}}
	h, ok := dissect(seg, e.header, &e.member.Fields)
	if !ok {
		return 0, false
	}
	e.header = h
	k := KindOf(&seg.Key)
	if k.TCP() != (seg.Key.Proto == ip.TCP && seg.TransportLen > 0) {
		return 0, false
	}
	e.runs = appendRuns(e.runs[:0], h, seg.HeaderLen, k.TCP())
	if len(e.runs) > 0 {
		start := len(e.texts)
		e.texts = cut(e.texts, h, e.runs)
		e.member.opaque = e.texts[start:len(e.texts):len(e.texts)]
	}
	return k, true
}

// Member makes a member of the segment, of a flow, that Dissect was called with last.
// flags are its TCP flags, 0 for others. It is borrowed until the next Dissect, and nil
// unless the header that comes of its fields is the one that the segment has: then
// nothing of it was kept.
func (e *Encoder) Member(f *Flow, seg *parsers.Segment, flags uint8) *Member {
	h, mb := e.header, &e.member
	if l := f.layout; l == nil || string(l.bytes) != string(h) || l.ip != seg.HeaderLen {
		l = e.shape(h, seg.HeaderLen, seg.Key.Proto)
		if l == nil || l.kind != KindOf(&f.Key) {
			return nil
		}
		f.layout = l
	}
	mb.Flow, mb.layout, mb.sumMode = f, f.layout, unresolved
	e.proof = appendHeader(e.proof[:0], &f.Key, &mb.Fields, flags, payloadOf(seg.Payload()))
	if string(e.proof) != string(seg.Packet[:len(h)]) {
		return nil
	}
	if mb.sack = nil; f.layout.sack != 0 {
		mb.sack = e.holdSack(0)
		*mb.sack = e.blocks
	}
	return mb
}

// shape returns the layout for a zeroed header, nil where there cannot be one.
func (e *Encoder) shape(h []byte, ip int, proto uint8) *layout {
	if l := e.shapes[string(h)]; l != nil && l.ip == ip && l.proto == proto {
		return l
	}
	l, ok := newLayout(h, ip, proto)
	if !ok {
		return nil
	}
	if len(e.shapes) > 4*maxLayouts {
		clear(e.shapes)
	}
	e.shapes[string(h)] = l
	return l
}
