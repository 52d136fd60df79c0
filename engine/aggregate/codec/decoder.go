package codec

import (
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// A Decoder is the reading end of one direction of a lane (the decompressor of RFC 5795
// section 2.1): it makes packets of control fields.
type Decoder struct {
	codec
	past    *history // of the Encoder beside it
	sealed  []byte   // scratch: a payload sealed
	read    Group    // the group at hand
	payload []byte   // of its spans, where there are several
	filled  []byte   // scratch: a payload with its holes filled
	sums    []uint32 // by CID: over the packets of the flow so far (wire.Digest.Add)
	out     Rebuilt
}

// A Rebuilt is what a Decoder made of a frame, borrowed until the next Decode.
type Rebuilt struct {
	Packets []byte // one behind the other
	Ends    []int  // where each of them ends
	Digest  wire.Digest
}

// Decode rebuilds the packets of a frame from its control field and its literals, which
// are borrowed for the call. The error matches ErrFrame; the epoch is over then, and the
// Decoder is not to be used again.
func (d *Decoder) Decode(control, literals []byte) (Rebuilt, error) {
	c := &d.coder
	c.Read(control)
	c.Literals = literals
	d.items, d.out = d.items[:0], Rebuilt{Packets: d.out.Packets[:0], Ends: d.out.Ends[:0]}
	if err := d.decode(); err != nil {
		return Rebuilt{}, err
	}
	if !c.Complete() || len(c.Literals) != 0 {
		return Rebuilt{}, invalid("length")
	}
	return d.out, nil
}

func (d *Decoder) decode() error {
	var h head
	before := d.acked
	d.codeHead(&h)
	if err := d.past.acknowledge(&d.state, before, h.acked); err != nil {
		return err
	}
	if err := d.codePairs(&h); err != nil {
		return err
	}
	for d.codeMore(false) {
		g := &d.read
		*g = Group{Members: g.Members[:0], Spans: g.Spans[:0], Values: g.Values[:0]}
		d.texts, d.sacks, d.holes = d.texts[:0], d.sacks[:0], d.holes[:0]
		if err := d.decodeGroup(g); err != nil {
			return err
		}
	}
	if !h.record {
		d.items = d.items[:0]
	}
	return nil
}

// decodeGroup reads a group, builds its packets, and learns from it.
func (d *Decoder) decodeGroup(g *Group) error {
	if err := d.codeShape(g); err != nil {
		return err
	}
	if g.single {
		if err := d.codeMember(g, 0); err != nil {
			return err
		}
	}
	if g.payload == 1 {
		if err := d.decodeSpans(g); err != nil {
			return err
		}
	}
	g.CountHoles()
	if g.Kind == Verbatim {
		return d.buildVerbatim(g)
	}
	if !g.single {
		if err := d.codeMembers(g); err != nil {
			return err
		}
	}
	if err := d.codeColumns(g); err != nil {
		return err
	}
	if err := d.build(g); err != nil {
		return err
	}
	d.learn(g)
	return nil
}

// decodeSpans reads the payload of a group.
func (d *Decoder) decodeSpans(g *Group) error {
	p, err := d.codeSpanCount(g)
	if err != nil {
		return err
	}
	d.payload = d.payload[:0]
	for i := range p.number {
		if err := d.codeTemplate(g, &p, i); err != nil {
			return err
		}
		s := &g.Spans[i]
		d.enterTemplate(s, &p)
		if err := d.codeBody(s, &p); err != nil {
			return err
		}
		d.learnBody(s)
		if err := d.codeHoles(s); err != nil {
			return err
		}
		d.learnHoles(s)
		if len(s.Body)+len(s.Holes) == 0 {
			return invalid("empty span")
		}
		if p.left -= len(s.Body); p.number > 1 {
			d.keepBody(s)
		}
		if err := d.fits(); err != nil {
			return err
		}
	}
	d.learnSpans(g)
	return nil
}

// keepBody copies the body of a span, which a later span of the segment may replace.
func (d *Decoder) keepBody(s *Span) {
	at := len(d.payload)
	d.payload = append(d.payload, s.Body...)
	s.Body = d.payload[at:]
}

// buildVerbatim appends a packet that is carried as it is.
func (d *Decoder) buildVerbatim(g *Group) error {
	if err := d.fits(); err != nil {
		return err
	}
	if g.holes != 0 {
		return invalid("holes in a packet")
	}
	start := len(d.out.Packets)
	for i := range g.Spans {
		d.out.Packets = append(d.out.Packets, g.Spans[i].Body...)
	}
	d.out.Digest.AddVerbatim(d.out.Packets[start:])
	return d.end()
}

// build appends the packets of a group.
func (d *Decoder) build(g *Group) error {
	if err := d.fits(); err != nil {
		return err
	}
	var filled []byte
	var b []byte
	var p payload
	for i := range g.Members {
		mb := &g.Members[i]
		if i == 0 || g.holes > 0 {
			filled = d.fill(g, i)
		}
		if i == 0 || g.holes > 0 || g.Opened {
			var err error
			if b, err = d.seal(g, mb, filled); err != nil {
				return err
			}
			p = payloadOf(b)
		}
		if len(mb.layout.bytes)+len(b) > g.Kind.longest() {
			return invalid("packet too long")
		}
		start := len(d.out.Packets)
		d.out.Packets = appendHeader(d.out.Packets, &mb.context.key, &mb.Fields, g.Flags, p)
		d.out.Packets = append(d.out.Packets, b...)
		sum := d.sum(mb)
		*sum = d.out.Digest.Add(*sum, d.out.Packets[start:])
		if err := d.end(); err != nil {
			return err
		}
		if d.sealer != nil && passes(g, b) {
			d.sealer.Passed(&mb.context.key, g.Flags, b)
		}
	}
	return nil
}

// seal returns a member's payload as its segment has it, borrowed until the next call, of
// that which the group has.
func (d *Decoder) seal(g *Group, mb *Member, filled []byte) ([]byte, error) {
	if len(g.Secrets) > 0 {
		err := d.sealer.Tell(&mb.context.key, g.Secrets)
		clear(g.Secrets)
		if err != nil {
			return nil, err
		}
	}
	if !g.Opened {
		return filled, nil
	}
	b, err := d.sealer.Seal(d.sealed[:0], &mb.context.key, filled)
	if err != nil {
		return nil, err
	}
	d.sealed = b
	mb.Sealed = len(b)
	return b, nil
}

// passes says whether a Sealer wants to know of a segment.
func passes(g *Group, payload []byte) bool {
	if !g.Kind.TCP() {
		return false
	}
	const handshake, major = 22, 3 // of a TLS record's head, RFC 8446 section 5.1
	return g.Flags&(parsers.FlagSYN|parsers.FlagFIN|parsers.FlagRST) != 0 ||
		len(payload) > 2 && payload[0] == handshake && payload[1] == major
}

// sum returns where the checksum over a member's flow is kept, of which a new flow has
// none yet.
func (d *Decoder) sum(mb *Member) *uint32 {
	for len(d.sums) < len(d.contexts) {
		d.sums = append(d.sums, 0)
	}
	sum := &d.sums[mb.cid.place()]
	if mb.fresh {
		*sum = 0
	}
	return sum
}

// fill returns the payload of member i, borrowed until the next call.
func (d *Decoder) fill(g *Group, i int) []byte {
	if g.holes == 0 && len(g.Spans) == 1 {
		return g.Spans[0].Body
	}
	b := d.filled[:0]
	v := i * g.holes
	for k := range g.Spans {
		s := &g.Spans[k]
		at, from, first := 0, len(b), v
		for _, h := range s.Holes {
			b = append(b, s.Body[at:h.at]...)
			b = h.append(b, g.Values[v], d.texts)
			at = h.at
			v++
		}
		b = append(b, s.Body[at:]...)
		if len(s.Holes) > 0 {
			s.mask(b[from:], g.Values[first])
		}
	}
	d.filled = b
	return b
}

// end notes that a packet is complete.
func (d *Decoder) end() error {
	d.out.Ends = append(d.out.Ends, len(d.out.Packets))
	if len(d.out.Ends) > int(d.limits.Packets) || len(d.out.Packets) > int(d.limits.Bytes) {
		return pastLimit("packets of a frame, or their bytes")
	}
	return nil
}

// Acked returns how many frames of the Encoder beside it the peer has said it rebuilt.
func (d *Decoder) Acked() uint64 { return d.acked }

// Streams calls yield with each TCP flow that came from the peer, and the sequence
// number after its last byte, in the order of their contexts. Flows whose
// connection has ended are among them: nothing in a context says so.
func (d *Decoder) Streams(yield func(key parsers.FlowKey, next uint32)) {
	for _, f := range d.contexts {
		if f != nil && f.started {
			yield(f.key, f.end)
		}
	}
}
