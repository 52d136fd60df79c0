package codec

import (
	"sheaf/engine/aggregate/model"
)

// maxOverrun is how many bytes past its end a well-formed control field is read.
const maxOverrun = 8

// A codec is the one syntax of a frame's control field, written down once for both
// ends, over what they remember. Its coder writes or reads: each of its methods is
// given a value to write and returns the value written or read, and ignores the given
// one when it reads. So the ends cannot drift apart by a mistake in one of them; what
// could still go wrong, a digest over the packets and their order in a flow finds.
//
// What is below the state is scratch: of a frame, of a group or of one call, never
// looked at by a later frame.
type codec struct {
	state
	coder model.Coder

	items     []item        // of the frame: what it tells the peer's views
	texts     []byte        // what fills text holes and runs: writing, of the frame; reading, of the group
	sacks     []sack        // SACK blocks, likewise
	marks     []groupNumber // by CID: the last group it was listed in
	residuals []int64       // of a column
	explicit  []int64       // of a column's members that are none of its ways
	sacked    []uint32      // members that have SACK blocks
	listed    []CID         // the candidates for a group's members
	present   []bool        // which of the candidates are members
	holes     []Hole        // reading: of the group
	body      []byte        // reading: the body that was coded last
	scratch   []byte
	seals     bool       // payloads may be opened ones, and secrets be told
	sealer    Sealer     // reading; nil where it does not seal
	took      int        // bytes that the last edit took
	topic     float64    // writing: bits that the part of it before the message body took
	plan      model.Plan // writing
}

// A head is what a frame begins with.
type head struct {
	record bool   // the frame's changes are kept for the peer to refer to
	acked  uint64 // frames of the peer that the writer had rebuilt
	clock  uint32
	pairs  []pair
}

// A pair is two flows that turned out to be the two directions of one conversation.
type pair struct {
	own  CID
	peer peerCID
}

// codeHead codes whether the peer may refer to the frame, which frames of the peer its
// writer had rebuilt, and how far the clock moves.
func (x *codec) codeHead(h *head) {
	md := &x.models
	h.record = x.coder.Bool(&md.record, h.record)
	h.acked = x.acked + md.acked.Uint(&x.coder, h.acked-x.acked)
	x.acked = h.acked
	x.clock += uint32(md.step.Int(&x.coder, int64(int32(h.clock-x.clock))))
	h.clock, x.ahead = x.clock, 0
}

// codePairs codes the pairs that the writer found since its last frame. Both ends have
// them as pairs from then on.
func (x *codec) codePairs(h *head) error {
	md := &x.models
	if !x.coder.Bool(&md.paired, len(h.pairs) > 0) {
		return nil
	}
	n := int(md.pairs.Uint(&x.coder, uint64(len(h.pairs))))
	if n < 0 || n > len(x.contexts) {
		return invalid("number of pairs")
	}
	for i := range n {
		var p pair
		if i < len(h.pairs) {
			p = h.pairs[i]
		}
		p.own = cidAt(x.coder.Index(p.own.place(), uint32(len(x.contexts))))
		p.peer = peerCIDAt(x.coder.Index(p.peer.place(), uint32(len(x.views.table))))
		if x.context(p.own) == nil || x.viewAt(p.peer) == nil {
			return invalid("pair of unknown flows")
		}
		x.pair(p.own, p.peer)
	}
	return nil
}

// codeMore codes whether another group follows.
func (x *codec) codeMore(more bool) bool { return x.coder.Bool(&x.models.more, more) }

// codeShape codes what kind of group it is: of its header, with or without payload,
// of one member or several.
func (x *codec) codeShape(g *Group) error {
	md := &x.models
	x.group++
	g.Kind = Kind(x.coder.Symbol(md.kinds[x.lastKind][:], uint32(g.Kind)))
	if g.Kind > IP6 {
		return invalid("unknown kind of group")
	}
	x.lastKind = g.Kind
	g.payload, g.single = 1, len(g.Members) == 1
	if g.Kind == Verbatim {
		return nil
	}
	if !x.coder.Bool(&md.payload[g.Kind], len(g.Spans) > 0) {
		g.payload = 0
	}
	if g.Kind.TCP() {
		g.Flags = uint8(x.coder.Symbol(md.flags[g.payload][:], uint32(g.Flags)))
	}
	g.single = x.coder.Bool(&md.single[g.payload], g.single)
	if !x.seals || !g.Kind.TCP() {
		return nil
	}
	if g.payload == 1 {
		g.Opened = x.coder.Bool(&md.opened[b2i(g.single)], g.Opened)
	}
	if g.single {
		return x.codeSecrets(g)
	}
	return nil
}

// maxSecrets bounds what one segment tells of secrets, in bytes: two traffic secrets of
// 48 bytes for each direction, with what is said about them, are half of it.
const maxSecrets = 512

// codeSecrets codes what the Sealer is told with a segment. It is told once, so nothing
// of it is remembered.
func (x *codec) codeSecrets(g *Group) error {
	md := &x.models
	if !x.coder.Bool(&md.secrets, len(g.Secrets) > 0) {
		return nil
	}
	n := int(md.secretsLen.Uint(&x.coder, uint64(len(g.Secrets))))
	if n < 1 || n > maxSecrets {
		return invalid("length of secrets")
	}
	if x.coder.Reading() {
		g.Secrets = make([]byte, n)
	}
	for i := range g.Secrets {
		g.Secrets[i] = byte(x.coder.Bits(uint64(g.Secrets[i]), 8))
	}
	return x.fits()
}

// fits tells whether the control field is long enough for what was read of it so far.
func (x *codec) fits() error {
	if x.coder.Overrun() > maxOverrun {
		return invalid("control field too short")
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
