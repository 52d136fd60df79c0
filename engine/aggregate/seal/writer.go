package seal

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"
)

// A writer makes an opened payload.
type writer struct {
	b      []byte
	last   int // where the last piece ended
	pieces []Piece
	run    int  // where the length of the last item is, if it is plain; else 0
	deaf   bool // nothing is to be opened
}

func (w *writer) item(m byte) {
	w.b = append(w.b, m)
	w.run = 0
}

func (w *writer) uint16(v int) { w.b = binary.BigEndian.AppendUint16(w.b, uint16(v)) }

// sized begins an item that has n bytes, the last ones of the segment or not.
func (w *writer) sized(m byte, n int, last bool) {
	if last {
		w.item(m)
		return
	}
	w.item(m | flagSized)
	w.uint16(n)
}

// plain begins an item of n bytes that are not opened, the last ones of the segment or not.
// Behind another such item it goes on with that: records without a length would make of a
// segment more than a packet holds.
func (w *writer) plain(n int, last bool) {
	if w.run > 0 {
		length := w.b[w.run:]
		binary.BigEndian.PutUint16(length, binary.BigEndian.Uint16(length)+uint16(n))
		return
	}
	w.sized(itemPlain, n, last)
	if !last {
		w.run = len(w.b) - 2
	}
}

// number writes which record comes next, and how much of it went before.
func (w *writer) number(number uint64, head int) {
	w.b = binary.AppendUvarint(w.b, number)
	w.b = append(w.b, byte(head))
}

// bytes ends an item with its bytes.
func (w *writer) bytes(b []byte, p Piece) {
	p.From, p.At = w.last, len(w.b)
	w.b = append(w.b, b...)
	p.To, w.last = len(w.b), len(w.b)
	w.pieces = append(w.pieces, p)
}

// A ring has the last records of a direction that began a segment or followed in one, by
// their sequence numbers, for segments that are sent again.
type ring struct {
	entries []ringEntry
	oldest  int
}

type ringEntry struct {
	seq    seqnum.Value
	number uint64
}

// ringSize is how many records are remembered: two windows of ten segments, with some
// small records in each. It is 512 bytes for a flow that has so many.
const ringSize = 32

func (r *ring) add(seq seqnum.Value, number uint64) {
	if len(r.entries) < ringSize {
		r.entries = append(r.entries, ringEntry{seq, number})
		return
	}
	r.entries[r.oldest] = ringEntry{seq, number}
	r.oldest = (r.oldest + 1) % ringSize
}

func (r *ring) find(seq seqnum.Value) (number uint64, ok bool) {
	for i := range r.entries {
		if r.entries[i].seq == seq {
			return r.entries[i].number, true
		}
	}
	return 0, false
}

// clear forgets all, where the keys change.
func (r *ring) clear() { r.entries, r.oldest = r.entries[:0], 0 }

// A room is scratch, for all connections of a Table.
type room struct {
	inner  []byte // the plaintext of a whole record
	record []byte // one that lay in two segments, or is only made for its tag
	fields []byte // of an item

	texts texts
}

// clear overwrites what was plaintext.
func (r *room) clear() {
	clear(r.inner[:cap(r.inner)])
	clear(r.record[:cap(r.record)])
}

// open opens a record; the plaintext is borrowed until the next call.
func (r *room) open(k *Keys, record []byte, number uint64) ([]byte, bool) {
	if !k.begins(record) {
		return nil, false
	}
	inner, ok := k.Open(r.inner[:0], record, number)
	if !ok {
		return nil, false
	}
	r.inner = inner
	if k.suite.tls13 {
		if kind, _ := content(inner); kind < changeCipherSpec || kind > heartbeat {
			return nil, false // no content type: nobody would take it
		}
	}
	return inner, len(inner) <= maxInner
}

// fits says whether a record that has bytes of its head and then p can be opened before
// its end is there: p is long enough for its nonce, and the Sealer makes such records.
func (k *Keys) fits(head [HeadLen]byte, had int, p []byte) bool {
	size := int(binary.BigEndian.Uint16(head[3:])) - k.NonceLen() - TagLen
	return had+len(p) >= HeadLen+k.NonceLen() && size >= 0 && size <= maxInner && k.begins(head[:])
}

// begins says whether a record begins as those that the Sealer makes. Another type or
// version is protected as well, but nobody writes it.
func (k *Keys) begins(record []byte) bool {
	if k.suite.tls13 && record[0] != applicationData {
		return false
	}
	return [3]byte(record) == recordHead(record[0])
}
