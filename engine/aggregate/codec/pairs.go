package codec

import (
	"iter"

	"sheaf/parsers"
)

// A NewFlow is a flow of the peer's that the last frame announced, and whose other
// direction the peer did not know.
type NewFlow struct {
	Key  parsers.FlowKey
	peer peerCID
}

// Learned takes in what a frame of the peer changed, which the Decoder beside it has
// just decoded and found to be right. It goes through those new flows of which the
// caller is to say whether their other direction is here, by Pair or Unpaired: at once,
// since what comes behind one in the frame may change its answer.
func (e *Encoder) Learned(d *Decoder) iter.Seq[NewFlow] {
	return func(yield func(NewFlow) bool) {
		e.rebuilt++
		more := true
		for i := range d.items {
			it := &d.items[i]
			e.apply(it)
			if it.fresh && more {
				more = yield(NewFlow{it.context.key, thePeers(it.cid)})
			}
		}
	}
}

// Pair notes that a flow of this end's is the other direction of a new flow of the
// peer's. The next frame tells the peer.
func (e *Encoder) Pair(f *Flow, n NewFlow) {
	if !e.views.table[n.peer.place()].own.none() {
		return // the peer knows it
	}
	if c := e.context(f.cid); c != nil && c.reverse.none() {
		e.pairs = append(e.pairs, pair{f.cid, n.peer})
		return
	}
	e.Unpaired(n)
}

// Unpaired notes a new flow of the peer's whose other direction is not known. Flows
// that are long gone are sorted out when there are too many.
func (e *Encoder) Unpaired(n NewFlow) {
	if !e.views.table[n.peer.place()].own.none() {
		return
	}
	if len(e.unpaired) > 2*len(e.views.table)+64 {
		clear(e.unpaired)
		for i := range e.views.table {
			if v := &e.views.table[i]; v.valid && v.own.none() {
				e.unpaired[v.key] = peerCIDAt(uint32(i))
			}
		}
	}
	e.unpaired[n.Key] = n.peer
}

// reverse returns the peer's flow that is the other direction of a new one here.
func (e *Encoder) reverse(key *parsers.FlowKey) peerCID {
	back := key.Reverse()
	peer, ok := e.unpaired[back]
	if !ok {
		return peerCID{}
	}
	delete(e.unpaired, back)
	if v := e.viewAt(peer); v == nil || !v.own.none() || v.key != back {
		return peerCID{}
	}
	return peer
}

// Each frame begins with the pairs found since the last one (codePairs). Most need
// none: a flow that answers is announced as the reverse of the one it answers.

// valid drops the pairs whose flows have changed since they were found. The others are
// pairs from now on, so that a flow that was found twice is in one of them only.
func (e *Encoder) valid(pairs []pair) []pair {
	keep := pairs[:0]
	for _, p := range pairs {
		v, f := e.viewAt(p.peer), e.context(p.own)
		if f != nil && v != nil && v.own.none() && f.reverse.none() && v.key == f.key.Reverse() {
			e.pair(p.own, p.peer)
			keep = append(keep, p)
		}
	}
	return keep
}
