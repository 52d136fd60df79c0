package codec

import (
	"slices"
	"testing"

	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// keyOf is the key of a flow to port n, and back its reverse.
func keyOf(n int) parsers.FlowKey {
	return parsers.FlowKey{SrcPort: uint16(n), DstPort: 1883, Proto: ip.TCP, Version: 4}
}

// newMeeting returns an Encoder with the contexts of some flows, and views of the
// peer's flows which are their other directions, not paired yet.
func newMeeting(flows, views int) *Encoder {
	e, _ := New(Config{Similarity: ByAll, Limits: wire.DefaultLimits})
	for i := range flows {
		e.enterContext(cidAt(uint32(i)), &context{key: keyOf(i)})
	}
	for i := range views {
		e.views.table = append(e.views.table, view{key: keyOf(i).Reverse(), valid: true})
	}
	return e
}

func newFlowOf(n int) NewFlow {
	return NewFlow{Key: keyOf(n).Reverse(), peer: peerCIDAt(uint32(n))}
}

// What a frame of the peer changed is applied once it has been decoded, and the frame
// counts as rebuilt. The caller is asked about new flows only, in their order, each after
// what came before it was applied.
func TestLearned(t *testing.T) {
	e := newMeeting(2, 0)
	d := &Decoder{}
	for i, fresh := range []bool{true, true, false, true} {
		d.items = append(d.items, item{
			context: &context{key: keyOf(10 + i)}, cid: cidAt(uint32(i)), fresh: fresh, end: uint32(i), hasAck: true, ack: uint32(i),
		})
	}
	var ports []uint16
	for n := range e.Learned(d) {
		if got := len(e.views.table); got != int(n.peer.place())+1 {
			t.Errorf("asked about %v with %d views", n.peer, got)
		}
		ports = append(ports, n.Key.SrcPort)
	}
	if want := []uint16{10, 11, 13}; !slices.Equal(ports, want) {
		t.Errorf("asked about flows %v, expected %v", ports, want)
	}
	if e.rebuilt != 1 || e.Unreported() != 1 || len(e.views.table) != 4 {
		t.Errorf("%d frames rebuilt, %d views", e.rebuilt, len(e.views.table))
	}
	for i := range d.items {
		d.items[i].ack += 10
	}
	for range e.Learned(d) {
		break
	}
	if e.rebuilt != 2 || e.views.table[2].ack != 12 {
		t.Error("what came behind the flow at which the caller ended was not applied")
	}
	e.acked = 1
	if got := e.Unreported(); got != 1 {
		t.Errorf("%d of 2 frames are unreported after one was", got)
	}
}

// A new flow of the peer's is a pair with the flow of this end that is its other
// direction, if each has none yet; else it may become one later.
func TestPairOfANewFlow(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   func(e *Encoder, f *Flow)
		pairs    int
		unpaired bool
	}{
		{"both have none", func(*Encoder, *Flow) {}, 1, false},
		{"the peer knows it", func(e *Encoder, _ *Flow) { e.views.table[1].own = cidAt(0) }, 0, false},
		{"its flow has another", func(e *Encoder, _ *Flow) { e.contexts[1].reverse = peerCIDAt(0) }, 0, true},
		{"its flow is not announced", func(_ *Encoder, f *Flow) { f.cid = CID{} }, 0, true},
	} {
		e := newMeeting(2, 2)
		f := &Flow{cid: cidAt(1)}
		tt.change(e, f)
		e.Pair(f, newFlowOf(1))
		if len(e.pairs) != tt.pairs || tt.pairs > 0 && e.pairs[0] != (pair{cidAt(1), peerCIDAt(1)}) {
			t.Errorf("%s: pairs %v", tt.name, e.pairs)
		}
		if _, ok := e.unpaired[keyOf(1).Reverse()]; ok != tt.unpaired {
			t.Errorf("%s: unpaired %v", tt.name, e.unpaired)
		}
	}
	e := newMeeting(2, 2)
	e.views.table[1].own = cidAt(0)
	if e.Unpaired(newFlowOf(1)); len(e.unpaired) != 0 {
		t.Error("a flow is unpaired that the peer knows the other direction of")
	}
}

