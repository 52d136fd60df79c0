package aggregate

import (
	"bytes"

	"github.com/cespare/xxhash/v2"

	"sheaf/engine/aggregate/codec"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// pending is what waits for the next Flush: groups of segments, and the bytes that
// they are made of.
type pending struct {
	groups  []pendingGroup
	list    []codec.Group          // what is written of them, by the same index
	first   map[uint64]groupNumber // the newest group of a key; see pendingGroup.next
	barrier groupNumber            // the last group that nothing may overtake
	fresh   int                    // flows that are not announced yet
	store   []byte                 // the bodies of all groups, which they borrow
	events  []byte                 // their events, likewise
	bytes   int                    // of the packets
	beside  int                    // that may be sent beside the bodies: headers, what fills holes
	digest  wire.Digest
}

// A groupNumber counts the groups of a frame, from 1. Its zero value is none.
type groupNumber int32

// index returns where the group is in pending.groups and pending.list.
func (n groupNumber) index() int { return int(n) - 1 }

// A pendingGroup is what the Merger knows of a group beyond what is written.
type pendingGroup struct {
	next groupNumber // an older group of the same key
	wait groupWait
}

// init makes p empty for the first frame.
func (p *pending) init() {
	*p = pending{first: make(map[uint64]groupNumber)}
}

// reset makes p empty for the next frame, and keeps its arrays.
func (p *pending) reset() {
	*p = pending{
		groups: p.groups[:0], list: p.list[:0], first: p.first,
		store: p.store[:0], events: p.events[:0],
	}
	if len(p.first) > 1<<10 {
		p.first = make(map[uint64]groupNumber) // clearing takes the time of the largest it ever was
	}
	clear(p.first)
}

// maxSteps bounds the search for a group to join. In the captures of testdata 4 cost
// 0.05 % more bytes, 64 save none.
const maxSteps = 16

// A shape is what the segments of a group have in common beside their payload.
type shape struct {
	kind    codec.Kind
	flags   uint8
	opened  bool
	secrets []byte // the segment stays alone with them
}

// group finds the group that the segment may join, or makes one. It appends the
// values of the segment's holes to it.
func (m *Merger) group(f *flow, shape shape, payload []byte) groupNumber {
	p := &m.pending
	key := uint64(shape.kind)<<8 | uint64(shape.flags)
	if shape.opened {
		key |= 1 << 16
	}
	if len(m.spans) > 0 {
		first := &m.spans[0]
		v := first.Key
		if first.Protocol == parsers.Opaque || first.Encrypted {
			v = xxhash.Sum64(payload)
		}
		key ^= v * 0x9e3779b97f4a7c15
	}
	start := len(p.store)
	m.storeBodies(payload)
	p.beside += len(payload) - (len(p.store) - start) // what fills its holes
	// The newest group of the key comes first. Of those behind the flow's last
	// segment the oldest is best: it leaves the others to segments still to come.
	found := groupNumber(0)
	behind := max(f.group, p.barrier)
	steps := 0
	for n := p.first[key]; n > behind && steps < maxSteps && shape.secrets == nil; n = p.groups[n.index()].next {
		if at := &p.list[n.index()]; shape.fits(at) && m.matches(at, p.store[start:]) {
			found = n
		}
		steps++
	}
	if found != 0 {
		p.store = p.store[:start]
		m.appendValues(&p.list[found.index()], payload)
		return found
	}
	at := p.room(shape.kind, shape.flags)
	at.Opened, at.Secrets = shape.opened, shape.secrets
	n := groupNumber(len(p.list))
	p.groups = append(p.groups, pendingGroup{next: p.first[key], wait: groupWait{payload: len(m.spans) > 0}})
	if shape.secrets == nil {
		p.first[key] = n
	}
	m.describe(at, start)
	m.appendValues(at, payload)
	return n
}

// fits says whether a group has the shape.
func (s *shape) fits(g *codec.Group) bool {
	return g.Kind == s.kind && g.Flags == s.flags && g.Opened == s.opened && len(g.Secrets) == 0
}

// room appends an empty group to the list, with the arrays of one of an earlier
// frame.
func (p *pending) room(k codec.Kind, flags uint8) *codec.Group {
	n := len(p.list)
	if n < cap(p.list) {
		p.list = p.list[:n+1]
	} else {
		p.list = append(p.list, codec.Group{})
	}
	g := &p.list[n]
	*g = codec.Group{Kind: k, Flags: flags, Members: g.Members[:0], Spans: g.Spans[:0], Values: g.Values[:0]}
	return g
}

// storeBodies appends the payload, without its holes, to the store.
func (m *Merger) storeBodies(payload []byte) {
	p := &m.pending
	at := 0
	for i := range m.spans {
		s := &m.spans[i]
		from := at
		for k := range s.NumHoles {
			h := &s.Holes[k]
			p.store = append(p.store, payload[from:at+h.Off]...)
			from = at + h.Off + h.Len
		}
		p.store = append(p.store, payload[from:at+s.Len]...)
		at += s.Len
	}
}

// matches tells whether the segment whose spans are m.spans and whose stored
// bodies are b has the payload of g.
func (m *Merger) matches(g *codec.Group, b []byte) bool {
	if len(g.Spans) != len(m.spans) {
		return false
	}
	for i := range m.spans {
		s, t := &m.spans[i], &g.Spans[i]
		if len(b) < len(t.Body) || !bytes.Equal(b[:len(t.Body)], t.Body) || s.NumHoles != len(t.Holes) {
			return false
		}
		b = b[len(t.Body):]
		out := 0
		for k := range s.NumHoles {
			if h := &s.Holes[k]; t.Holes[k] != codec.HoleOf(h, out) {
				return false
			} else {
				out += h.Len
			}
		}
	}
	return len(b) == 0
}

// describe fills the spans of a new group, whose bodies are stored from start.
func (m *Merger) describe(g *codec.Group, start int) {
	p := &m.pending
	for i := range m.spans {
		s := &m.spans[i]
		n := len(g.Spans)
		if n < cap(g.Spans) {
			g.Spans = g.Spans[:n+1]
		} else {
			g.Spans = append(g.Spans, codec.Span{})
		}
		t := &g.Spans[n]
		holes := t.Holes[:0]
		out, before := 0, 0
		for k := range s.NumHoles {
			h := &s.Holes[k]
			holes = append(holes, codec.HoleOf(h, out))
			out += h.Len
			if h.Off < s.Body {
				before += h.Len
			}
		}
		end := start + s.Len - out
		*t = codec.Span{Body: p.store[start:end:end], Holes: holes, Advice: codec.Advice{
			Key: s.Key, Split: s.Body - before, At: s.At,
			Protocol: s.Protocol, Name: s.Name, Class: s.Class, Encrypted: s.Encrypted,
		}}
		if len(s.Event) > 0 {
			from := len(p.events)
			p.events = append(p.events, s.Event...)
			t.Event = p.events[from:]
		}
		start = end
	}
	g.CountHoles()
}

// appendValues appends what fills the segment's holes to g.
func (m *Merger) appendValues(g *codec.Group, payload []byte) {
	if g.Holes() == 0 {
		return
	}
	at := 0
	for i := range m.spans {
		s := &m.spans[i]
		for k := range s.NumHoles {
			h := &s.Holes[k]
			field := payload[at+h.Off : at+h.Off+h.Len]
			if h.Kind == parsers.HoleText {
				g.Values = append(g.Values, m.encoder.Text(field))
				continue
			}
			if h.Kind == parsers.HoleMask {
				g.Values = append(g.Values, uint64(h.Key)) // which need not be in the payload
				continue
			}
			v := uint64(0)
			for _, b := range field {
				if h.Kind == parsers.HoleBig {
					v = v<<8 | uint64(b)
				} else {
					v = v*10 + uint64(b-'0')
				}
			}
			g.Values = append(g.Values, v)
		}
		at += s.Len
	}
}
