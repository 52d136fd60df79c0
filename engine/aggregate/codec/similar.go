package codec

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"

	"sheaf/engine/aggregate/model"
	"sheaf/parsers"
)

// Similarity is the set of criteria by which messages are judged to be alike.
type Similarity uint8

const (
	// ByEvent compares messages of the same name and event.
	ByEvent Similarity = 1 << iota
	// ByName compares messages of the same name.
	ByName
	// ByLength compares messages of the same length.
	ByLength
	// ByContent compares messages by their bytes.
	ByContent
	// ByNothing compares nothing: bodies that are no copies are literals.
	ByNothing

	// ByAll is the default.
	ByAll = ByEvent | ByName | ByLength | ByContent
)

// hit is the criterion by which spans share a template.
func (by Similarity) hit() Hit {
	switch {
	case by&ByEvent != 0:
		return HitEvent
	case by&(ByName|ByLength) == ByName|ByLength:
		return HitNameLength
	case by&ByName != 0:
		return HitName
	}
	return HitLength
}

// templateNotes are what the Encoder knows of a template.
type templateNotes struct {
	key   uint64
	alike [3]uint64
}

// Which bodies are alike is judged before anything of them is coded. A span belongs to
// the template of its key: of its protocol, name and event, as the criteria say, such as
// all PUBLISH of one topic. Where there is none yet, the first body is compared with the
// newest of its name and length, of its name, or of its length. Bytes of which no
// protocol knows anything are compared with what begins like them.

// Expected returns how many flows got the last messages like those of a group that is
// still being filled: as many are expected in it. It is 0 where nothing is known.
func (e *Encoder) Expected(g *Group) int {
	if len(g.Spans) == 0 {
		return len(e.ackSet)
	}
	s := &g.Spans[0]
	if s.Protocol == parsers.Opaque || s.Encrypted {
		return 0
	}
	n := e.templateOf(e.key(s))
	if n.none() {
		return 0
	}
	return len(e.templates.at(n).set)
}

// templateOf returns the template that spans of a key belong to.
func (e *Encoder) templateOf(key uint64) templateNumber { return e.inUse(e.byKey[key]) }

// templateLike returns the newest template of a key of alike.
func (e *Encoder) templateLike(key uint64) templateNumber { return e.inUse(e.alike[key]) }

// inUse returns the number of a template, none where it gave way and nothing has taken
// its place. What does so drops the keys under which the one before was found.
func (e *Encoder) inUse(n templateNumber) templateNumber {
	if !e.templates.holds(n) {
		return templateNumber{}
	}
	return n
}

// noteTemplate notes by what a span's new template is to be found.
func (e *Encoder) noteTemplate(s *Span) {
	s.Template = s.template.place()
	if s.known {
		return
	}
	n := s.template
	for int(n.place()) >= len(e.notes) {
		e.notes = append(e.notes, templateNotes{})
	}
	t := &e.notes[n.place()]
	if e.byKey[t.key] == n {
		delete(e.byKey, t.key)
	}
	for _, k := range t.alike {
		if e.alike[k] == n {
			delete(e.alike, k)
		}
	}
	*t = templateNotes{key: s.key, alike: e.alikeKeys(s)}
	e.byKey[s.key] = n
	for _, k := range t.alike {
		if k != 0 {
			e.alike[k] = n
		}
	}
}

// key returns the key of the template that a span belongs to, by the criteria that are
// on.
func (e *Encoder) key(s *Span) uint64 {
	by := e.similarity
	if by&ByEvent != 0 {
		// the parts of a message that straddles segments are each alike
		return s.Key + uint64(s.At)*0x9e3779b97f4a7c15
	}
	var a, b uint64
	if by&ByName != 0 {
		a = s.nameKey()
	}
	if by&ByLength != 0 {
		b = 1 + uint64(len(s.Body))
	}
	if a == 0 && b == 0 {
		return s.Key
	}
	return mix(2, a, b)
}

// nameKey tells spans apart by the name of their message, and whether they begin it.
func (s *Span) nameKey() uint64 {
	return 1 + uint64(s.Protocol)<<8 + uint64(s.Name)<<16 + uint64(min(s.At, 1))<<32
}

