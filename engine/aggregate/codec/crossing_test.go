package codec

import (
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
)

// Traffic in one direction only: nobody says what was rebuilt, and what is kept to refer
// to is bounded, at four frames of all their packets.
func TestOneDirection(t *testing.T) {
	limits := wire.DefaultLimits
	limits.Packets = 100
	x := newExchange(t, Config{Limits: limits})
	s := codectest.Segment{Client: 1, Flags: 0x18, Window: 5, Payload: []byte("abc")}
	send := func(n int) {
		for range n {
			s.Seq += 3
			x.add(0, s.Packet())
		}
		x.flush(0)
	}
	kept := func() (frames, items int) { return x.encoder(0).past.sent.len(), x.encoder(0).past.items.len() }
	for range 13 {
		send(30)
	}
	if frames, items := kept(); frames != 13 || items != 390 {
		t.Errorf("%d items of %d frames are kept, expected 390 of 13", items, frames)
	}
	send(30) // would be 420
	if frames, items := kept(); frames != 13 || items != 390 {
		t.Errorf("%d items of %d frames are kept past 400", items, frames)
	}
	send(10)
	if frames, items := kept(); frames != 14 || items != 400 {
		t.Errorf("%d items of %d frames are kept, with one to the bound", items, frames)
	}
	send(1)
	if frames, items := kept(); frames != 14 || items != 400 {
		t.Errorf("%d items of %d frames are kept past the bound", items, frames)
	}
	// and the other direction still works when it comes up
	for range 3 {
		send(1)
		a := codectest.Segment{Client: 1, Down: true, Flags: 0x10, Window: 5, Ack: s.Seq + 3}
		x.send(1, a.Packet())
	}
	if frames, items := kept(); frames != 0 || items != 0 {
		t.Errorf("%d items of %d frames are kept that were acknowledged", items, frames)
	}
	x.settle()
}

// Both gateways meet a conversation in its middle at the same time, so that neither
// context names the other: the pair is found, and told, later.
func TestCrossingContextsArePaired(t *testing.T) {
	x := newExchange(t, Config{})
	up := codectest.Segment{Client: 3, Flags: 0x18, Window: 9, Seq: 100, Ack: 5000, TSval: 1, TSecr: 1, Payload: []byte("up")}
	down := codectest.Segment{Client: 3, Down: true, Flags: 0x18, Window: 9, Seq: 5000, Ack: 100, TSval: 1, TSecr: 1, Payload: []byte("down")}
	x.late = true
	x.send(0, up.Packet())
	x.send(1, down.Packet())
	for d := range 2 {
		if got := x.encoder(d).contexts[0].reverse; !got.none() {
			t.Errorf("direction %d knows its other direction, %v, before it has heard of it", d, got)
		}
		x.deliver(d)
	}
	x.late = false
	for range 2 {
		up.Seq += 2
		down.Seq += 4
		up.Ack, down.Ack = down.Seq, up.Seq
		x.send(0, up.Packet())
		x.send(1, down.Packet())
	}
	for d := range 2 {
		for end, s := range map[string]*state{"writer": &x.encoder(d).state, "reader": &x.decoder(d).state} {
			if s.contexts[0].reverse != peerCIDAt(0) || s.views.table[0].own != cidAt(0) {
				t.Errorf("direction %d, %s: reverse %v, own %v", d, end, s.contexts[0].reverse, s.views.table[0].own)
			}
			if !s.views.unpaired.none() {
				t.Errorf("direction %d, %s: %v is unpaired", d, end, s.views.unpaired)
			}
		}
	}
	x.settle()
}

