package amqp10

import (
	"encoding/binary"

	"sheaf/parsers"
)

const (
	frameHead = 8 // size, data offset, type, channel

	// The types of frames (2.3.1, 5.3.1).
	typeAMQP = 0
	typeSASL = 1

	// A preamble (2.2, 5.2.1, 5.3.2) is "AMQP", one of protocolAMQP, TLS and
	// SASL, and the version.
	preamble      = "AMQP"
	version       = "\x01\x00\x00"
	preambleLen   = len(preamble) + 1 + len(version)
	protocolAMQP  = 0
	protocolTLS   = 2
	protocolSASL  = 3
	preambleStart = 'A'

	// maxFrame is the largest frame that is believed.
	maxFrame = 256 << 20

	// maxFront is how many bytes of a frame are looked at.
	maxFront = 1024

	// maxOffset bounds the extended headers that are looked behind. Nobody is
	// known to send one.
	maxOffset = 64
)

// A place is where a field is. Offsets are from the frame's first byte.
type place struct{ off, len int }

func (p place) of(b []byte) []byte { return b[p.off : p.off+p.len] }

// A front is what the beginning of a frame tells.
type front struct {
	name     Name
	preamble bool
	sasl     bool
	channel  uint16
	size     int // bytes of the whole frame
	body     int // offset of what follows the performative

	linked  bool // the frame names a link by its handle
	handle  uint32
	address place // of an attach, zero when it tells none

	id    place // of a transfer: delivery-id
	tag   place // of a transfer: delivery-tag
	first place // of a disposition: the delivery-ids
	last  place

	fields value // the list of fields
}

// parseFront reads the beginning of a frame into f, which is zero. It returns short
// when it needs more bytes, of which maxFront are always enough and the whole frame
// is too. What it says does not depend on the bytes after those it needs.
func parseFront(b []byte, f *front) fault {
	if len(b) == 0 {
		return short
	}
	if b[0] == preambleStart {
		return f.readPreamble(b)
	}
	if b[0] > maxFrame>>24 {
		return faultSize
	}
	if len(b) < frameHead {
		return short
	}
	size := binary.BigEndian.Uint32(b)
	if size < frameHead || size > maxFrame {
		return faultSize
	}
	f.size = int(size)
	f.body = f.size
	at := int(b[4]) * 4
	switch {
	case at < frameHead || at > f.size:
		return faultOffset
	case b[5] > typeSASL:
		return faultType
	}
	f.sasl = b[5] == typeSASL
	f.channel = binary.BigEndian.Uint16(b[6:])
	if at == f.size {
		f.name = Empty
		if f.sasl {
			return faultEmpty
		}
		return ok
	}
	f.name = Performative
	if at > maxOffset {
		return ok
	}
	b = b[:min(len(b), f.size, maxFront)]
	if at >= len(b) {
		return short
	}
	if b[at] != codeDescribed {
		return faultDescriptor
	}
	at, bad := f.descriptor(b, at+1)
	if bad != ok || at == 0 {
		return bad
	}
	if bad = readPlainValue(b, at, f.size, &f.fields); bad != ok {
		return bad
	}
	if !f.fields.isList() {
		return faultList
	}
	f.body = f.fields.end
	if f.name != Transfer && f.body != f.size {
		return faultTooLong // only a transfer has a payload
	}
	if f.name != Performative && f.fields.count > len(performatives[f.name].fields) {
		return faultFields
	}
	return f.look(b)
}

// descriptor reads the descriptor of a performative and returns where it ends, 0
// where it is a symbol, which may be longer than what is looked at.
func (f *front) descriptor(b []byte, at int) (end int, bad fault) {
	if at+2 <= len(b) && b[at] == codeUlong8 { // nearly always
		f.name = performative(uint64(b[at+1]), f.sasl)
		return at + 2, ok
	}
	var v value
	if bad := readPlainValue(b, at, f.size, &v); bad != ok {
		return 0, bad
	}
	switch v.code {
	case codeUlong8, codeUlong64:
		if v.end > len(b) {
			return 0, short
		}
		n := uint64(0)
		for _, c := range v.of(b) {
			n = n<<8 | uint64(c)
		}
		f.name = performative(n, f.sasl)
	case codeUlong0:
	case codeSymbol8, codeSymbol32:
		return 0, ok
	default:
		return 0, faultDescriptor
	}
	return v.end, ok
}

