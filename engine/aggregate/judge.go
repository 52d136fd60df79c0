package aggregate

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"sheaf/engine/aggregate/model"
	"sheaf/parsers"
)

// A slotSource is what only the writing end knows of a slot.
type slotSource struct {
	slot  uint32
	key   uint64
	alike [3]uint64
	event *EventStats
	name  uint8
	proto parsers.ProtocolID
}

// expect returns how many members the known set of a group has.
func (w *writer) expect(g *group) int {
	if len(g.spans) == 0 {
		return len(w.acks.set)
	}
	if g.spans[0].protocol == parsers.Opaque || g.spans[0].sealed {
		return 0
	}
	i, ok := w.slotOf[w.slotKey(&g.spans[0])]
	if !ok {
		return 0
	}
	return len(w.slots.table[i].set)
}

// slotKey returns the key of the slot that a span belongs to, by the criteria
// that are on.
func (w *writer) slotKey(s *span) uint64 {
	by := w.cfg.Similarity
	if by&ByEvent != 0 {
		// the parts of a message that straddles segments are each alike
		return s.key + uint64(s.at)*0x9e3779b97f4a7c15
	}
	var a, b uint64
	if by&ByName != 0 {
		a = 1 + uint64(s.protocol)<<8 + uint64(s.name)<<16 + uint64(min(s.at, 1))<<32
	}
	if by&ByLength != 0 {
		b = 1 + uint64(len(s.body))
	}
	if a == 0 && b == 0 {
		return s.key
	}
	return lengthKey(2, a, b)
}

// place finds the slot of a span; where there is none yet, a template for it.
func (w *writer) place(s *span) (slot uint32, known bool, template uint32) {
	if s.sealed { // one slot for all of a kind: what it remembers is good for copies only
		s.key = lengthKey(8, uint64(s.protocol)<<8|uint64(s.name), uint64(min(s.at, 1)))
		w.stats.NoHits++
		slot, known = w.slotOf[s.key]
		return slot, known, 0
	}
	s.noise = model.Noise(s.body[min(s.split, len(s.body)):])
	near := uint32(0)
	named := s.protocol != parsers.Opaque && w.cfg.Similarity&(ByEvent|ByName|ByLength) != 0
	if named {
		s.key = w.slotKey(s)
	} else {
		s.key, near = w.judge(s)
	}
	if i, ok := w.slotOf[s.key]; ok {
		if named { // the judge has counted its own
			w.stats.Hits[w.cfg.Similarity.slotHit()]++
		}
		return i, true, 0
	}
	if near != 0 {
		w.stats.Hits[HitContent]++
		return 0, false, near
	}
	for k, key := range w.alike(s) {
		if i, ok := w.slotAlike[key]; ok && key != 0 && w.slots.holds(i) {
			w.stats.Hits[HitNameLength+Hit(k)]++
			return 0, false, i + 1
		}
	}
	w.stats.NoHits++
	return 0, false, 0
}

// alike returns the keys under which a template may be found for a span that
// has no slot: of the same name and length, of the same name, of the same
// length.
func (w *writer) alike(s *span) (keys [3]uint64) {
	if s.sealed || s.noise && s.protocol == parsers.Opaque {
		return keys
	}
	by := w.cfg.Similarity
	name := 1 + uint64(s.protocol)<<8 + uint64(s.name)<<16 + uint64(min(s.at, 1))<<32
	if by&(ByName|ByLength) == ByName|ByLength {
		keys[1] = lengthKey(3, name, uint64(len(s.body)))
	}
	if by&ByName != 0 {
		keys[0] = lengthKey(4, name, 0)
	}
	if by&ByLength != 0 {
		keys[2] = lengthKey(5, 0, uint64(len(s.body)))
	}
	keys[0], keys[1] = keys[1], keys[0]
	return keys
}

// judge returns the key of the slot for bytes about which nothing is known, and
// of what slot the newest body is a template for it where it is new, plus one.
//
// Two slots are asked. What begins alike and is of one service shares a slot: a
// message that goes to many flows is there from the first copy on, also where the
// others have a number of their own in it. What a flow sends by itself, as a sensor
// does, has a slot of the flow's: what it sent before is nearer than what others
// send. The flow's has to be nearer by more than such numbers would make it, or
// the copies of a message would each be compared with an older one.
func (w *writer) judge(s *span) (key uint64, template uint32) {
	if w.current.kind == kindRaw {
		return s.key, 0
	}
	f := w.current.members[0].flow
	if w.cfg.Similarity&ByContent == 0 {
		return lengthKey(6, uint64(f.cid), 0), 0
	}
	head := uint64(0)
	for _, b := range s.body[:min(4, len(s.body))] {
		head = head<<8 | uint64(b)
	}
	ports := uint64(min(f.key.SrcPort, f.key.DstPort))
	key = lengthKey(7, ports<<8|uint64(f.key.Proto), head)
	shared, ok := w.slotOf[key]
	if s.noise && len(w.current.members) == 1 {
		return w.judgeNoise(s, key), 0
	}
	if !ok {
		return key, 0
	}
	common := &w.slots.table[shared]
	near := likeness(common.body(0), s.body)
	margin := 4 + len(s.body)/16
	if len(w.current.members) > 1 || near+margin >= len(s.body) || common.find(s.body) >= 0 {
		w.stats.Hits[HitContent]++
		return key, 0
	}
	own := lengthKey(6, uint64(f.cid), uint64(s.body[0])<<8|uint64(bits.Len(uint(len(s.body)))))
	mine, ok := w.slotOf[own]
	if !ok {
		if near < len(s.body)/4 {
			return own, 0
		}
		return own, shared + 1
	}
	if likeness(w.slots.table[mine].body(0), s.body) > near+margin {
		key = own
	}
	w.stats.Hits[HitContent]++
	return key, 0
}