// chooseTemplate finds the template of a span; where there is none yet, the base for a
// new one: that of the same name and length, or of the same name, or of the same length.
func (e *Encoder) chooseTemplate(g *Group, s *Span) {
	s.known, s.template, s.base, s.Hit = false, templateNumber{}, templateNumber{}, NoHit
	if s.Encrypted { // one template for all of a kind: what it remembers is good for copies only
		s.key = mix(8, uint64(s.Protocol)<<8|uint64(s.Name), uint64(min(s.At, 1)))
		s.template = e.templateOf(s.key)
		s.known = !s.template.none()
		return
	}
	s.noise = model.Noise(s.Body[min(s.Split, len(s.Body)):])
	if s.Protocol != parsers.Opaque && e.similarity&(ByEvent|ByName|ByLength) != 0 {
		s.key = e.key(s)
		if s.template = e.templateOf(s.key); !s.template.none() {
			s.known, s.Hit = true, e.similarity.hit()
			return
		}
	} else {
		e.matchContent(g, s)
		if s.template = e.templateOf(s.key); !s.template.none() {
			s.known = true
			if s.Hit == NoHit {
				s.Hit = Unasked
			}
			return
		}
		if !s.base.none() {
			s.Hit = HitContent
			return
		}
	}
	for k, key := range e.alikeKeys(s) {
		if n := e.templateLike(key); !n.none() {
			s.base, s.Hit = n, HitNameLength+Hit(k)
			return
		}
	}
}

// alikeKeys returns the keys under which a base may be found for a span that has no
// template: of the same name and length, of the same name, of the same length.
func (e *Encoder) alikeKeys(s *Span) (keys [3]uint64) {
	if s.Encrypted || s.noise && s.Protocol == parsers.Opaque {
		return keys
	}
	by := e.similarity
	if by&(ByName|ByLength) == ByName|ByLength {
		keys[0] = mix(3, s.nameKey(), uint64(len(s.Body)))
	}
	if by&ByName != 0 {
		keys[1] = mix(4, s.nameKey(), 0)
	}
	if by&ByLength != 0 {
		keys[2] = mix(5, 0, uint64(len(s.Body)))
	}
	return keys
}

// matchContent sets the key of the template for bytes about which nothing is known, and
// the base for it where it is new.
//
// Two templates are asked. What begins alike and is of one service shares one: a
// message that goes to many flows is there from the first copy on, also where the
// others have a number of their own in it. What a flow sends by itself, as a sensor
// does, has a template of the flow's: what it sent before is nearer than what others
// send. The flow's has to be nearer by more than such numbers would make it, or
// the copies of a message would each be compared with an older one.
func (e *Encoder) matchContent(g *Group, s *Span) {
	if g.Kind == Verbatim {
		s.key = s.Key // its length
		return
	}
	f := g.Members[0].Flow
	own := uint64(0) // the flow's number; 0 while it has none
	if !f.cid.none() {
		own = uint64(f.cid.place())
	}
	if e.similarity&ByContent == 0 {
		s.key = mix(6, own, 0)
		return
	}
	head := uint64(0)
	for _, b := range s.Body[:min(4, len(s.Body))] {
		head = head<<8 | uint64(b)
	}
	ports := uint64(min(f.Key.SrcPort, f.Key.DstPort))
	s.key = mix(7, ports<<8|uint64(f.Key.Proto), head)
	if s.noise && len(g.Members) == 1 {
		e.matchNoise(s, own)
		return
	}
	shared := e.templateOf(s.key)
	if shared.none() {
		return
	}
	common := e.templates.at(shared)
	near := likeness(common.body(0), s.Body)
	margin := 4 + len(s.Body)/16
	if len(g.Members) > 1 || near+margin >= len(s.Body) || common.find(s.Body) >= 0 {
		s.Hit = HitContent
		return
	}
	key := mix(6, own, uint64(s.Body[0])<<8|uint64(bits.Len(uint(len(s.Body)))))
	mine := e.templateOf(key)
	if mine.none() {
		s.key = key
		if near >= len(s.Body)/4 {
			s.base = shared
		}
		return
	}
	if likeness(e.templates.at(mine).body(0), s.Body) > near+margin {
		s.key = key
	}
	s.Hit = HitContent
}

// matchNoise is matchContent for random bytes of a single flow, which begin like others
// by chance only. They have a template of the flow's, where nothing but their copies
// is alike; those that begin as others did, and may be copies with a number of
// their own, share one of that beginning's, whose key the span has.
func (e *Encoder) matchNoise(s *Span, flow uint64) {
	own := mix(9, flow, 0)
	mine, common := e.templateOf(own), e.templateOf(s.key)
	if !common.none() {
		if t := e.templates.at(common); similar(t.body(0), s.Body) || t.find(s.Body) >= 0 {
			s.Hit = HitContent
			return
		}
	}
	seen := !common.none()
	if !seen {
		at := &e.heads[s.key%uint64(len(e.heads))]
		seen, *at = *at == s.key, s.key
	}
	if !mine.none() && similar(e.templates.at(mine).body(0), s.Body) {
		s.Hit = HitContent
		s.key = own
	} else if !seen || mine.none() {
		s.key = own
	}
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

// mix mixes what spans are compared by into one number. The first tells apart the
// purposes of such numbers.
func mix(purpose, a, b uint64) uint64 {
	var buf [24]byte
	binary.LittleEndian.PutUint64(buf[:], purpose)
	binary.LittleEndian.PutUint64(buf[8:], a)
	binary.LittleEndian.PutUint64(buf[16:], b)
	return xxhash.Sum64(buf[:])
}
