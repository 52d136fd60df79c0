package seal

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"
)

// A Piece is an item of an opened payload that has bytes of its own: what leads to them
// is from From to At, they are from At to To.
type Piece struct {
	From, At, To int
	Type         byte // content type of what the bytes are of
	Plain        bool // they are as they are in the segment, head of the record included
	Protected    bool // they are plain, and encrypted
	Start        bool // they begin a record
	Cut          bool // they are not all of the message that they end with
	Closing      bool // they are no content: what TLS 1.3 has behind it
}

// An Opener opens the records of one direction of a connection, segment by segment, and
// follows what the Sealer at the far end makes of it. Segments come in the order in which
// they were captured.
type Opener struct {
	// Again says that what was opened last had been there before.
	Again bool
	// Missed says that content went by that was not opened, since somebody set it to
	// false.
	Missed bool

	conn *Conn
	room *room

	// The stream.
	next    seqnum.Value // sequence number of the byte that comes next
	started bool         // next is valid
	counted bool         // the connection's first byte was seen, so its records are counted
	tls     bool         // records have begun
	lost    bool         // where a record begins is not known
	changed bool         // a ChangeCipherSpec passed
	early   int          // segments before the records, of another protocol

	// The record that is passing.
	kind   byte
	head   [HeadLen]byte // what was there of it when a segment ended before its head did
	have   int           // bytes of head
	rest   int           // bytes still to come
	inside bool          // it is being opened: part has it
	gather bool          // it is not, and part.inner has it as it is, to try the keys on
	part   part

	ring    ring
	keys    keyring
	far     far
	opened  bool // something of the segment at hand was
	worth   bool // what is left of a handshake's flight is long enough to open it
	secrets entries

	messages transcript // of the server's direction, as the far end has it
	expected textName   // of the record with the client's Finished, if it was foretold
	foretold bool
}

// far is what the Opener knows of the Sealer at the far end.
type far struct {
	position
	keys *Keys // those that it has in use
	told bool  // it was told keys
	next int   // the number of those that it is told next
}

const (
	// maxBehind is how far behind the expected byte a segment is taken for one that
	// is sent again (parsers.Stream has the same).
	maxBehind = 16 << 20

	// maxEarly is how many segments of another protocol may come before a
	// connection's records: those of NATS have one, SMTP and IMAP a handful.
	maxEarly = 32

	// minFlight is how long a single record of the handshake has to be that ends a
	// segment for it to be opened, in bytes. A Finished is shorter: what is saved of it
	// is less than the secret takes, unless it follows from the hellos.
	minFlight = 256

	// maxTrials bounds how many places of a segment are looked at for the beginning of
	// a record, where it is not known: wrong ones are one in 2^24.
	maxTrials = 4
)

// restart begins a connection, whose first byte has a sequence number.
func (o *Opener) restart(first seqnum.Value) {
	o.Clear()
	o.started, o.counted, o.next = true, true, first
}

// anew has the far end told all that it needs, which knows nothing.
func (o *Opener) anew() {
	o.far = far{}
	clear(o.secrets.b)
	o.secrets = entries{}
	o.foretold = false
	o.inside = false // its bytes so far are not at the far end
	o.keys.unheard()
}

// Lost says whether it is not known where records begin, nor whether the stream has any:
// its beginning was not seen, or bytes are missing.
func (o *Opener) Lost() bool { return o.lost }

// Clear forgets the connection's keys and its bytes.
func (o *Opener) Clear() {
	o.keys.clear()
	clear(o.part.inner[:cap(o.part.inner)])
	clear(o.secrets.b)
	*o = Opener{conn: o.conn, room: o.room}
}

// unkey forgets the keys, which are of a connection before.
func (o *Opener) unkey() {
	o.keys.clear()
	o.ring.clear()
	o.inside = false
}

