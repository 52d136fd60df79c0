package codec

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// The list of those that are expected is what a list without doubles would be.
func TestExpectedIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var e expected
		var model []CID
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			c := cidAt(rapid.Uint32Range(0, 9).Draw(t, "cid"))
			at := slices.Index(model, c)
			if rapid.Bool().Draw(t, "push") {
				e.push(c)
				if at < 0 {
					model = append(model, c)
				}
			} else {
				e.remove(c)
				if at >= 0 {
					model = slices.Delete(model, at, at+1)
				}
			}
			if got := e.appendTo(nil, 100); !slices.Equal(got, model) || e.count != len(model) {
				t.Fatalf("%v (%d), expected %v", got, e.count, model)
			}
		}
	})
}

// Who is expected already keeps its place, and who is not is no loss.
func TestExpectedOnce(t *testing.T) {
	var e expected
	e.remove(cidAt(5))
	for _, c := range []uint32{2, 0, 2, 1} {
		e.push(cidAt(c))
	}
	e.remove(cidAt(9))
	if got := e.appendTo(nil, 9); !slices.Equal(got, []CID{cidAt(2), cidAt(0), cidAt(1)}) || e.count != 3 {
		t.Errorf("expected are %v, %d", got, e.count)
	}
	e.remove(cidAt(0))
	e.remove(cidAt(0))
	e.push(cidAt(0))
	if got := e.appendTo(nil, 9); !slices.Equal(got, []CID{cidAt(2), cidAt(1), cidAt(0)}) || e.count != 3 {
		t.Errorf("expected are %v, %d", got, e.count)
	}
	if got := e.appendTo([]CID{cidAt(7)}, 2); !slices.Equal(got, []CID{cidAt(7), cidAt(2)}) {
		t.Errorf("up to 2 are %v", got)
	}
}

// twoFlows is a state with two contexts.
func twoFlows() *state {
	return &state{contexts: []*context{{key: parsers.FlowKey{SrcPort: 100}}, {key: parsers.FlowKey{SrcPort: 101}}}}
}

// pair makes two flows each other's other direction, and no longer asks for it.
func TestPair(t *testing.T) {
	s := twoFlows()
	s.views.table = make([]view, 3)
	s.views.unpaired = peerCIDAt(2)
	s.pair(cidAt(1), peerCIDAt(0))
	if s.views.unpaired != peerCIDAt(2) {
		t.Error("the newest flow is another, and yet not unpaired any more")
	}
	s.pair(cidAt(0), peerCIDAt(2))
	if got := s.contexts[0].reverse; got != peerCIDAt(2) {
		t.Errorf("the flow's reverse is %v", got)
	}
	if got := s.views.table[2].own; got != cidAt(0) {
		t.Errorf("the view's flow is %v", got)
	}
	if !s.views.unpaired.none() {
		t.Errorf("%v is still unpaired", s.views.unpaired)
	}
	if v := s.view(s.contexts[0]); v != &s.views.table[2] {
		t.Error("the flow's view is another")
	}
	if v := s.view(&context{}); v != nil {
		t.Error("a flow without its other direction has a view")
	}
}

// viewAt returns the view of a peer's CID that is in use, and none past the table.
func TestViewAt(t *testing.T) {
	var s state
	s.views.table = []view{{}, {valid: true}}
	for p, want := range map[peerCID]*view{
		{}: nil, peerCIDAt(0): nil, peerCIDAt(1): &s.views.table[1], peerCIDAt(2): nil,
	} {
		if got := s.viewAt(p); got != want {
			t.Errorf("view %v is %v", p, got)
		}
	}
}

