package aggregate

import "sheaf/parsers"

// peers is what one direction knows of the other for its predictions: at the
// writing end what its Expander has rebuilt, at the reading end what its Merger
// wrote, as of the frame that the writing end says it had rebuilt. So both ends
// look at the same past (DESIGN: cross-direction memory).
type peers struct {
	views    []view // by the peer's CID
	unpaired uint32 // the newest context whose other direction is not known, plus one
	owing    owing
}

// A view is what is known of a flow of the other direction.
type view struct {
	key   parsers.FlowKey
	edges [4]edge // newest first: where its last segments ended
	count int
	stamp uint32 // its newest timestamp
	ack   uint32 // its newest acknowledgement number
	own   uint32 // CID of this direction's flow, plus one
	acked bool   // ack is valid
	valid bool
}

// An edge is the end of a segment, with where it began.
type edge struct{ begin, end, stamp uint32 }

// An item is one change of the peers' views: a new flow or a segment.
type item struct {
	flow    *flow
	cid     uint32
	reverse uint32 // a new flow's other direction, plus one
	begin   uint32
	end     uint32
	ack     uint32
	stamp   uint32
	fresh   bool
	payload bool
	acked   bool // ack is valid
	stamped bool // stamp is valid
}

// apply changes the views as the peer's frame did.
func (m *memory) apply(it *item) {
	p := &m.peers
	for int(it.cid) >= len(p.views) {
		p.views = append(p.views, view{})
	}
	v := &p.views[it.cid]
	if it.fresh {
		if f := m.flow(v.own); f != nil && f.reverse == it.cid+1 {
			f.reverse = 0
		}
		*v = view{key: it.flow.key, valid: true}
		if f := m.flow(it.reverse); f != nil {
			m.pair(it.reverse-1, it.cid)
		} else {
			p.unpaired = it.cid + 1
		}
	}
	if v.count == 0 || v.edges[0].end != it.end {
		copy(v.edges[1:], v.edges[:3])
		v.edges[0] = edge{it.begin, it.end, it.stamp}
		v.count = min(v.count+1, len(v.edges))
	}
	if it.stamped {
		v.stamp = it.stamp
	}
	if it.acked {
		v.ack, v.acked = it.ack, true
	}
	if it.payload && v.own != 0 {
		p.owing.push(v.own - 1)
	}
}

// flow returns the context of a CID plus one, nil where there is none.
func (m *memory) flow(plus uint32) *flow {
	if plus == 0 || int(plus) > len(m.flows) {
		return nil
	}
	return m.flows[plus-1]
}

// pair notes that two flows are the two directions of one conversation.
func (m *memory) pair(own, peer uint32) {
	m.flows[own].reverse = peer + 1
	m.peers.views[peer].own = own + 1
	if m.peers.unpaired == peer+1 {
		m.peers.unpaired = 0
	}
}

// view returns the other direction of f, nil while it is not known.
func (m *memory) view(f *flow) *view {
	if f.reverse == 0 {
		return nil
	}
	return &m.peers.views[f.reverse-1]
}

// owing lists the flows whose other direction has brought payload since they
// last had a segment themselves, oldest first: the ones that will acknowledge.
type owing struct {
	nodes []owingNode // by CID
	head  uint32      // plus one, as all below
	tail  uint32
	count int
}

type owingNode struct {
	prev, next uint32
	listed     bool
}

func (o *owing) push(cid uint32) {
	for int(cid) >= len(o.nodes) {
		o.nodes = append(o.nodes, owingNode{})
	}
	n := &o.nodes[cid]
	if n.listed {
		return
	}
	*n = owingNode{prev: o.tail, listed: true}
	if o.tail != 0 {
		o.nodes[o.tail-1].next = cid + 1
	} else {
		o.head = cid + 1
	}
	o.tail = cid + 1
	o.count++
}

func (o *owing) remove(cid uint32) {
	if int(cid) >= len(o.nodes) || !o.nodes[cid].listed {
		return
	}
	n := &o.nodes[cid]
	if n.prev != 0 {
		o.nodes[n.prev-1].next = n.next
	} else {
		o.head = n.next
	}
	if n.next != 0 {
		o.nodes[n.next-1].prev = n.prev
	} else {
		o.tail = n.prev
	}
	n.listed = false
	o.count--
}

// appendTo appends the CIDs listed, oldest first, up to max of them.
func (o *owing) appendTo(dst []uint32, max int) []uint32 {
	for at := o.head; at != 0 && len(dst) < max; at = o.nodes[at-1].next {
		dst = append(dst, at-1)
	}
	return dst
}
