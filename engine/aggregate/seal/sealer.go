package seal

import (
	"encoding/binary"
	"errors"
	"slices"
)

// ErrOpened tells that an opened payload is malformed, or needs keys that were never
// told.
var ErrOpened = errors.New("seal: malformed opened payload")

// position is where a direction of a connection is among its records, as far as both
// ends have to agree on it.
type position struct {
	number uint64 // of the record that comes next, or is passing
	offset uint64 // of its explicit nonce from its number
	head   int    // bytes of it that went before, literally
	inside bool   // it is passing: part has it
}

// told are keys that the peer told.
type told struct {
	keys  *Keys
	stage stage
}

// A Sealer makes the records of one direction of a connection anew, from its opened
// payloads in the order in which they were opened. The zero value has no keys.
type Sealer struct {
	position
	told  []told // by the number under which the peer told them
	keys  *Keys  // nil where there are none
	stage stage  // of keys
	part  part
	once  bool // what is sealed was sealed before

	messages transcript // of the handshake, as far as the peer refers to it
	client   []byte     // the ClientHello that the peer marked, owned; nil for none
	room     *room      // of its Table
}

// Clear forgets all that belongs to the connection.
func (s *Sealer) Clear() {
	s.unkey()
	*s = Sealer{room: s.room}
}

// unkey forgets the keys and what is kept of a record.
func (s *Sealer) unkey() {
	for i := range s.told {
		s.told[i].keys.Clear()
	}
	s.keys.Clear()
	p := s.part.inner[:cap(s.part.inner)]
	clear(p)
	s.position, s.told, s.keys, s.stage, s.part = position{}, nil, nil, 0, part{}
}

// Seal appends the payload that an opened payload stands for to dst. The error matches
// ErrOpened; the Sealer is not to be used again then.
func (s *Sealer) Seal(dst, opened []byte) ([]byte, error) {
	r := reader{b: opened}
	from := len(dst)
	marked := false
	var before position
	for len(r.b) > 0 {
		m := r.byte()
		switch kind := m & itemKind; {
		case kind == itemNumber:
			if m&flagOnce != 0 && !s.once {
				before, s.once = s.position, true
			}
			r.check(m&^(itemKind|flagOnce) == 0)
			s.seek(&r)
		case kind >= changeCipherSpec && kind <= heartbeat:
			dst = s.whole(dst, &r, m)
		case kind == itemPlain:
			dst = append(dst, r.rest(m)...)
		case kind == itemHead && m == itemHead:
			s.head = len(r.b)
			r.bad = s.head >= HeadLen || s.inside
			dst = append(dst, r.b...)
			r.b = nil
		case kind == itemBegin:
			dst = s.begin(dst, &r, m)
		case kind == itemMore:
			dst = s.more(dst, &r, m)
		case kind == itemStage && m == itemStage:
			s.take(&r)
		case kind == itemUpdate && m == itemUpdate:
			s.update(&r)
		case m == itemNamed, m == itemDone:
			dst = s.text(dst, &r)
		case m == itemClient:
			marked = true
		case m == itemServer:
			dst = s.answer(dst, &r)
		default:
			r.bad = true
		}
		if r.bad || len(dst)-from > maxPayload {
			return nil, ErrOpened
		}
	}
	if s.once {
		s.position, s.once = before, false
	}
	if marked && !s.mark(dst[from:]) {
		return nil, ErrOpened
	}
	return dst, nil
}

// readName reads the name of a text.
func readName(r *reader) (name textName) {
	copy(name[:], r.bytes(len(name)))
	return name
}

// text appends a text that this end sent, or foretold.
func (s *Sealer) text(dst []byte, r *reader) []byte {
	t := s.room.texts.sent[readName(r)]
	if t == nil {
		r.bad = true
		return dst
	}
	return append(dst, t.bytes...)
}

// learn takes in what a sealed record had.
func (s *Sealer) learn(kind byte, content []byte) {
	if kind == handshake && s.stage == stageTraffic && s.keys.suite.tls13 {
		ticketsIn(content, s.room.texts.receive)
	}
}

// maxPayload bounds what is sealed of one opened payload, in bytes: an IP packet is not
// longer (RFC 791 section 3.1), and padding is two bytes that stand for 16 kB.
const maxPayload = 1<<16 - 1

// seek reads the number of the record that comes next.
func (s *Sealer) seek(r *reader) {
	s.number = r.uvarint()
	s.head = int(r.byte())
	s.inside = false
	r.check(s.head < HeadLen)
}

// take takes keys that were told.
func (s *Sealer) take(r *reader) {
	i := int(r.byte())
	if i >= len(s.told) {
		r.bad = true
		return
	}
	s.keys, s.stage = s.told[i].keys, s.told[i].stage
	s.number, s.offset, s.inside = 0, 0, false
}

// update takes the keys behind those in use.
func (s *Sealer) update(r *reader) {
	if s.keys == nil {
		r.bad = true
		return
	}
	next, err := s.keys.Next()
	if err != nil {
		r.bad = true
		return
	}
	if !slices.ContainsFunc(s.told, func(t told) bool { return t.keys == s.keys }) {
		s.keys.Clear() // of an update before, which nobody comes back to
	}
	s.keys, s.number = next, 0
}