// A new flow's item makes a view of it, in place of what was there, and undoes the pair
// of the flow before it.
func TestApplyNewFlow(t *testing.T) {
	s := twoFlows()
	key := parsers.FlowKey{SrcPort: 9}
	s.apply(&item{context: &context{key: key}, cid: cidAt(2), fresh: true, reverse: thePeers(cidAt(1)), end: 5, ack: 7, hasAck: true})
	if len(s.views.table) != 3 || s.views.table[0].valid || !s.views.table[2].valid || s.views.table[2].key != key {
		t.Fatalf("the views are %+v", s.views.table)
	}
	if s.views.table[2].own != cidAt(1) || s.contexts[1].reverse != peerCIDAt(2) || !s.views.unpaired.none() {
		t.Error("a flow that names its other direction is not its pair")
	}

	other := parsers.FlowKey{SrcPort: 10}
	s.apply(&item{context: &context{key: other}, cid: cidAt(2), fresh: true, end: 6})
	v := &s.views.table[2]
	if v.key != other || v.count != 1 || v.edges[0].end != 6 || v.hasAck || !v.own.none() {
		t.Errorf("the view of another flow has what was of the first: %+v", *v)
	}
	if !s.contexts[1].reverse.none() {
		t.Error("the pair of the first flow is still there")
	}
	if s.views.unpaired != peerCIDAt(2) {
		t.Errorf("unpaired is %v", s.views.unpaired)
	}

	// a flow of which the peer names what is not known here
	s.apply(&item{context: &context{key: other}, cid: cidAt(0), fresh: true, reverse: thePeers(cidAt(7))})
	if s.views.unpaired != peerCIDAt(0) {
		t.Errorf("unpaired is %v", s.views.unpaired)
	}
}

// The pair that a new flow undoes is its own only: a context that has found another
// other direction since keeps it.
func TestApplyKeepsOtherPairs(t *testing.T) {
	s := twoFlows()
	for p := range uint32(2) {
		s.apply(&item{context: &context{}, cid: cidAt(p), fresh: true})
		s.pair(cidAt(0), peerCIDAt(p))
	}
	s.apply(&item{context: &context{}, cid: cidAt(0), fresh: true})
	if got := s.contexts[0].reverse; got != peerCIDAt(1) {
		t.Errorf("the reverse is %v", got)
	}
}

// A view has where the last four segments ended, newest first. One that ends where the
// newest did is no edge of its own.
func TestApplyEdges(t *testing.T) {
	s := twoFlows()
	apply := func(begin, end, tsval uint32) {
		s.apply(&item{context: s.contexts[0], cid: cidAt(0), fresh: len(s.views.table) == 0, begin: begin, end: end, tsval: tsval, hasTSval: true})
	}
	apply(0, 0, 1) // which ends where an empty view would
	s.contexts[0].reverse = peerCIDAt(0)
	if got := s.edges(s.contexts[0]); !slices.Equal(got, []edge{{0, 0, 1}}) {
		t.Errorf("edges %v", got)
	}
	apply(0, 10, 2)
	apply(10, 10, 3)
	apply(10, 20, 4)
	if got := s.edges(s.contexts[0]); !slices.Equal(got, []edge{{10, 20, 4}, {0, 10, 2}, {0, 0, 1}}) {
		t.Errorf("edges %v", got)
	}
	apply(20, 30, 5)
	apply(30, 40, 6)
	if got := s.edges(s.contexts[0]); !slices.Equal(got, []edge{{30, 40, 6}, {20, 30, 5}, {10, 20, 4}, {0, 10, 2}}) {
		t.Errorf("edges %v", got)
	}
	if got := s.edges(s.contexts[1]); got != nil {
		t.Errorf("edges %v of a flow whose other direction is not known", got)
	}
}

// TSval and acknowledgement number are the newest that there were.
func TestApplyNewestNumbers(t *testing.T) {
	s := twoFlows()
	for i, it := range []item{
		{fresh: true, tsval: 5, hasTSval: true},
		{ack: 6, hasAck: true},
		{tsval: 9, ack: 9},
	} {
		it.context, it.cid = s.contexts[0], cidAt(0)
		s.apply(&it)
		v := &s.views.table[0]
		if v.tsval != 5 || v.hasAck != (i > 0) || i > 0 && v.ack != 6 {
			t.Errorf("after %d items: tsval %d, ack %d (%t)", i+1, v.tsval, v.ack, v.hasAck)
		}
	}
}

// Payload that reaches a flow makes it expected to acknowledge.
func TestApplyExpects(t *testing.T) {
	s := twoFlows()
	expect := func(what string, want ...CID) {
		t.Helper()
		if got := s.views.expected.appendTo(nil, 9); !slices.Equal(got, want) {
			t.Errorf("%s: expected are %v, not %v", what, got, want)
		}
	}
	s.apply(&item{context: &context{}, cid: cidAt(5), fresh: true, payload: true})
	expect("payload of a flow whose other direction is not known")
	s.apply(&item{context: &context{}, cid: cidAt(4), fresh: true, reverse: thePeers(cidAt(1))})
	expect("a segment without payload")
	s.apply(&item{cid: cidAt(4), payload: true})
	expect("payload", cidAt(1))
}
