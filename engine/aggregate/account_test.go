package aggregate

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"sheaf/engine/aggregate/codec"
	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers"
)

// same tells whether two costs are, but for rounding.
func same(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

// parts checks what an account holds of each part.
func (a *account) parts(t *testing.T, in [NumParts]uint64, out [NumParts]float64) {
	t.Helper()
	for i := range NumParts {
		if a.stats.In[i] != in[i] || !same(a.stats.Out[i], out[i]) {
			t.Errorf("%v: %d bytes in, %.3f out, expected %d and %.3f", i, a.stats.In[i], a.stats.Out[i], in[i], out[i])
		}
	}
}

// event checks what an account holds of an event.
func (s *Stats) is(t *testing.T, key EventKey, messages, in uint64, out float64) {
	t.Helper()
	e := s.Messages[key]
	if e == nil {
		t.Errorf("%+v is not counted", key)
	} else if e.Messages != messages || e.BytesIn != in || !same(e.BytesOut, out) {
		t.Errorf("%+v: %d messages, %d bytes in, %.3f out, expected %d, %d and %.3f", key, e.Messages, e.BytesIn, e.BytesOut, messages, in, out)
	}
}

// twoClients is a group of the same message to two clients, with 40 bytes of headers each.
func twoClients(t *testing.T, m *Merger, message []byte) *codec.Group {
	t.Helper()
	n := len(m.pending.list)
	for client := range 2 {
		add(t, m, 0, segment{Client: 100*n + client, Flags: 0x18, Payload: message}.Packet())
	}
	if len(m.pending.list) != n+1 {
		t.Fatalf("%d groups", len(m.pending.list)-n)
	}
	return &m.pending.list[n]
}

func TestMessagesCostHeadersTopicsAndBodies(t *testing.T) {
	m := newMerger(t, Config{})
	g := twoClients(t, m, codectest.Publish("a/b", "0123456789", 0)) // 7 bytes before the body
	g.Cost = codec.Cost{Bits: 80, Bodies: 56, Topics: 16}
	a := account{stats: &Stats{}, byEvent: true}
	a.group(g)
	a.parts(t, [NumParts]uint64{PartHeaders: 80, PartTopics: 14, PartBodies: 20},
		[NumParts]float64{PartHeaders: 3, PartTopics: 2, PartBodies: 5})
	a.stats.is(t, EventKey{Protocol: g.Spans[0].Protocol, Name: g.Spans[0].Name, Event: "a/b"}, 2, 114, 10)
}

func TestAcknowledgementsAreCountedTogether(t *testing.T) {
	m := newMerger(t, Config{})
	a := account{stats: &Stats{}, byEvent: true}
	for client := range 3 {
		add(t, m, 0, ack(client, 5).Packet())
	}
	bare := &m.pending.list[0]
	bare.Cost = codec.Cost{Bits: 24}
	a.group(bare)
	a.parts(t, [NumParts]uint64{PartAcks: 120}, [NumParts]float64{PartAcks: 3})
	g := twoClients(t, m, []byte{0x40, 2, 0, 9}) // a PUBACK
	g.Cost = codec.Cost{Bits: 40, Bodies: 32, Topics: 8, Literals: 4}
	g.Spans[0].Literals = 4
	a.frame([]codec.Group{*g}, 0, 4, 4)
	a.parts(t, [NumParts]uint64{PartAcks: 120 + 88}, [NumParts]float64{PartAcks: 3 + 5 + 4})
}

func TestAcknowledgementsWithAMessageAreNotApart(t *testing.T) {
	puback, message := []byte{0x40, 2, 0, 9}, codectest.Publish("a", "b", 0)
	for _, payload := range [][]byte{slices.Concat(puback, message), slices.Concat(message, puback)} {
		m := newMerger(t, Config{})
		a := account{stats: &Stats{}, byEvent: true}
		a.group(twoClients(t, m, payload))
		if a.stats.In[PartAcks] != 0 || a.stats.In[PartHeaders] != 80 {
			t.Errorf("%d bytes of acknowledgements, %d of headers", a.stats.In[PartAcks], a.stats.In[PartHeaders])
		}
	}
}

// What a scanner says of where a body begins is not trusted.
func TestTopicsAreNoMoreThanThePayload(t *testing.T) {
	for split, topics := range map[int]uint64{16: 32, 17: 34, 18: 34, 99: 34} {
		g := twoClients(t, newMerger(t, Config{}), codectest.Publish("a/b", "0123456789", 0))
		g.Spans[0].Split = split
		a := account{stats: &Stats{}, byEvent: true}
		a.group(g)
		if got := a.stats.In; got[PartTopics] != topics || got[PartBodies] != 34-topics {
			t.Errorf("a body behind %d bytes of 17: %d of topics, %d of bodies", split, got[PartTopics], got[PartBodies])
		}
	}
}

func TestPacketsAsTheyAreAreCountedApart(t *testing.T) {
	m := newMerger(t, Config{})
	add(t, m, 0, make([]byte, 50))
	g := &m.pending.list[0]
	g.Cost = codec.Cost{Bits: 16, Bodies: 8, Literals: 30}
	g.Spans[0].Hit = codec.Unasked
	a := account{stats: &Stats{}, byEvent: true}
	a.frame(m.pending.list, 0, 30, 30)
	a.parts(t, [NumParts]uint64{PartVerbatim: 50}, [NumParts]float64{PartVerbatim: 32})
	if len(a.stats.Messages) > 0 {
		t.Errorf("%d events", len(a.stats.Messages))
	}
}

// What frames take themselves is what no group has: the head, and what is beyond the
// control field and the literals.
func TestFramesThemselvesCost(t *testing.T) {
	a := account{stats: &Stats{}}
	a.frame(nil, 12, 6, 0)
	a.frame(nil, 4, 107, 100)
	a.parts(t, [NumParts]uint64{}, [NumParts]float64{PartFrames: 1.5 + 6 + 0.5 + 7})
}

// Compressed literals are shared out by how long each was before.
func TestLiteralsAreSharedOut(t *testing.T) {
	m := newMerger(t, Config{})
	twoClients(t, m, append(codectest.Publish("a", "one", 0), codectest.Publish("b", "two", 0)...))
	add(t, m, 0, make([]byte, 50))
	list := m.pending.list
	g := &list[0]
	g.Cost.Literals = 100 // of which 10 fill holes
	g.Spans[0].Literals, g.Spans[1].Literals = 60, 30
	list[1].Cost.Literals = 100
	a := account{stats: &Stats{}, byEvent: true}
	g.Spans[0].Template, g.Spans[1].Template = 1, 0
	for range 2 { // each frame by itself
		a.stats.Out, a.stats.Messages = [NumParts]float64{}, nil
		a.templates = nil
		a.frame(list, 0, 50+9, 50)
		for part, want := range map[Part]float64{PartFrames: 9, PartHeaders: 2.5, PartBodies: 22.5, PartVerbatim: 25} {
			if got := a.stats.Out[part]; !same(got, want) {
				t.Errorf("%v: %.3f bytes, expected %.3f", part, got, want)
			}
		}
	}
	key := EventKey{Protocol: g.Spans[0].Protocol, Name: g.Spans[0].Name, Event: "a"}
	a.stats.is(t, key, 2, 112/2, 15)
	key.Event = "b"
	a.stats.is(t, key, 2, 112/2, 7.5)
}

func TestNothingIsSharedWhereThereAreNoLiterals(t *testing.T) {
	a := account{stats: &Stats{}}
	for n, shares := range map[int]int{-1: 0, 0: 0, 1: 1} {
		a.shares = nil
		if a.share(PartBodies, nil, n); len(a.shares) != shares {
			t.Errorf("%d bytes: %d shares", n, len(a.shares))
		}
	}
}

func TestHitsAreCounted(t *testing.T) {
	a := account{stats: &Stats{}}
	g := codec.Group{}
	for h := range Hit(NumHits) + 2 {
		for range h + 1 {
			g.Spans = append(g.Spans, codec.Span{Advice: codec.Advice{Hit: h}})
		}
	}
	a.hits(&g)
	for h := range NumHits {
		if got := a.stats.Hits[h]; got != uint64(h)+1 {
			t.Errorf("%d hits by %v, expected %d", got, h, h+1)
		}
	}
	if a.stats.NoHits != uint64(codec.NoHit)+1 {
		t.Errorf("%d without", a.stats.NoHits)
	}
}

// spanIn is a span of an event in a template, which begins at a place in its message.
func spanIn(template uint32, key uint64, at int, event string) *codec.Span {
	s := &codec.Span{Advice: codec.Advice{Key: key, At: at, Event: []byte(event), Protocol: 1, Template: template}}
	return s
}

func TestTemplateKnowsItsEvent(t *testing.T) {
	a := account{stats: &Stats{}, byEvent: true}
	first := a.event(spanIn(5, 77, 0, "a"))
	if first != a.stats.Messages[EventKey{Protocol: 1, Event: "a"}] {
		t.Error("a new template's event is counted elsewhere")
	}
	if a.event(spanIn(5, 77, 0, "what nobody looks at")) != first || len(a.stats.Messages) != 1 {
		t.Error("the template does not know its event")
	}
	// a template that is used anew, for another key or for another place in a message
	if got := a.event(spanIn(5, 78, 0, "b")); got == first || got != a.stats.Messages[EventKey{Protocol: 1, Event: "b"}] {
		t.Error("another key is counted as the event before")
	}
	if got := a.event(spanIn(5, 78, 9, "")); got != a.stats.Messages[EventKey{Protocol: 1, Event: "b"}] {
		t.Error("another part of the message is counted elsewhere")
	}
	if got := a.event(spanIn(5, 77, 9, "")); got != first {
		t.Error("a part of the first event is counted elsewhere")
	}
	if got := a.event(spanIn(0, 79, 0, "c")); got != a.stats.Messages[EventKey{Protocol: 1, Event: "c"}] || len(a.stats.Messages) != 3 {
		t.Errorf("an older template: %d events", len(a.stats.Messages))
	}
}

func TestTemplateOfSeveralEventsKnowsNone(t *testing.T) {
	a := account{stats: &Stats{}}
	for range 2 {
		for _, event := range []string{"a", "b"} {
			if a.event(spanIn(5, 77, 0, event)) != a.stats.Messages[EventKey{Protocol: 1, Event: event}] {
				t.Errorf("%s is counted elsewhere", event)
			}
		}
	}
}

// Events are counted apart also where messages are compared whatever their event.
func TestEventsAreCountedWhateverIsCompared(t *testing.T) {
	for _, by := range []Similarity{ByAll, ByEvent, ByName, ByLength, ByContent, ByNothing} {
		m := newMerger(t, Config{Similarity: by})
		for i := range 6 {
			add(t, m, 0, data(i, string(rune('a'+i%2))).Packet())
			m.Flush(nil, 0, FlushEnd)
		}
		for k, e := range m.Stats().Messages {
			if e.Messages != 3 || k.Event != "t/a" && k.Event != "t/b" {
				t.Errorf("criteria %b: %d messages of %q", by, e.Messages, k.Event)
			}
		}
	}
}

func TestEventThatGaveWayIsCountedAnew(t *testing.T) {
	a := account{stats: &Stats{}, byEvent: true}
	old, rest := a.event(spanIn(5, 77, 0, "a")), &EventStats{}
	a.event(spanIn(6, 77, 1, ""))
	old.into = rest
	delete(a.stats.Messages, EventKey{Protocol: 1, Event: "a"})
	clear(a.stats.parts)
	if got := a.event(spanIn(6, 77, 1, "")); got != rest {
		t.Error("a later part of the message is not counted in the rest")
	}
	got := a.event(spanIn(5, 77, 0, "a"))
	if got == old || got == rest || got != a.stats.Messages[EventKey{Protocol: 1, Event: "a"}] {
		t.Error("it is not counted anew")
	}
	if a.event(spanIn(5, 77, 0, "")) != got {
		t.Error("the template does not know where")
	}
}

// What is counted of the frames of a lane comes to their bytes, whatever is in them, and
// what came in to that of the packets.
func TestPartsComeToTheWhole(t *testing.T) {
	p := newPair(t, Config{})
	f := codectest.NewFanout(20)
	for range 30 {
		f.Send(func(i int) []byte { return codectest.Publish(fmt.Sprint("t/", i%4), body(f.Round), i%2) }, p.run)
	}
	p.add(1, f.Now, []byte{0x45, 1, 2})
	for _, b := range records(1) {
		p.add(1, f.Now, b)
	}
	p.flush(1, f.Now)
	p.due(1 << 60)
	for d := range p.ends {
		s := p.ends[d].Merger.Stats()
		in, out := uint64(0), 0.0
		for i := range NumParts {
			in += s.In[i]
			out += s.Out[i]
		}
		if in != s.BytesIn {
			t.Errorf("direction %d: parts of %d bytes in, %d in all", d, in, s.BytesIn)
		}
		if s.BytesFrames != uint64(p.bytes[d]) || s.Frames != uint64(p.count[d]) {
			t.Errorf("direction %d: %d bytes in %d frames, %d in %d were seen", d, s.BytesFrames, s.Frames, p.bytes[d], p.count[d])
		}
		// each control field ends with a byte that is not full
		if diff := float64(s.BytesFrames) - out; diff < -1 || diff > 1.5*float64(s.Frames) {
			t.Errorf("direction %d: parts of %.1f bytes out, %d in all, %d frames", d, out, s.BytesFrames, s.Frames)
		}
	}
	var messages uint64
	for k, e := range p.ends[1].Merger.Stats().Messages {
		if k.Event != "" {
			messages += e.Messages
		}
	}
	if messages != 600 {
		t.Errorf("%d messages counted, 600 sent", messages)
	}
}

func TestEventsOfPartsOfMessages(t *testing.T) {
	s := &Stats{}
	first := s.event(spanIn(0, 77, 0, "a"))
	if s.event(spanIn(0, 77, 1, "")) != first {
		t.Error("a later part is counted elsewhere")
	}
	if got := s.event(spanIn(0, 77, 0, "b")); got == first || s.event(spanIn(0, 77, 1, "")) != got {
		t.Error("a later part is not counted with the last first one")
	}
	if got := s.event(spanIn(0, 0, 5, "")); got != s.Messages[EventKey{Protocol: 1}] || len(s.parts) != 1 {
		t.Error("what has no key is counted with what has")
	}
}

func TestPartsOfMessagesAreBounded(t *testing.T) {
	s := &Stats{}
	for key := range uint64(maxEvents + 2) {
		s.event(spanIn(0, 1+key, 0, "a"))
	}
	if len(s.parts) != maxEvents {
		t.Errorf("%d parts are known", len(s.parts))
	}
}

func TestEventsAreCountedByProtocolNameAndEvent(t *testing.T) {
	s := &Stats{}
	seen := map[*EventStats]bool{}
	for _, protocol := range []parsers.ProtocolID{1, 2} {
		for _, name := range []uint8{1, 2} {
			for _, event := range []string{"", "a", "b"} {
				sp := &codec.Span{Advice: codec.Advice{Protocol: protocol, Name: name, Event: []byte(event)}}
				e := s.event(sp)
				if seen[e] || s.event(sp) != e || s.Messages[EventKey{Protocol: protocol, Name: name, Event: event}] != e {
					t.Errorf("protocol %d, name %d, event %q is counted elsewhere", protocol, name, event)
				}
				seen[e] = true
			}
		}
	}
}
