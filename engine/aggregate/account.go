package aggregate

import (
	"sheaf/engine/aggregate/codec"
	"sheaf/parsers"
)

// An account shares out what frames cost among the parts of the traffic and the
// messages in them.
type account struct {
	stats     *Stats
	byEvent   bool        // a template is of one event
	templates []eventNote // where the messages of a template are counted, by its number
	shares    []share     // of the frame at hand
}

// An eventNote says where the spans of a key that begin at a place in their message
// are counted.
type eventNote struct {
	key   uint64
	at    int
	event *EventStats
}

// A share is a part of a frame's literals, of which nobody knows what it costs before
// all of them are compressed.
type share struct {
	part  Part
	event *EventStats // nil where it is of no message
	bytes int
}

// frame counts the groups of a frame, whose control field begins with head bits, and
// which has extra bytes beyond its control field, literals among them.
func (a *account) frame(groups []codec.Group, head float64, extra, literals int) {
	a.shares = a.shares[:0]
	a.stats.Out[PartFrames] += head / 8
	for i := range groups {
		a.group(&groups[i])
	}
	a.stats.Out[PartFrames] += float64(extra - literals)
	all := 0
	for i := range a.shares {
		all += a.shares[i].bytes
	}
	for i := range a.shares {
		s := &a.shares[i]
		bytes := float64(literals) * float64(s.bytes) / float64(all)
		a.stats.Out[s.part] += bytes
		if s.event != nil {
			s.event.BytesOut += bytes
		}
	}
}

// group counts a group.
func (a *account) group(g *codec.Group) {
	s := a.stats
	all := g.Cost.Bits / 8
	a.hits(g)
	if g.Kind == codec.Verbatim {
		a.share(PartVerbatim, nil, g.Cost.Literals)
		s.Out[PartVerbatim] += all
		s.In[PartVerbatim] += uint64(len(g.Spans[0].Body))
		return
	}
	headers, payload, before := 0, 0, 0
	for i := range g.Members {
		headers += g.HeaderLen(i)
		payload += g.Size(i)
	}
	acks := true
	for i := range g.Spans {
		acks = acks && g.Spans[i].Class == parsers.ClassAck
		before += g.Spans[i].Split
	}
	before = min(before*len(g.Members), payload)
	part := PartBodies
	if acks {
		part = PartAcks
		s.Out[PartAcks] += all
		s.In[PartAcks] += uint64(headers + payload)
	} else {
		bodies, topics := g.Cost.Bodies/8, g.Cost.Topics/8
		s.Out[PartHeaders] += all - bodies
		s.Out[PartTopics] += topics
		s.Out[PartBodies] += bodies - topics
		s.In[PartHeaders] += uint64(headers)
		s.In[PartTopics] += uint64(before)
		s.In[PartBodies] += uint64(payload - before)
	}
	rest := g.Cost.Literals
	for i := range g.Spans {
		sp := &g.Spans[i]
		e := a.event(sp)
		if sp.At == 0 {
			e.Messages += uint64(len(g.Members))
		}
		e.BytesIn += uint64(headers+payload) / uint64(len(g.Spans))
		e.BytesOut += all / float64(len(g.Spans))
		a.share(part, e, sp.Literals)
		rest -= sp.Literals
	}
	a.share(PartHeaders, nil, rest) // what fills the holes
}

// hits counts by which criteria the spans of a group found what they were compared with.
func (a *account) hits(g *codec.Group) {
	for i := range g.Spans {
		switch h := g.Spans[i].Hit; h {
		case codec.Unasked:
		case codec.NoHit:
			a.stats.NoHits++
		default:
			a.stats.Hits[h]++
		}
	}
}

// event returns where a span is counted. Its template knows, unless that is for more
// than one event; one that gave way is counted anew.
func (a *account) event(sp *codec.Span) *EventStats {
	for int(sp.Template) >= len(a.templates) {
		a.templates = append(a.templates, eventNote{})
	}
	n := &a.templates[sp.Template]
	switch {
	case !a.byEvent:
		return a.stats.event(sp)
	case n.event == nil || n.key != sp.Key || n.at != sp.At:
		*n = eventNote{sp.Key, sp.At, a.stats.event(sp)}
	case n.event.into != nil && sp.At > 0: // only the first part says which event it is
		return n.event.into
	case n.event.into != nil:
		n.event = a.stats.event(sp)
	}
	return n.event
}

// event returns where the messages of a span are counted. Only the first part
// of a message says what its event is; the others have the same key.
func (s *Stats) event(sp *codec.Span) *EventStats {
	if e := s.parts[sp.Key]; e != nil && sp.At > 0 {
		return e
	}
	e := s.of(EventKey{Protocol: sp.Protocol, Name: sp.Name, Event: string(sp.Event)})
	if sp.Key != 0 && len(s.parts) < maxEvents {
		if s.parts == nil {
			s.parts = make(map[uint64]*EventStats)
		}
		s.parts[sp.Key] = e
	}
	return e
}

// share notes that some bytes of the literals belong to a part.
func (a *account) share(part Part, event *EventStats, bytes int) {
	if bytes > 0 {
		a.shares = append(a.shares, share{part, event, bytes})
	}
}