func (f *front) readPreamble(b []byte) fault {
	f.name, f.preamble, f.size = ProtocolHeader, true, preambleLen
	f.body = f.size
	n := min(len(b), len(preamble))
	switch {
	case string(b[:n]) != preamble[:n]:
		return faultPreamble
	case len(b) <= n:
		return short
	}
	switch b[n] {
	case protocolAMQP, protocolTLS, protocolSASL:
	default:
		return faultPreamble
	}
	b = b[n+1:]
	n = min(len(b), len(version))
	switch {
	case string(b[:n]) != version[:n]:
		return faultPreamble
	case n < len(version):
		return short
	}
	return ok
}

// look looks for the fields of the performative that matter.
func (f *front) look(b []byte) fault {
	if end := f.fields.off + f.fields.len; end <= len(b) && f.quick(b[:end]) {
		return ok
	}
	return f.lookSlowly(b)
}

func (f *front) lookSlowly(b []byte) fault {
	w := walk{b: b, at: f.fields.off, limit: f.fields.off + f.fields.len, left: f.fields.count}
	switch f.name {
	case Attach:
		if bad := f.attach(&w); bad != short || len(b) < maxFront {
			return bad
		}
		return ok // it is further away than what is looked at
	case Transfer:
		f.takeHandle(&w)
		w.number(&f.id)
		if v := w.next(); w.bad == ok && v.code != codeNull {
			if !v.isBinary() {
				return faultField
			}
			if v.len <= parsers.MaxHoleText {
				w.need(v)
				f.tag = place{v.off, v.len}
			}
		}
	case Flow:
		for range 4 {
			w.next()
		}
		f.takeHandle(&w)
		if w.bad == ok && !f.linked {
			return ok // of the whole session
		}
	case Detach:
		f.takeHandle(&w)
	case Disposition:
		w.next()
		if n := w.number(&f.first); w.bad == ok && n.code == codeNull {
			return faultFields
		}
		w.number(&f.last)
	default:
		return ok
	}
	if w.bad == ok && f.name != Disposition && !f.linked {
		return faultFields // the handle is mandatory
	}
	return w.bad
}

// attach looks for a link's handle and its address (2.7.3).
func (f *front) attach(w *walk) fault {
	if name := w.next(); w.bad == ok && !name.isText() {
		return faultField
	}
	f.takeHandle(w)
	role := w.next()
	w.need(role)
	for range 2 {
		w.next()
	}
	source, target := w.terminus(), w.terminus()
	if w.bad != ok {
		return w.bad
	}
	if !f.linked {
		return faultFields
	}
	receiver, _ := role.uint(w.b)
	if receiver != 0 {
		source, target = target, source
	}
	if f.address = target; target.len == 0 {
		f.address = source
	}
	return ok
}

func (f *front) takeHandle(w *walk) {
	v := w.next()
	w.need(v)
	if w.bad != ok || v.code == codeNull {
		return
	}
	if f.handle, f.linked = v.uint(w.b); !f.linked {
		w.bad = faultField
	}
}

// A walk goes over the elements of a list. After a fault it stays where it is.
type walk struct {
	b     []byte
	at    int
	limit int // where the list ends
	left  int // elements
	bad   fault
}

// next returns the next element; those that are left out are null (1.4).
func (w *walk) next() (v value) {
	v.code = codeNull
	if w.bad != ok || w.left == 0 {
		return v
	}
	w.left--
	if w.at < min(len(w.b), w.limit) { // most are of a few bytes
		if n := int(small[w.b[w.at]>>4]); n > 0 && w.at+n <= w.limit {
			v = value{code: w.b[w.at], off: w.at + 1, len: n - 1, end: w.at + n}
			w.at += n
			return v
		}
	}
	if w.bad = readValue(w.b, w.at, w.limit, &v); w.bad != ok {
		return value{code: codeNull}
	}
	w.at = v.end
	return v
}

// need says that the data of a value has to be there.
func (w *walk) need(v value) {
	if w.bad == ok && v.end > len(w.b) {
		w.bad = short
	}
}

// number returns the next element, which is an unsigned number or null, and its
// place.
func (w *walk) number(p *place) value {
	v := w.next()
	w.need(v)
	if w.bad != ok || v.code == codeNull {
		return v
	}
	if _, found := v.uint(w.b); !found {
		w.bad = faultField
		return v
	}
	*p = place{v.off, v.len}
	return v
}

// terminus returns the address of the next element, a source or a target (3.5.3,
// 3.5.4), zero when it has none.
func (w *walk) terminus() (address place) {
	v := w.next()
	if w.bad != ok || !v.isList() || v.count == 0 {
		return address
	}
	var a value
	if w.bad = readValue(w.b, v.off, v.off+v.len, &a); w.bad == ok && a.isText() {
		w.need(a)
		address = place{a.off, a.len}
	}
	return address
}
