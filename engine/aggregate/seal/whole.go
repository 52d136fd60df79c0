package seal

import (
	"bytes"
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"
)

// record opens a record that p has to its end, but for what was there before.
func (o *Opener) record(w *writer, seq seqnum.Value, p []byte, had int) int {
	n := o.rest
	record := p[:n]
	if had > 0 {
		o.room.record = append(append(o.room.record[:0], o.head[:had]...), record...)
		record = o.room.record
	}
	inner, ok := o.keys.open(o, record)
	if !ok {
		o.keys.miss()
	}
	if !ok || !o.tellable() {
		return o.plain(w, p, had == 0)
	}
	o.rest, o.lost = 0, false
	o.ring.add(seq.Add(-seqnum.Size(had)), o.keys.number)
	o.prepare(w, o.keys.number, had)
	o.write(w, record, inner, n == len(p), o.follow(inner))
	o.keys.number++
	o.far.number, o.far.head = o.keys.number, 0
	o.learn(record[0], inner)
	return n
}

// prepare has the Sealer be where a record begins: with the keys in use, at a number,
// and with so much of the record having gone before.
func (o *Opener) prepare(w *writer, number uint64, head int) {
	o.opened = true
	f := &o.far
	if k := o.keys.current; f.keys != k {
		if o.keys.before != nil && o.keys.before == f.keys {
			w.item(itemUpdate)
			f.number = 0
		} else {
			o.tell(k)
			w.item(itemStage)
			w.b = append(w.b, byte(f.next))
			f.next++
			f.number, f.offset, f.inside = 0, 0, false
		}
		f.keys = k
	}
	if f.number != number || f.head != head || f.inside {
		w.item(itemNumber)
		w.number(number, head)
		f.number, f.head, f.inside = number, head, false
	}
}

// tellable says whether the Sealer has the keys in use, or may be told them: with several
// connections in one segment there is no room for all of theirs.
func (o *Opener) tellable() bool {
	k, f := &o.keys, &o.far
	return f.keys == k.current || f.keys == k.before && k.before != nil || f.next < maxTold
}

// write writes a whole record, without the last bytes of its content that the Sealer knows.
func (o *Opener) write(w *writer, record, inner []byte, last bool, known int) {
	kind, b, padding := record[0], inner, 0
	if o.keys.current.suite.tls13 {
		kind, b = content(inner)
		padding = len(inner) - len(b) - 1
	}
	m := kind
	if padding > 0 {
		m |= flagPadded
	}
	if known > 0 {
		b = b[:len(b)-known]
		m |= flagVerify
	}
	nonce := o.unexpected(record)
	if nonce != nil {
		m |= flagNonce
	}
	w.sized(m, len(b), last)
	if padding > 0 {
		w.uint16(padding)
	}
	w.b = append(w.b, nonce...)
	w.bytes(b, Piece{Type: kind, Start: true, Cut: known > 0})
}

// unexpected returns the explicit nonce of the record that begins b where the Sealer
// would take another one, and notes that it is given.
func (o *Opener) unexpected(b []byte) []byte {
	if o.keys.current.NonceLen() == 0 {
		return nil
	}
	nonce := b[HeadLen : HeadLen+explicitLen]
	offset := binary.BigEndian.Uint64(nonce) - o.far.number
	if offset == o.far.offset {
		return nil
	}
	o.far.offset = offset
	return nonce
}

// learn takes in what an opened record says about the keys of those behind it.
func (o *Opener) learn(kind byte, inner []byte) {
	if o.keys.current.suite.tls13 {
		kind, inner = content(inner)
	}
	o.conn.count(len(inner))
	if kind != handshake {
		return
	}
	if o.keys.stage == stageTraffic && o.keys.current.suite.tls13 {
		ticketsIn(inner, func(ticket []byte) { o.room.texts.send(ticket) })
	}
	o.keys.handshake(o, inner)
}

// content returns the type and the content of what a record of TLS 1.3 holds, where
// there is a type.
func content(inner []byte) (kind byte, b []byte) {
	b = bytes.TrimRight(inner, "\x00")
	if len(b) == 0 {
		return 0, nil
	}
	return b[len(b)-1], b[:len(b)-1]
}