// Open appends what a segment's payload holds to dst, and its pieces to pieces. It
// reports false where nothing of it can be opened: it is to be carried as it is, and dst is
// as it was; pieces, unless they are as they were, say what it consists of. seq is the
// sequence number of its first byte.
func (o *Opener) Open(dst []byte, pieces []Piece, seq seqnum.Value, payload []byte) ([]byte, []Piece, bool) {
	w := writer{b: dst, last: len(dst), pieces: pieces}
	o.opened, o.Again = false, false
	if o.conn.closed {
		return dst, pieces, false
	}
	if !o.started {
		o.started, o.lost, o.next = true, true, seq
	}
	if o.far.next > maxTold/2 && !o.inside {
		o.far = far{} // keys are told anew before there is no room for more
	}
	end := seq.Add(seqnum.Size(len(payload)))
	switch behind := seq.Size(o.next); {
	case seq == o.next:
		o.next = end
		o.advance(&w, seq, payload)
	case seq.LessThan(o.next) && behind <= maxBehind && !o.next.LessThan(end):
		o.again(&w, seq, payload)
	case seq.LessThan(o.next) && behind <= maxBehind:
		w.deaf, seq, payload = true, o.next, payload[behind:]
		o.next = end
		o.advance(&w, seq, payload)
	default:
		o.lose()
		o.next = end
		o.advance(&w, seq, payload)
	}
	if o.opened {
		return w.b, w.pieces, true
	}
	o.messages.stop() // the far end has none of what began with this segment
	if w.deaf {
		return dst, pieces, false
	}
	return dst, w.pieces, false
}

// lose says that bytes are missing.
func (o *Opener) lose() {
	o.lost = true
	o.have, o.rest, o.inside, o.gather = 0, 0, false, false
	o.keys.proven = false
	o.messages.stop()
}

// advance opens bytes in their turn.
func (o *Opener) advance(w *writer, seq seqnum.Value, p []byte) {
	if !o.tls && !o.begins(p) {
		return
	}
	for len(p) > 0 {
		n := 0
		switch {
		case o.lost:
			n = o.regain(w, seq, p)
		case o.rest > 0:
			n = o.pass(w, p)
		default:
			n = o.begin(w, seq, p)
		}
		seq.UpdateForward(seqnum.Size(n))
		p = p[n:]
	}
}

// begins says whether the connection's records begin with p, or may have begun before.
func (o *Opener) begins(p []byte) bool {
	if hello(p) {
		o.tls, o.lost = true, false
		return true
	}
	if o.counted {
		if o.early++; o.early > maxEarly {
			o.counted = false
		}
		return false
	}
	o.tls, o.lost = true, true
	return true
}

// parseHead returns the type and the length of a record.
func parseHead(b []byte) (kind byte, size int, ok bool) {
	size = int(binary.BigEndian.Uint16(b[3:]))
	ok = b[0] >= changeCipherSpec && b[0] <= heartbeat && b[1] == 3 && b[2] <= 4 && size <= MaxFragment
	return b[0], size, ok
}

// wholeRecords says whether p ends with a record, the first of which has so many bytes left.
func wholeRecords(p []byte, rest int) bool {
	for rest < len(p) {
		p = p[rest:]
		if len(p) < HeadLen {
			return false
		}
		_, size, ok := parseHead(p)
		if !ok {
			return false
		}
		rest = HeadLen + size
	}
	return rest == len(p)
}

// protected says whether records of a type are, here in the stream: in TLS 1.3 those of
// application data, in 1.2 all behind a ChangeCipherSpec.
func (o *Opener) protected(kind byte) bool {
	return kind == applicationData || !o.conn.suite.TLS13() && (o.changed || o.keys.current != nil)
}

// begin goes over the beginning of a record, or all of it.
func (o *Opener) begin(w *writer, seq seqnum.Value, p []byte) int {
	had := o.have
	if took := copy(o.head[had:], p); had+took < HeadLen {
		return o.cut(w, p)
	}
	kind, size, ok := parseHead(o.head[:])
	if !ok {
		o.lose()
		return 0
	}
	o.kind, o.have, o.rest, o.gather = kind, 0, HeadLen+size-had, false
	if !o.protected(kind) {
		if had == 0 && kind == handshake {
			o.conn.hello(p)
			if o.rest <= len(p) && !w.deaf && o.answer(w, p[:o.rest]) {
				return HeadLen + size
			}
		}
		return o.plain(w, p, true)
	}
	o.conn.ask()
	if had == 0 && o.rest <= len(p) && !w.deaf && o.done(w, p[:o.rest]) {
		return HeadLen + size
	}
	o.worth = o.messages.hash != nil || len(p) >= minFlight || o.rest < len(p) || !wholeRecords(p, o.rest)
	switch {
	case w.deaf:
	case o.rest <= len(p):
		return o.record(w, seq, p, had)
	case o.keys.sure(o) && o.tellable() && o.keys.current.fits(o.head, had, p):
		return o.beginPart(w, p, had)
	}
	o.gather = !w.deaf && o.keys.any()
	o.part.inner = append(o.part.inner[:0], o.head[:had]...)
	return o.plain(w, p, true)
}

