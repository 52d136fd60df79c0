package codec

import "sheaf/parsers"

// views is what one direction knows of the other for its predictions: at the
// writing end what its gateway has rebuilt, at the reading end what its gateway
// wrote, as of the frame that the writing end says it had rebuilt. So both ends
// look at the same past (SPEC.md section 4.4).
type views struct {
	table    []view   // by the peer's CID
	unpaired peerCID  // the newest flow whose other direction is not known
	expected expected // the flows that will acknowledge
}

// A view is what is known of a flow of the other direction.
type view struct {
	key    parsers.FlowKey
	edges  [4]edge // newest first: where its last segments ended
	count  int     // of edges
	tsval  uint32  // its newest TSval
	ack    uint32  // its newest acknowledgement number
	own    CID     // this direction's flow
	hasAck bool    // ack is valid
	valid  bool
}

// An edge is the end of a segment, with where it began and its TSval.
type edge struct{ begin, end, tsval uint32 }

// An item is one change of the peer's views: a new flow or a segment.
type item struct {
	context  *context
	cid      CID
	reverse  peerCID // a new flow's other direction
	begin    uint32
	end      uint32
	ack      uint32
	tsval    uint32
	fresh    bool
	payload  bool
	hasAck   bool // ack is valid
	hasTSval bool // tsval is valid
}

// view returns the other direction of a flow, nil while it is not known.
func (s *state) view(f *context) *view {
	if f.reverse.none() {
		return nil
	}
	return &s.views.table[f.reverse.place()]
}

// viewAt returns the view of a peer's CID, nil where there is none.
func (s *state) viewAt(p peerCID) *view {
	if p.place() >= uint32(len(s.views.table)) || !s.views.table[p.place()].valid {
		return nil
	}
	return &s.views.table[p.place()]
}

// apply changes the views as the peer's frame did.
func (s *state) apply(it *item) {
	peer := thePeers(it.cid)
	for int(peer.place()) >= len(s.views.table) {
		s.views.table = append(s.views.table, view{})
	}
	v := &s.views.table[peer.place()]
	if it.fresh {
		if f := s.context(v.own); f != nil && f.reverse == peer {
			f.reverse = peerCID{}
		}
		*v = view{key: it.context.key, valid: true}
		if own := ours(it.reverse); s.context(own) != nil {
			s.pair(own, peer)
		} else {
			s.views.unpaired = peer
		}
	}
	if v.count == 0 || v.edges[0].end != it.end {
		copy(v.edges[1:], v.edges[:3])
		v.edges[0] = edge{it.begin, it.end, it.tsval}
		v.count = min(v.count+1, len(v.edges))
	}
	if it.hasTSval {
		v.tsval = it.tsval
	}
	if it.hasAck {
		v.ack, v.hasAck = it.ack, true
	}
	if it.payload && !v.own.none() {
		s.views.expected.push(v.own)
	}
}

// pair notes that two flows are the two directions of one conversation.
func (s *state) pair(own CID, peer peerCID) {
	s.context(own).reverse = peer
	s.views.table[peer.place()].own = own
	if s.views.unpaired == peer {
		s.views.unpaired = peerCID{}
	}
}

// edges returns where the last segments of a flow's other direction ended, newest
// first.
func (s *state) edges(f *context) []edge {
	v := s.view(f)
	if v == nil {
		return nil
	}
	return v.edges[:v.count]
}

// expected lists the flows whose other direction has brought payload since they
// last had a segment themselves, oldest first: an acknowledgement is expected of them.
type expected struct {
	nodes      []expectedNode // by CID
	head, tail CID
	count      int
}

type expectedNode struct {
	prev, next CID
	listed     bool
}

func (e *expected) push(c CID) {
	for int(c.place()) >= len(e.nodes) {
		e.nodes = append(e.nodes, expectedNode{})
	}
	n := &e.nodes[c.place()]
	if n.listed {
		return
	}
	*n = expectedNode{prev: e.tail, listed: true}
	if !e.tail.none() {
		e.nodes[e.tail.place()].next = c
	} else {
		e.head = c
	}
	e.tail = c
	e.count++
}

func (e *expected) remove(c CID) {
	if int(c.place()) >= len(e.nodes) || !e.nodes[c.place()].listed {
		return
	}
	n := &e.nodes[c.place()]
	if !n.prev.none() {
		e.nodes[n.prev.place()].next = n.next
	} else {
		e.head = n.next
	}
	if !n.next.none() {
		e.nodes[n.next.place()].prev = n.prev
	} else {
		e.tail = n.prev
	}
	n.listed = false
	e.count--
}

// appendTo appends the CIDs listed, oldest first, up to max of them.
func (e *expected) appendTo(dst []CID, max int) []CID {
	for at := e.head; !at.none() && len(dst) < max; at = e.nodes[at.place()].next {
		dst = append(dst, at)
	}
	return dst
}