// judgeNoise is judge for random bytes of a single flow, which begin like others
// by chance only. They have a slot of the flow's, where nothing but their copies
// is alike; those that begin as others did, and may be copies with a number of
// their own, share one of that beginning's.
func (w *writer) judgeNoise(s *span, key uint64) uint64 {
	own := lengthKey(9, uint64(w.current.members[0].flow.cid), 0)
	mine, mineKnown := w.slotOf[own]
	common, known := w.slotOf[key]
	if known {
		if t := &w.slots.table[common]; similar(t.body(0), s.body) || t.find(s.body) >= 0 {
			w.stats.Hits[HitContent]++
			return key
		}
	}
	seen := known
	if !known {
		at := &w.heads[key%uint64(len(w.heads))]
		seen, *at = *at == key, key
	}
	if mineKnown && similar(w.slots.table[mine].body(0), s.body) {
		w.stats.Hits[HitContent]++
		return own
	}
	if !seen || !mineKnown {
		return own
	}
	return key
}

// likeness returns how many bytes of b are where a has the same, counted from the
// front up to some place and from the end behind it: what is left are the fields
// that differ, and one of them may have another length. Of long bodies the ends
// stand for all.
func likeness(a, b []byte) int {
	const most = 512 // at either end
	n := min(len(a), len(b))
	if n == 0 {
		return 0
	}
	if n > 2*most {
		return (likeness(a[:most], b[:most]) + likeness(a[len(a)-most:], b[len(b)-most:])) * (len(b) / most) / 2
	}
	a0, b0 := a[len(a)-n:], b[len(b)-n:]
	behind := 0
	for i := range n {
		if a0[i] == b0[i] {
			behind++
		}
	}
	front, best := 0, behind
	for i := range n {
		if a0[i] == b0[i] {
			behind--
		}
		if a[i] == b[i] {
			front++
		}
		best = max(best, front+behind)
	}
	return best
}

// similar tells whether two bodies share a good part of their bytes, at first sight.
func similar(a, b []byte) bool {
	n := min(len(a), len(b))
	if n == 0 {
		return false
	}
	front := 0
	for front < n && a[front] == b[front] {
		front++
	}
	back := 0
	for back < n-front && a[len(a)-1-back] == b[len(b)-1-back] {
		back++
	}
	if front+back >= max(len(a), len(b))/4 {
		return true
	}
	if len(a) != len(b) {
		return false
	}
	step := max(1, n/64)
	same, seen := 0, 0
	for i := 0; i < n; i += step {
		seen++
		if a[i] == b[i] {
			same++
		}
	}
	return 2*same >= seen
}

// settle notes a span's new slot.
func (w *writer) settle(s *span) {
	sl := &w.slots.table[s.slot]
	sl.source = slotSource{slot: s.slot, key: s.key, alike: w.alike(s), proto: s.protocol, name: s.name}
	w.slotOf[s.key] = s.slot
	for _, k := range sl.source.alike {
		if k != 0 {
			w.slotAlike[k] = s.slot
		}
	}
	sl.source.event = w.stats.event(s, s.message)
}

// bulky tells whether a body is better left to the literals. Where it is not, the
// plan is made.
func (w *writer) bulky(template []byte, s *span) bool {
	body := s.body
	if w.cfg.Similarity&ByNothing != 0 || s.sealed {
		return true
	}
	// an edit would save the little that is before the noise, and take longer
	if s.noise && len(body) > model.MaxLiterals && s.split <= len(body)/8 && !similar(template, body) {
		return true
	}
	if f := w.lone(); f != nil && f.dull >= dullAfter && !similar(template, body) {
		if f.dull++; f.dull <= dullAfter+dullFor {
			return true
		}
		f.dull = dullAfter - 1 // one more chance
	}
	if w.effort <= maxEffort && (len(body) <= model.MaxLiterals && len(template) == 0 || len(body) <= 128) {
		w.effort += w.plan.Make(template, body, len(body))
		return false
	}
	if len(template) == 0 || (s.protocol == parsers.Opaque || len(body) > 4*model.MaxLiterals) && !similar(template, body) || w.effort > maxEffort {
		return true
	}
	n := w.plan.Make(template, body, model.MaxLiterals)
	if n > model.MaxLiterals || n > 64 && n > len(body)*3/4 {
		return true
	}
	w.effort += n
	return false
}

// A flow is dull when so many of its bodies in a row were longer as edits than they
// are, as masked ones are. So many of the next are left to the literals before
// another is tried.
const (
	dullAfter = 3
	dullFor   = 15
)

// edited notes that an edit took some bytes for a body.
func (w *writer) edited(took int, body []byte) {
	f := w.lone()
	switch {
	case f == nil:
	case took <= len(body):
		f.dull = 0
	default:
		f.dull++
	}
}

// lone returns the flow of the current group where that is a single segment's.
func (w *writer) lone() *flow {
	if len(w.current.members) != 1 {
		return nil
	}
	return w.current.members[0].flow
}

// maxEffort bounds the literal bytes of a frame that the Text model takes: it
// is good at few bytes, and a hundred times slower than zstd, which is left the
// rest.
const maxEffort = 4 << 10

// lengthKey mixes what spans are compared by into one number.
func lengthKey(a, b, c uint64) uint64 {
	var buf [24]byte
	binary.LittleEndian.PutUint64(buf[:], a)
	binary.LittleEndian.PutUint64(buf[8:], b)
	binary.LittleEndian.PutUint64(buf[16:], c)
	return xxhash.Sum64(buf[:])
}
