package aggregate

import (
	"sheaf/engine/aggregate/model"
	"sheaf/parsers"
)

// groupCosts are what the group being written has cost so far, in bits.
type groupCosts struct {
	begin  float64 // where the group begins
	bodies float64 // all that its spans took
	topics float64 // the part of it before the message bodies

	literals int // bytes of the frame's literals before it
}

// A debt is a part of a frame's literals, of which nobody knows what it costs before
// all of them are compressed.
type debt struct {
	part  Part
	event *EventStats // nil where it is of no message
	bytes int
}

// event returns where the messages of a span are counted. Only the first part
// of a message says what its event is; the others have the same key.
func (s *Stats) event(sp *span, message uint64) *EventStats {
	if e := s.parts[message]; e != nil && sp.at > 0 {
		return e
	}
	e := s.of(EventKey{Protocol: sp.protocol, Name: sp.name, Event: string(sp.event)})
	if message != 0 && len(s.parts) < maxEvents {
		if s.parts == nil {
			s.parts = make(map[uint64]*EventStats)
		}
		s.parts[message] = e
	}
	return e
}

// event returns where a span that was written is counted. Its slot knows, unless it
// is for more than one event; one that gave way is counted anew.
func (w *writer) event(sp *span) *EventStats {
	e := &w.slots.table[sp.slot].source.event
	switch {
	case *e == nil || w.cfg.Similarity&ByEvent == 0:
		return w.stats.event(sp, sp.message)
	case (*e).into != nil && sp.at > 0: // only the first part says which event it is
		return (*e).into
	case (*e).into != nil:
		*e = w.stats.event(sp, sp.message)
	}
	return *e
}

// tally counts a group that was written.
func (w *writer) tally(c *model.Coder, g *group) {
	s, k := w.stats, &w.costs
	end := c.Cost()
	all := (end - k.begin) / 8
	bodies, topics := k.bodies/8, k.topics/8
	owed := len(c.Literals) - k.literals // less those of the spans
	*k = groupCosts{begin: end, literals: len(c.Literals)}
	if g.kind == kindRaw {
		w.owe(PartRaw, nil, owed)
		s.Out[PartRaw] += all
		s.In[PartRaw] += uint64(len(g.spans[0].body))
		return
	}
	headers, payload, before := 0, 0, 0
	for i := range g.members {
		headers += len(g.members[i].layout.bytes)
		payload += g.size(i)
	}
	acks := true
	for i := range g.spans {
		acks = acks && g.spans[i].class == parsers.ClassAck
		before += g.spans[i].split
	}
	before = min(before*len(g.members), payload)
	part := PartBodies
	if acks {
		part = PartAcks
		s.Out[PartAcks] += all
		s.In[PartAcks] += uint64(headers + payload)
	} else {
		s.Out[PartHeaders] += all - bodies
		s.Out[PartTopics] += topics
		s.Out[PartBodies] += bodies - topics
		s.In[PartHeaders] += uint64(headers)
		s.In[PartTopics] += uint64(before)
		s.In[PartBodies] += uint64(payload - before)
	}
	for i := range g.spans {
		sp := &g.spans[i]
		e := w.event(sp)
		if sp.at == 0 {
			e.Messages += uint64(len(g.members))
		}
		e.BytesIn += uint64(headers+payload) / uint64(len(g.spans))
		e.BytesOut += all / float64(len(g.spans))
		w.owe(part, e, sp.literal)
		owed -= sp.literal
	}
	w.owe(PartHeaders, nil, owed) // what fills the holes
}

// owe notes a debt of some bytes.
func (w *writer) owe(part Part, event *EventStats, bytes int) {
	if bytes > 0 {
		w.debts = append(w.debts, debt{part, event, bytes})
	}
}

// settleDebts counts the extra bytes that a frame has beyond its control field, of
// which the literals are shared out among those whose bodies they are.
func (w *writer) settleDebts(extra, literals int) {
	w.stats.Out[PartFrames] += float64(extra - literals)
	owed := 0
	for i := range w.debts {
		owed += w.debts[i].bytes
	}
	for i := range w.debts {
		d := &w.debts[i]
		share := float64(literals) * float64(d.bytes) / float64(max(owed, 1))
		w.stats.Out[d.part] += share
		if d.event != nil {
			d.event.BytesOut += share
		}
	}
}
