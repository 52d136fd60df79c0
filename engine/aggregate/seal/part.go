package seal

import "encoding/binary"

// A part is a record that straddles segments. Its plaintext is kept for its tag.
type part struct {
	head   [3]byte
	nonce  [explicitLen]byte
	inner  []byte // of the record so far
	length int    // of inner in the end
	tag    [TagLen]byte
	tagged int  // bytes of the tag so far
	wrong  bool // some of them are not the tag's
}

// begin starts a record.
func (p *part) begin(head [3]byte, nonce [explicitLen]byte, length int) {
	p.head, p.nonce, p.inner, p.length, p.tagged, p.wrong = head, nonce, p.inner[:0], length, 0, false
}

// add moves bytes of the record into inner, with the keystream applied to them, and
// returns them; with the last of them the tag is known.
func (p *part) add(k *Keys, number uint64, b []byte, room *room) []byte {
	at := len(p.inner)
	p.inner = append(p.inner, b...)
	k.XOR(p.inner[at:], b, number, &p.nonce, at)
	p.finish(k, number, at, room)
	return p.inner[at:]
}

// finish makes the tag where the plaintext, of which there were at bytes before, is there.
func (p *part) finish(k *Keys, number uint64, at int, room *room) {
	if len(p.inner) == p.length && (at < p.length || at == 0) {
		room.record = k.AppendTag(room.record[:0], p.head, &p.nonce, p.inner, number)
		p.tag = [TagLen]byte(room.record)
	}
}

// beginPart opens the beginning of a record that goes on in the next segment.
func (o *Opener) beginPart(w *writer, b []byte, had int) int {
	k := o.keys.current
	size := int(binary.BigEndian.Uint16(o.head[3:]))
	all := append(append(o.room.record[:0], o.head[:]...), b[HeadLen-had:]...)
	o.room.record = all
	o.prepare(w, o.keys.number, had)
	var nonce [explicitLen]byte
	copy(nonce[:], all[HeadLen:][:k.NonceLen()])
	given := o.unexpected(all)
	o.part.begin([3]byte(o.head[:]), nonce, size-k.NonceLen()-TagLen)
	o.inside, o.far.inside, o.far.head = true, true, 0
	o.messages.stop()

	fields := append(o.room.fields[:0], o.head[0])
	fields = binary.BigEndian.AppendUint16(fields, uint16(o.part.length))
	fields = append(fields, given...)
	o.room.fields = fields
	m := byte(itemBegin)
	if given != nil {
		m |= flagNonce
	}
	o.rest -= HeadLen - had + k.NonceLen()
	return HeadLen - had + k.NonceLen() + o.piece(w, m, b[HeadLen-had+k.NonceLen():])
}

// pass goes over the next bytes of the record that is passing.
func (o *Opener) pass(w *writer, p []byte) int {
	if !o.inside || w.deaf {
		o.inside = false
		return o.plain(w, p, false)
	}
	o.opened = true
	o.room.fields = o.room.fields[:0]
	return o.piece(w, itemMore, p)
}

// piece opens bytes of the record that is passing, and looks at its tag as far as it is in
// the segment.
func (o *Opener) piece(w *writer, m byte, b []byte) int {
	p, k := &o.part, o.keys.current
	n := min(o.rest, len(b))
	o.rest -= n
	text := min(p.length-len(p.inner), n)
	inner := p.add(k, o.keys.number, b[:text], o.room)
	tag := b[text:n]
	wrong := string(tag) != string(p.tag[p.tagged:p.tagged+len(tag)])
	p.tagged += len(tag)
	p.wrong = p.wrong || wrong
	complete := len(p.inner) == p.length
	if complete && p.tagged < TagLen {
		m |= flagCut
	}
	if wrong {
		m |= flagWrong
	}
	w.item(m)
	w.b = append(w.b, o.room.fields...)
	if m&flagCut != 0 {
		w.b = append(w.b, byte(p.tagged))
	}
	if wrong {
		w.b = append(w.b, tag...)
	}
	o.writePiece(w, inner, m&itemKind == itemBegin, complete)
	if p.tagged == TagLen {
		o.endPart()
	}
	return n
}

// writePiece writes plaintext of the record that is passing.
func (o *Opener) writePiece(w *writer, inner []byte, start, complete bool) {
	kind, closing := o.part.head[0], 0
	if complete && o.keys.current.suite.tls13 {
		var b []byte
		kind, b = content(o.part.inner)
		closing = min(len(o.part.inner)-len(b), len(inner))
	}
	n := len(inner) - closing
	w.bytes(inner[:n], Piece{Type: kind, Start: start})
	if closing > 0 {
		w.bytes(inner[n:], Piece{Type: kind, Closing: true})
	}
}

// endPart ends the record that was passing.
func (o *Opener) endPart() {
	o.inside, o.far.inside = false, false
	o.keys.number++
	o.far.number = o.keys.number
	if o.part.wrong {
		o.keys.miss()
		return
	}
	o.keys.prove()
	o.learn(o.part.head[0], o.part.inner)
}
