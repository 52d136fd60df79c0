package aggregate

import "bytes"

const (
	// slotDepth is how many bodies a slot remembers: copies of one message can
	// be a round trip apart.
	slotDepth = 4
	// maxBody bounds a remembered body; longer ones are sent and forgotten.
	maxBody = 1 << 14

	// setMinimum is how many members make a group worth learning.
	setMinimum = 3
	// setMisses is how many absences in a row drop a member from a set.
	setMisses = 12
	// setLimit bounds a set, and what is listed of those that owe; so does the
	// number of packets in a frame.
	setLimit = 1 << 13
)

// A slot remembers comparable spans: the newest bodies, which are templates for
// the next ones, and the flows that get them.
type slot struct {
	bodies [slotDepth][]byte // without their holes
	count  int
	newest int
	exact  bool   // its last span was one of them again
	holes  []hole // of the newest body
	set    []setMember
	next   uint32 // slot of the span that followed in the same flow, plus one
	follow uint32 // slot of the group of several that followed, plus one
	clock  uint32 // when the newest body was coded
	older  uint32 // neighbours in order of use, plus one
	newer  uint32
	used   bool
	source slotSource // writing only
}

// A setMember is a flow that gets a slot's messages.
type setMember struct {
	cid    uint32
	misses uint8 // groups in a row that it was not in
}

// body returns the k-th newest body.
func (s *slot) body(k int) []byte { return s.bodies[(s.newest+slotDepth-k)%slotDepth] }

// find returns which of the newest bodies is the same, -1 when none is.
func (s *slot) find(body []byte) int {
	for k := range s.count {
		if bytes.Equal(s.body(k), body) {
			return k
		}
	}
	return -1
}

// slots is the table of slots, in order of use. It is bounded in number and in
// bytes; what was used longest ago gives way.
type slots struct {
	table          []slot
	bytes          int
	oldest, newest uint32 // plus one
	free           []uint32
	dropped        func(*slot) // writing only
}

// take returns the index of an unused slot, which it makes by dropping the
// oldest when there are max already.
func (t *slots) take(max int) uint32 {
	if n := len(t.free); n > 0 {
		i := t.free[n-1]
		t.free = t.free[:n-1]
		t.link(i)
		return i
	}
	if len(t.table) >= max {
		t.drop(t.oldest - 1)
		return t.take(max)
	}
	t.table = append(t.table, slot{})
	i := uint32(len(t.table) - 1)
	t.link(i)
	return i
}

// holds tells whether i is the index of a slot in use.
func (t *slots) holds(i uint32) bool { return int(i) < len(t.table) && t.table[i].used }

func (t *slots) link(i uint32) {
	s := &t.table[i]
	s.used = true
	s.older, s.newer = t.newest, 0
	if t.newest != 0 {
		t.table[t.newest-1].newer = i + 1
	} else {
		t.oldest = i + 1
	}
	t.newest = i + 1
}

func (t *slots) unlink(i uint32) {
	s := &t.table[i]
	if s.older != 0 {
		t.table[s.older-1].newer = s.newer
	} else {
		t.oldest = s.newer
	}
	if s.newer != 0 {
		t.table[s.newer-1].older = s.older
	} else {
		t.newest = s.older
	}
}

// touch makes i the slot used last.
func (t *slots) touch(i uint32) {
	if t.newest != i+1 {
		t.unlink(i)
		t.link(i)
	}
}

func (t *slots) drop(i uint32) {
	s := &t.table[i]
	if t.dropped != nil {
		t.dropped(s)
	}
	for k := range s.bodies {
		t.bytes -= len(s.bodies[k])
	}
	t.unlink(i)
	*s = slot{set: s.set[:0], holes: s.holes[:0]}
	t.free = append(t.free, i)
}

// remember makes body, which it copies, the newest of slot i, the one used last,
// and keeps the bodies of all other slots together with it below max bytes.
func (t *slots) remember(i uint32, body []byte, clock uint32, max int) {
	s := &t.table[i]
	s.newest = (s.newest + 1) % slotDepth
	s.count = min(s.count+1, slotDepth)
	s.clock = clock
	old := s.bodies[s.newest]
	t.bytes += len(body) - len(old)
	s.bodies[s.newest] = append(old[:0], body...)
	for t.bytes > max && t.oldest != i+1 {
		t.drop(t.oldest - 1)
	}
}