// whole seals a record that is in the segment to its end.
func (s *Sealer) whole(dst []byte, r *reader, m byte) []byte {
	if s.keys == nil || s.inside {
		r.bad = true
		return dst
	}
	verify := s.keys.suite.tls13 && m&(itemKind|flagVerify) == handshake|flagVerify
	if verify {
		m &^= flagVerify
	}
	padding, sized := 0, -1
	if m&flagSized != 0 {
		sized = r.uint16()
	}
	if m&flagPadded != 0 {
		padding = r.uint16()
		r.check(s.keys.suite.tls13)
	}
	nonce := s.explicit(r, m)
	content := r.b
	if sized >= 0 {
		content = r.bytes(sized)
	} else {
		r.b = nil
	}
	kind := m & itemKind
	if content = s.follow(r, kind, content, verify); !s.once {
		s.learn(kind, content)
	}
	inner := content
	if s.keys.suite.tls13 {
		s.room.inner = appendInner(s.room.inner[:0], content, kind, padding)
		inner, kind = s.room.inner, applicationData
	}
	if r.check(len(inner) <= maxInner); r.bad {
		return dst
	}
	from := len(dst)
	dst = s.keys.Seal(dst, recordHead(kind), &nonce, inner, s.number)
	dst = s.drop(dst, from)
	s.number++
	return dst
}

// appendInner appends what a record of TLS 1.3 holds (RFC 8446 section 5.2).
func appendInner(dst, content []byte, kind byte, padding int) []byte {
	dst = append(dst, content...)
	dst = append(dst, kind)
	n := len(dst)
	dst = slices.Grow(dst, padding)[:n+padding]
	clear(dst[n:])
	return dst
}

// drop takes off what went before of the record that begins at an offset of dst.
func (s *Sealer) drop(dst []byte, from int) []byte {
	n := copy(dst[from:], dst[from+s.head:])
	s.head = 0
	return dst[:from+n]
}

// explicit returns the explicit nonce of the next record, as it is given or as it is
// expected: most implementations count.
func (s *Sealer) explicit(r *reader, m byte) (nonce [explicitLen]byte) {
	if s.keys == nil || s.keys.NonceLen() == 0 {
		r.check(m&flagNonce == 0)
		return nonce
	}
	if m&flagNonce != 0 {
		copy(nonce[:], r.bytes(explicitLen))
		s.offset = binary.BigEndian.Uint64(nonce[:]) - s.number
	} else {
		binary.BigEndian.PutUint64(nonce[:], s.number+s.offset)
	}
	return nonce
}

// begin seals the beginning of a record that goes on in the next segment.
func (s *Sealer) begin(dst []byte, r *reader, m byte) []byte {
	kind := r.byte()
	n := r.uint16()
	nonce := s.explicit(r, m)
	if r.check(s.keys != nil && !s.inside && n <= maxInner); r.bad {
		return dst
	}
	s.part.begin(recordHead(kind), nonce, n)
	s.messages.stop()
	s.inside = true
	from := len(dst)
	dst = append(dst, s.part.head[:]...)
	dst = binary.BigEndian.AppendUint16(dst, uint16(s.keys.Overhead()-HeadLen+n))
	dst = append(dst, nonce[:s.keys.NonceLen()]...)
	return s.piece(s.drop(dst, from), r, m)
}

// more seals the next bytes of a record.
func (s *Sealer) more(dst []byte, r *reader, m byte) []byte {
	if r.check(s.inside && m&flagNonce == 0); r.bad {
		return dst
	}
	return s.piece(dst, r, m)
}

// piece seals bytes of the record that is passing, and its tag as far as it is in the
// segment.
func (s *Sealer) piece(dst []byte, r *reader, m byte) []byte {
	p := &s.part
	tagged := TagLen
	if m&flagCut != 0 {
		tagged = int(r.byte())
	}
	var wrong []byte
	if r.check(tagged >= p.tagged && tagged <= TagLen); !r.bad && m&flagWrong != 0 {
		wrong = r.bytes(tagged - p.tagged)
	}
	if r.bad {
		return dst
	}
	b := r.bytes(min(p.length-len(p.inner), len(r.b)))
	at := len(p.inner)
	p.inner = append(p.inner, b...)
	dst = append(dst, b...)
	s.keys.XOR(dst[len(dst)-len(b):], b, s.number, &p.nonce, at)
	p.finish(s.keys, s.number, at, s.room)
	if len(p.inner) < p.length {
		r.check(m&(flagCut|flagWrong) == 0)
		return dst
	}
	if wrong != nil {
		dst = append(dst, wrong...)
	} else {
		dst = append(dst, p.tag[p.tagged:tagged]...)
	}
	p.wrong = p.wrong || wrong != nil
	if p.tagged = tagged; tagged == TagLen {
		if s.keys.suite.tls13 && !p.wrong {
			s.learn(content(p.inner))
		}
		s.inside = false
		s.number++
	}
	return dst
}

// A reader takes an opened payload apart. What is missing makes it bad; it then returns
// zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) check(ok bool) { r.bad = r.bad || !ok }

// bytes returns the next n bytes, borrowed.
func (r *reader) bytes(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() int {
	if b := r.bytes(2); b != nil {
		return int(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return v
}

// rest returns the bytes of a plain item.
func (r *reader) rest(m byte) []byte {
	n := len(r.b)
	if m&flagSized != 0 {
		n = r.uint16()
	}
	r.check(m&^(flagSized|itemKind) == 0)
	return r.bytes(n)
}