// A frame predicts by what the peer's frames that it acknowledges said, not by those
// that have arrived since: the acknowledgement of a segment that crossed it is dear, that of
// one that its reader knows to have arrived costs next to nothing.
func TestPredictionsAreOfWhatIsAcknowledged(t *testing.T) {
	x := newExchange(t, Config{})
	down := codectest.Segment{Client: 3, Down: true, Flags: 0x18, Seq: 5000, Ack: 100, Payload: []byte("down")}
	up := codectest.Segment{Client: 3, Flags: 0x10, Seq: 100}
	for range 40 {
		x.send(1, down.Packet())
		down.Seq += uint32(len(down.Payload))
		up.Ack = down.Seq
		if f := x.send(0, up.Packet()); x.count[0] > 30 && f.groups[0].Cost.Bits > 4 {
			t.Errorf("an acknowledgement costs %.1f bits", f.groups[0].Cost.Bits)
		}
	}
	v := &x.encoder(0).views.table[0]
	if v.edges[0].end != down.Seq || v.count != len(v.edges) {
		t.Errorf("the view ends at %d with %d edges, expected %d", v.edges[0].end, v.count, down.Seq)
	}
	x.late = true
	x.send(1, down.Packet())
	down.Seq += uint32(len(down.Payload))
	x.send(0, up.Packet())
	if got := x.encoder(0).views.table[0].edges[0].end; got == down.Seq {
		t.Error("the view has what has not arrived")
	}
	x.deliver(1)
	if got := x.encoder(0).views.table[0].edges[0].end; got != down.Seq {
		t.Errorf("the writer's view ends at %d, expected %d", got, down.Seq)
	}
	if got := x.decoder(0).views.table[0].edges[0].end; got == down.Seq {
		t.Error("the reader's view has what no frame has acknowledged")
	}
	x.deliver(0)
	up.Ack = down.Seq
	x.send(0, up.Packet())
	x.deliver(0)
	if got := x.decoder(0).views.table[0].edges[0].end; got != down.Seq {
		t.Errorf("the reader's view ends at %d, expected %d", got, down.Seq)
	}
	x.settle()
}

// A CID that is given to another flow is no longer its pair's, nor expected, and its
// context is a new one. What was of another flow is not looked at.
func TestForget(t *testing.T) {
	s := twoFlows()
	s.views.table = make([]view, 2)
	s.pair(cidAt(0), peerCIDAt(1))
	s.pair(cidAt(1), peerCIDAt(0))
	s.views.expected.push(cidAt(0))
	s.views.expected.push(cidAt(1))
	s.views.table[0].own = cidAt(7) // which has found another
	s.forget(cidAt(0))
	s.forget(cidAt(1))
	if s.contexts[0] != nil || s.contexts[1] != nil || s.views.expected.count != 0 {
		t.Errorf("contexts %v, %d expected", s.contexts, s.views.expected.count)
	}
	if got := s.views.table[1].own; !got.none() {
		t.Errorf("the view still is of %v", got)
	}
	if got := s.views.table[0].own; got != cidAt(7) {
		t.Errorf("the pair of another flow was undone: %v", got)
	}
	for c, want := range map[CID]*context{{}: nil, cidAt(0): nil, cidAt(2): nil} {
		if got := s.context(c); got != want {
			t.Errorf("%v has the context %v", c, got)
		}
	}
}

// A reused CID is the new flow's from then on: also who was listed in the same group
// under it before is not taken for it.
func TestEnterContext(t *testing.T) {
	var x codec
	a, b, c := &context{}, &context{}, &context{}
	x.group = 1
	x.enterContext(cidAt(0), a)
	x.enterContext(cidAt(1), b)
	if len(x.contexts) != 2 || len(x.marks) != 2 || x.contexts[1] != b {
		t.Fatalf("%d contexts, %d marks", len(x.contexts), len(x.marks))
	}
	x.mark(cidAt(0))
	x.mark(cidAt(1))
	x.enterContext(cidAt(0), c)
	if x.contexts[0] != c || x.contexts[1] != b || len(x.contexts) != 2 {
		t.Errorf("the contexts are %v", x.contexts)
	}
	if x.marked(cidAt(0)) || !x.marked(cidAt(1)) {
		t.Error("the new flow is listed in the group already, or the other no more")
	}
}
