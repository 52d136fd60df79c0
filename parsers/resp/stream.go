package resp

import "bytes"

// stream tells the reply to an XREAD from other aggregates: a stream's key, and
// an array of entries, each of an identifier and an array of fields. RESP2 has
// an array of two around key and entries, pairs. left is how many elements the
// aggregate has.
func (f *front) stream(b []byte, at, left int, pairs bool) fault {
	if left < 1 {
		return ok
	}
	n := 0
	if pairs {
		if at, n = array(b, at); n != 2 {
			return f.unless(at)
		}
		left++
	}
	if at >= len(b) {
		return short
	}
	if b[at] != '$' {
		return ok
	}
	key, keyEnd, bad := text(b, at)
	if bad != ok {
		return bad
	}
	if keyEnd > maxFront-maxID {
		return ok
	}
	if len(b) < keyEnd {
		return short
	}
	if at, n = array(b, keyEnd); n < 1 {
		return f.unless(at)
	}
	left += n
	if at, n = array(b, at); n != 2 {
		return f.unless(at)
	}
	if at >= len(b) {
		return short
	}
	if b[at] != '$' {
		return ok
	}
	id, next, bad := text(b, at)
	if bad != ok {
		return bad
	}
	if id.len > maxID/2 {
		return ok
	}
	if len(b) < next {
		return short
	}
	if dash := bytes.IndexByte(b[id.off:id.off+id.len], '-'); dash < 1 || b[id.off]-'0' > 9 {
		return ok
	}
	if !ends(b, keyEnd) || !ends(b, next) {
		return faultEnd
	}
	f.to, f.left, f.proofs = next, left-2, 2 // without key and identifier
	f.name = Stream
	f.body = at
	return f.about(b, key)
}

// maxID is enough for the head and digits of an entry's identifier, and for the
// heads of the arrays before it.
const maxID = 96

// unless returns short when the bytes end where an array is to be told, and ok
// when it is none.
func (f *front) unless(at int) fault {
	if at < 0 {
		return short
	}
	return ok
}

// array reads the head of an array at an offset. It returns its number of
// elements, negative when there is none, and the offset of the first, negative
// when more bytes are needed to tell.
func array(b []byte, at int) (next, n int) {
	if at >= len(b) {
		return -1, -1
	}
	if b[at] != '*' {
		return at, -1
	}
	h, size, bad := element(b[at:])
	switch {
	case bad == short:
		return -1, -1
	case bad != ok || h.kind != kindAggregate:
		return at, -1
	}
	return at + size, h.n
}

// A span is a string: where it is in the message.
type span struct{ off, len int }

// text reads the head of a string at an offset, and returns where it is and
// where the next element is. One that is too far away to wait for is a fault.
func text(b []byte, at int) (s span, next int, bad fault) {
	switch {
	case far(at):
		return span{}, 0, faultLength
	case at >= len(b):
		return span{}, 0, short
	case b[at] != '$':
		return span{}, 0, faultType
	case len(b)-at > 3 && b[at+1]-'0' <= 9 && b[at+2] == '\r' && b[at+3] == '\n': // what there is most of
		n := int(b[at+1] - '0')
		return span{at + 4, n}, at + 4 + n + 2, ok
	}
	h, n, bad := element(b[at:])
	if bad != ok {
		return span{}, 0, bad
	}
	if h.kind != kindBulk {
		return span{}, 0, faultType // null
	}
	return span{at + n, h.n}, at + n + h.n + 2, ok
}

// far says whether the head of an element may be where parseFront does not look.
func far(at int) bool { return at > maxFront-maxHead }