// Flows without their other direction are kept up to twice as many as there are views, and
// 64; then those that are gone are sorted out.
func TestUnpairedAreBounded(t *testing.T) {
	e := newMeeting(0, 4)
	e.views.table[1].own = cidAt(9)
	e.views.table[2].valid = false
	const most = 2*4 + 64
	for i := range most + 1 {
		e.Unpaired(NewFlow{Key: keyOf(1000 + i), peer: peerCIDAt(0)})
	}
	if got := len(e.unpaired); got != most+1 {
		t.Errorf("%d are kept, expected %d", got, most+1)
	}
	e.Unpaired(NewFlow{Key: keyOf(9999), peer: peerCIDAt(0)})
	want := map[parsers.FlowKey]peerCID{
		keyOf(9999): peerCIDAt(0), keyOf(0).Reverse(): peerCIDAt(0), keyOf(3).Reverse(): peerCIDAt(3),
	}
	if len(e.unpaired) != len(want) {
		t.Errorf("%d are left, expected %d", len(e.unpaired), len(want))
	}
	for key, peer := range want {
		if e.unpaired[key] != peer {
			t.Errorf("%v is %v, expected %v", key, e.unpaired[key], peer)
		}
	}
}

// A new flow finds its other direction once, if that is still what it was.
func TestReverseOfANewFlow(t *testing.T) {
	key := keyOf(1)
	for _, tt := range []struct {
		name   string
		change func(e *Encoder)
		want   peerCID
	}{
		{"as it was", func(*Encoder) {}, peerCIDAt(1)},
		{"paired since", func(e *Encoder) { e.views.table[1].own = cidAt(0) }, peerCID{}},
		{"another flow's now", func(e *Encoder) { e.views.table[1].key = keyOf(7) }, peerCID{}},
		{"gone", func(e *Encoder) { e.views.table[1].valid = false }, peerCID{}},
		{"never there", func(e *Encoder) { clear(e.unpaired) }, peerCID{}},
	} {
		e := newMeeting(0, 2)
		e.unpaired[key.Reverse()] = peerCIDAt(1)
		tt.change(e)
		if got := e.reverse(&key); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
		if got := e.reverse(&key); !got.none() {
			t.Errorf("%s: %v a second time", tt.name, got)
		}
	}
}

// A pair that was found is told if both flows are what they were and have none since.
func TestValidPairs(t *testing.T) {
	one, two := pair{cidAt(0), peerCIDAt(0)}, pair{cidAt(1), peerCIDAt(1)}
	for _, tt := range []struct {
		name   string
		change func(e *Encoder)
		pairs  []pair
		want   []pair
	}{
		{"both", func(*Encoder) {}, []pair{one, two}, []pair{one, two}},
		{"the same twice", func(*Encoder) {}, []pair{one, one, two}, []pair{one, two}},
		{"no context", func(e *Encoder) { e.contexts[0] = nil }, []pair{one, two}, []pair{two}},
		{"no view", func(e *Encoder) { e.views.table[0].valid = false }, []pair{one, two}, []pair{two}},
		{"a view that has a flow", func(e *Encoder) { e.views.table[0].own = cidAt(1) }, []pair{one, two}, []pair{two}},
		{"a flow that has a view", func(e *Encoder) { e.contexts[0].reverse = peerCIDAt(1) }, []pair{one, two}, []pair{two}},
		{"a CID of another flow", func(e *Encoder) { e.contexts[0].key.SrcPort++ }, []pair{one, two}, []pair{two}},
		{"a view of another flow", func(e *Encoder) { e.views.table[0].key.SrcPort++ }, []pair{one, two}, []pair{two}},
	} {
		e := newMeeting(2, 2)
		tt.change(e)
		if got := e.valid(slices.Clone(tt.pairs)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, expected %v", tt.name, got, tt.want)
		}
		for _, p := range tt.want {
			if e.contexts[p.own.place()].reverse != p.peer || e.views.table[p.peer.place()].own != p.own {
				t.Errorf("%s: %v is no pair", tt.name, p)
			}
		}
	}
}

// Pairs go into the next frame, and into no other.
func TestPairsAreToldOnce(t *testing.T) {
	e := newMeeting(2, 2)
	d := &Decoder{past: &history{}}
	d.init(wire.DefaultLimits)
	for i := range 2 {
		d.enterContext(cidAt(uint32(i)), &context{key: keyOf(i)})
		d.views.table = append(d.views.table, view{key: keyOf(i).Reverse(), valid: true})
	}
	e.Pair(&Flow{cid: cidAt(1)}, newFlowOf(1))
	for range 2 {
		r := e.Encode(Frame{}, nil, nil)
		if _, err := d.Decode(r.Control, r.Literals); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.pairs) != 0 || d.contexts[1].reverse != peerCIDAt(1) || d.views.table[1].own != cidAt(1) {
		t.Errorf("%d pairs wait; the peer has %v and %v", len(e.pairs), d.contexts[1].reverse, d.views.table[1].own)
	}
}
