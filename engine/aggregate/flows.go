package aggregate

import (
	"time"

	"sheaf/engine/aggregate/codec"
	"sheaf/parsers"
)

// A flow is what the Merger knows of one direction of a conversation: how its
// payload goes on, how long its segments may wait, and what the Encoder keeps of it.
type flow struct {
	codec.Flow
	stream  parsers.Stream
	records *tlsRecords // nil where there are none to be opened
	met     bool        // records is set
	crc     uint32      // over all its packets, those pending too (wire.Digest)
	index   int         // in flows.all
	used    time.Duration
	frame   uint64      // in which it was last pending, 0 for none
	group   groupNumber // its last group in that frame
	acks    flowAcks
}

// flows are those that the Merger knows. It has as many contexts at the peer as the
// limits allow, and some flows besides that are not announced yet. What was used long
// ago gives its context to another.
type flows struct {
	byKey   map[parsers.FlowKey]*flow
	all     []*flow
	hand    int    // index in all of the flow last looked at for giving way
	frame   uint64 // number of the one that is being filled, from 1
	limit   int    // contexts
	maxIdle time.Duration
}

// get returns a flow, a new one where it is not known.
func (t *flows) get(now time.Duration, key *parsers.FlowKey) *flow {
	f := t.byKey[*key]
	if f == nil {
		f = &flow{index: len(t.all)}
		f.Key = *key
		t.byKey[*key] = f
		t.all = append(t.all, f)
	}
	f.used = now
	if f.frame != t.frame {
		f.frame, f.group, f.acks.inFrame = t.frame, 0, 0
	}
	return f
}

// drop forgets a flow.
func (t *flows) drop(f *flow) {
	if f.records != nil {
		f.records.conn.Drop()
	}
	delete(t.byKey, f.Key)
	last := t.all[len(t.all)-1]
	t.all[f.index], last.index = last, f.index
	t.all[len(t.all)-1] = nil
	t.all = t.all[:len(t.all)-1]
}

// abandon forgets a flow of which nothing is or will be known to the peer.
func (t *flows) abandon(f *flow) {
	if _, announced := f.CID(); !announced && f.group == 0 {
		t.drop(f)
	}
}

// reuse appends what n new flows of the frame are to be called, where the peer has that
// many contexts: by new numbers, or by those of flows that have been idle for long, which
// are forgotten.
func (t *flows) reuse(dst []codec.CID, n, contexts int, now time.Duration) []codec.CID {
	for range n {
		full := contexts >= t.limit
		old := t.idle()
		for full && old == nil {
			old = t.idle() // a frame has no more flows than there are contexts
		}
		if old == nil || !full && now-old.used < t.maxIdle {
			dst = append(dst, codec.CID{})
			contexts++
			continue
		}
		cid, _ := old.CID()
		dst = append(dst, cid)
		t.drop(old)
	}
	return dst
}

// idle returns, of a few flows looked at in turn, the one that was used longest ago
// and can give way; nil if none of them can. A list in order of use would find the
// very oldest, and cost each packet two more flows to touch.
func (t *flows) idle() (oldest *flow) {
	for range min(sampled, len(t.all)) {
		t.hand = (t.hand + 1) % len(t.all)
		f := t.all[t.hand]
		_, announced := f.CID()
		if announced && f.frame != t.frame && (oldest == nil || f.used < oldest.used) {
			oldest = f
		}
	}
	return oldest
}

// sampled is how many flows idle looks at: of 16 at random the oldest is, on average,
// among the oldest six in a hundred.
const sampled = 16