// cut goes over bytes that are a part of a record's head.
func (o *Opener) cut(w *writer, p []byte) int {
	o.have += len(p)
	if o.opened && o.have == len(p) {
		w.item(itemHead)
		o.far.head = o.have
	} else {
		w.plain(len(p), true)
	}
	w.bytes(p, Piece{Type: o.head[0], Plain: true, Start: o.have == len(p)})
	return len(p)
}

// plain goes over the next bytes of a record that is not opened.
func (o *Opener) plain(w *writer, p []byte, start bool) int {
	n := min(o.rest, len(p))
	o.rest -= n
	w.plain(n, n == len(p))
	w.bytes(p[:n], Piece{Type: o.kind, Plain: true, Protected: o.protected(o.kind), Start: start})
	if o.gather = o.gather && !w.deaf; o.gather {
		o.part.inner = append(o.part.inner, p[:n]...)
	}
	if o.rest > 0 {
		return n
	}
	switch {
	case o.gather && o.tried():
		o.Missed = true
		o.conn.carried(1)
	case o.protected(o.kind):
		o.Missed = true
		o.messages.stop()
		o.keys.pass()
		o.conn.carried(1)
	case o.kind == changeCipherSpec && !o.conn.suite.TLS13():
		o.changed = true
		o.keys.change(o)
	}
	return n
}

// tried tries the keys on a record that was carried as it is, since only its end could have
// said whether they are right: those behind it are opened then from their beginning on.
func (o *Opener) tried() bool {
	o.gather = false
	inner, ok := o.keys.open(o, o.part.inner)
	if !ok {
		o.keys.miss()
		return false
	}
	kind := o.kind
	if o.keys.current.suite.tls13 {
		kind, inner = content(inner)
	}
	o.keys.number++
	if kind == handshake {
		o.keys.handshake(o, inner)
	}
	return true
}

// regain looks for a record that the keys open, where it is not known where one begins.
func (o *Opener) regain(w *writer, seq seqnum.Value, p []byte) int {
	if trials := maxTrials; !w.deaf && o.keys.any() {
		for i := 0; i+HeadLen+TagLen <= len(p) && trials > 0; i++ {
			kind, size, ok := parseHead(p[i:])
			if !ok || !o.protected(kind) || p[i+2] != 3 || i+HeadLen+size > len(p) {
				continue
			}
			trials--
			o.kind, o.have, o.rest = kind, 0, HeadLen+size
			record := p[i : i+o.rest]
			if _, ok := o.keys.open(o, record); !ok {
				o.keys.miss()
				continue
			}
			if i > 0 {
				w.plain(i, false)
				w.bytes(p[:i], Piece{Plain: true})
			}
			o.lost = false
			return i + o.record(w, seq.Add(seqnum.Size(i)), p[i:], 0)
		}
	}
	o.rest, o.Missed = 0, true
	w.plain(len(p), true)
	w.bytes(p, Piece{Plain: true})
	return len(p)
}

// again opens the records of a segment that was there before, where they are known: a
// number of them, to their end.
func (o *Opener) again(w *writer, seq seqnum.Value, p []byte) {
	number, ok := o.ring.find(seq)
	k := o.keys.current
	if !ok || k == nil || o.far.keys != k {
		return
	}
	had := o.far.position
	w.item(itemNumber | flagOnce)
	w.number(number, 0)
	for o.far.number = number; len(p) > 0; o.far.number++ {
		n := 0
		if len(p) > HeadLen {
			n = HeadLen + int(binary.BigEndian.Uint16(p[3:]))
		}
		inner, ok := []byte(nil), n > 0 && n <= len(p)
		if ok {
			inner, ok = o.room.open(k, p[:n], o.far.number)
		}
		if !ok {
			o.far.position, w.deaf = had, true
			return
		}
		o.write(w, p[:n], inner, n == len(p), 0)
		p = p[n:]
	}
	o.opened, o.Again = true, true
	o.far.position = had
}
