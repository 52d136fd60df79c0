package aggregate

import (
	"bytes"

	"github.com/cespare/xxhash/v2"

	"sheaf/engine/wire"
	"sheaf/parsers"
)

// pending is what waits for the next Flush: groups of segments, and the bytes that
// they are made of.
type pending struct {
	groups  []pendingGroup
	list    []group          // what is written of them, by the same index
	first   map[uint64]int32 // the newest group of a key, plus one; see pendingGroup.next
	barrier int32            // index of the last group that nothing may overtake
	store   []byte           // the bodies of all groups, which they borrow
	events  []byte           // their events, likewise
	bytes   int              // of the packets
	beside  int              // that may be sent beside the bodies: headers, what fills holes
	digest  wire.Digest
}

// A pendingGroup is what the Merger knows of a group beyond what is written.
type pendingGroup struct {
	next int32 // an older group of the same key, plus one
	wait groupWait
}

// init makes p empty for the first frame.
func (p *pending) init() {
	*p = pending{first: make(map[uint64]int32), barrier: -1}
}

// reset makes p empty for the next frame, and keeps its arrays.
func (p *pending) reset() {
	*p = pending{
		groups: p.groups[:0], list: p.list[:0], first: p.first, barrier: -1,
		store: p.store[:0], events: p.events[:0],
	}
	if len(p.first) > 1<<10 {
		p.first = make(map[uint64]int32) // clearing takes the time of the largest it ever was
	}
	clear(p.first)
}

// maxSteps bounds the search for a group to join.
const maxSteps = 16

// group finds the group that the segment may join, or makes one. It appends the
// values of the segment's holes to it.
func (m *Merger) group(src *source, k kind, flags uint8, payload []byte) (index int) {
	p := &m.pending
	key := uint64(k)<<8 | uint64(flags)
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
	found := int32(0)
	behind := max(src.group, p.barrier) + 1
	steps := 0
	for i := p.first[key]; i > behind && steps < maxSteps; i = p.groups[i-1].next {
		if at := &p.list[i-1]; at.kind == k && at.flags == flags && m.matches(at, p.store[start:]) {
			found = i
		}
		steps++
	}
	if found != 0 {
		p.store = p.store[:start]
		m.appendValues(&p.list[found-1], payload)
		return int(found - 1)
	}
	at := p.room(k, flags)
	g := len(p.groups)
	p.groups = append(p.groups, pendingGroup{next: p.first[key], wait: groupWait{payload: len(m.spans) > 0}})
	p.first[key] = int32(g) + 1
	m.describe(at, start)
	m.appendValues(at, payload)
	return g
}

// room appends an empty group to the list, with the arrays of one of an earlier
// frame.
func (p *pending) room(k kind, flags uint8) *group {
	n := len(p.list)
	if n < cap(p.list) {
		p.list = p.list[:n+1]
	} else {
		p.list = append(p.list, group{})
	}
	g := &p.list[n]
	*g = group{kind: k, flags: flags, members: g.members[:0], spans: g.spans[:0], values: g.values[:0]}
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
func (m *Merger) matches(g *group, b []byte) bool {
	if len(g.spans) != len(m.spans) {
		return false
	}
	for i := range m.spans {
		s, t := &m.spans[i], &g.spans[i]
		if len(b) < len(t.body) || !bytes.Equal(b[:len(t.body)], t.body) || s.NumHoles != len(t.holes) {
			return false
		}
		b = b[len(t.body):]
		out := 0
		for k := range s.NumHoles {
			if h := &s.Holes[k]; t.holes[k] != holeOf(h, out) {
				return false
			} else {
				out += h.Len
			}
		}
	}
	return len(b) == 0
}

// describe fills the spans of a new group, whose bodies are stored from start.
func (m *Merger) describe(g *group, start int) {
	p := &m.pending
	for i := range m.spans {
		s := &m.spans[i]
		n := len(g.spans)
		if n < cap(g.spans) {
			g.spans = g.spans[:n+1]
		} else {
			g.spans = append(g.spans, span{})
		}
		t := &g.spans[n]
		holes := t.holes[:0]
		out, before := 0, 0
		for k := range s.NumHoles {
			h := &s.Holes[k]
			holes = append(holes, holeOf(h, out))
			out += h.Len
			if h.Off < s.Body {
				before += h.Len
			}
		}
		end := start + s.Len - out
		*t = span{body: p.store[start:end:end], holes: holes, advice: advice{
			key: s.Key, message: s.Key, split: s.Body - before, at: s.At,
			protocol: s.Protocol, name: s.Name, class: s.Class, sealed: s.Encrypted,
		}}
		if len(s.Event) > 0 {
			from := len(p.events)
			p.events = append(p.events, s.Event...)
			t.event = p.events[from:]
		}
		g.holes += len(holes)
		start = end
	}
}

// appendValues appends what fills the segment's holes to g.
func (m *Merger) appendValues(g *group, payload []byte) {
	if g.holes == 0 {
		return
	}
	at := 0
	for i := range m.spans {
		s := &m.spans[i]
		for k := range s.NumHoles {
			h := &s.Holes[k]
			field := payload[at+h.Off : at+h.Off+h.Len]
			if h.Kind == parsers.HoleText {
				g.values = append(g.values, textValue(len(m.writer.texts), len(field)))
				m.writer.texts = append(m.writer.texts, field...)
				continue
			}
			if h.Kind == parsers.HoleMask {
				g.values = append(g.values, uint64(h.Key)) // which need not be in the payload
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
			g.values = append(g.values, v)
		}
		at += s.Len
	}
}
