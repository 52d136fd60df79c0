package codec

import (
	"bytes"
	"fmt"
	"time"

	"sheaf/engine/wire"
	"sheaf/parsers"
)

// A gateway has both halves of an end of the lane, and does what package aggregate
// does for them: it makes groups of segments, names new flows, and pairs flows.
type gateway struct {
	enc    *Encoder
	dec    *Decoder
	parser parsers.Decoder
	seg    parsers.Segment
	flows  map[parsers.FlowKey]*testFlow
	limits wire.Limits
	seal   *fakeSealer // nil opens nothing

	// The frame that is being filled.
	groups  []Group
	alike   map[string][]int // groups by what they have in common
	barrier int              // no group up to this one may be joined
	number  uint64
	fresh   int // flows to be announced
	inFrame int // flows in it
	packets [][]byte
	bytes   int
	digest  wire.Digest
	since   time.Duration // when the first packet came
}

// A testFlow is what a gateway knows of a flow.
type testFlow struct {
	Flow
	stream parsers.Stream
	crc    uint32
	frame  uint64 // in which it is or was last, from 1
	group  int    // its last group there, from 1
}

// clear begins a new frame.
func (g *gateway) clear() {
	g.groups, g.alike, g.barrier, g.fresh, g.inFrame = nil, map[string][]int{}, 0, 0, 0
	g.packets, g.bytes, g.digest = nil, 0, 0
	g.number++
}

// admit puts a packet into a group. It returns nil for one that goes as it is.
func (g *gateway) admit(packet []byte, spans []parsers.Span, registry *parsers.Registry) *testFlow {
	seg := &g.seg
	if g.parser.Decode(packet, seg) != nil {
		return nil
	}
	if seg.Fragment {
		seg.Key.SrcPort, seg.Key.DstPort = 0, 0
	}
	k, ok := g.enc.Dissect(seg)
	if !ok {
		return nil
	}
	f := g.flows[seg.Key]
	if f == nil {
		f = &testFlow{Flow: Flow{Key: seg.Key}}
	}
	flags := uint8(0)
	if k.TCP() {
		flags = seg.Flags
	}
	mb := g.enc.Member(&f.Flow, seg, flags)
	if mb == nil {
		return nil
	}
	g.flows[seg.Key] = f
	if f.frame != g.number {
		f.frame, f.group = g.number, 0
		g.inFrame++
		if _, announced := f.CID(); !announced {
			g.fresh++
		}
	}
	made := Group{Kind: k, Flags: flags}
	payload := seg.Payload()
	if g.seal != nil && k.TCP() {
		if made.Secrets = g.seal.tells(seg); len(payload) > 0 && g.seal.opens(&seg.Key) {
			made.Opened, mb.Sealed = true, len(payload)
			payload = g.seal.open(&seg.Key, payload)
		}
	}
	if spans == nil && made.Opened {
		spans = f.stream.ScanInner(registry, &seg.Key, payload, nil)
	} else if spans == nil {
		spans = f.stream.Scan(registry, seg, nil)
	}
	at := g.join(f, made, spans, unmask(spans, payload))
	at.Members = append(at.Members, *mb)
	return f
}

// unmask returns a payload without the masks of its spans.
func unmask(spans []parsers.Span, payload []byte) []byte {
	plain := bytes.Clone(payload)
	at := 0
	for i := range spans {
		s := &spans[i]
		if h := &s.Holes[0]; s.NumHoles > 0 && h.Kind == parsers.HoleMask {
			parsers.MaskInPlace(plain[at+h.Off+h.Len:at+s.Len], h.Key, h.Phase)
		}
		at += s.Len
	}
	return plain
}

// join returns the group that a flow's segment goes to, with its values: the oldest
// that is alike and behind the flow's last one, or a new one.
func (g *gateway) join(f *testFlow, made Group, spans []parsers.Span, payload []byte) *Group {
	key := fmt.Appendf(nil, "%d %d %v %x", made.Kind, made.Flags, made.Opened, made.Secrets)
	var values []uint64
	for i := range spans {
		s := &spans[i]
		sp := Span{Advice: Advice{
			Key: s.Key, At: s.At, Split: s.Body, Protocol: s.Protocol, Name: s.Name, Class: s.Class,
			Encrypted: s.Encrypted, Event: bytes.Clone(s.Event),
		}}
		at, out := 0, 0
		for k := range s.NumHoles {
			h := &s.Holes[k]
			sp.Body = append(sp.Body, payload[at:h.Off]...)
			sp.Holes = append(sp.Holes, HoleOf(h, out))
			values = append(values, g.value(h, payload[h.Off:h.Off+h.Len]))
			at, out = h.Off+h.Len, out+h.Len
			if h.Off < s.Body {
				sp.Split -= h.Len
			}
		}
		sp.Body = append(sp.Body, payload[at:s.Len]...)
		payload = payload[s.Len:]
		made.Spans = append(made.Spans, sp)
		key = fmt.Appendf(key, " %d %q %v", s.Protocol, sp.Body, sp.Holes)
	}
	if len(payload) != 0 {
		panic("spans of another payload")
	}
	behind := max(f.group, g.barrier)
	n := 0
	for _, old := range g.alike[string(key)] {
		if old > behind && len(made.Secrets) == 0 {
			n = old
			break
		}
	}
	if n == 0 {
		made.CountHoles()
		g.groups = append(g.groups, made)
		n = len(g.groups)
		g.alike[string(key)] = append(g.alike[string(key)], n)
	}
	f.group = n
	at := &g.groups[n-1]
	at.Values = append(at.Values, values...)
	return at
}

// value returns what stands for a field that fills a hole.
func (g *gateway) value(h *parsers.Hole, field []byte) (v uint64) {
	switch h.Kind {
	case parsers.HoleText:
		return g.enc.Text(field)
	case parsers.HoleMask:
		return uint64(h.Key)
	}
	for _, b := range field {
		if h.Kind == parsers.HoleBig {
			v = v<<8 | uint64(b)
		} else {
			v = v*10 + uint64(b-'0')
		}
	}
	return v
}

// reuse returns what the new flows of the frame are to be called. Where there are as
// many contexts as there may be, that of the lowest number gives way that is not in the
// frame and was in none for longest.
func (g *gateway) reuse() (all []CID) {
	contexts := g.enc.Contexts()
	for range g.fresh {
		if contexts < int(g.limits.Flows) {
			contexts++
			all = append(all, CID{})
			continue
		}
		var old *testFlow
		for _, f := range g.flows {
			c, announced := f.CID()
			if !announced || f.frame == g.number {
				continue
			}
			if old == nil || f.frame < old.frame || f.frame == old.frame && c.place() < old.cid.place() {
				old = f
			}
		}
		all = append(all, old.cid)
		delete(g.flows, old.Key)
	}
	return all
}
