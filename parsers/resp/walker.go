package resp

import "bytes"

const (
	// maxBulk is the largest string, which is what a server takes by default.
	maxBulk = 512 << 20
	// maxCount is the most elements of an aggregate.
	maxCount = 1 << 26
	// maxHead is the longest line that has to be read as a whole: a type, a
	// length or number, and the line end.
	maxHead = 40
)

// A walker finds where a value ends, in pieces. Elements of aggregates are
// values like others, so that it is enough to count how many are still to come.
type walker struct {
	left int           // values still to come
	skip int           // bytes of a string with its line end that are still to come
	line bool          // in a line, up to its end
	lax  bool          // which need not have a carriage return
	cr   bool          // the last byte of the line was one
	n    uint8         // bytes in head
	head [maxHead]byte // what was seen of a value's head that was cut

	proofs int // strings that ended where they should
}

// start begins a value, or an inline command, at its first byte: where p is,
// whose front is f as far as it could be read.
func (w *walker) start(p []byte, f *front) (n int, done bool, bad fault) {
	w.skip, w.n = 0, 0
	if f.to > 0 {
		w.left, w.proofs = f.left, f.proofs
		w.line, w.lax = false, false
		n, done, bad = w.walk(p[f.to:])
		return f.to + n, done, bad
	}
	w.left, w.proofs = 1, 0
	w.lax = inline(p[0])
	w.line, w.cr = w.lax, false
	return w.walk(p)
}

// inline says whether a message that begins with c is an inline command.
func inline(c byte) bool {
	switch c {
	case '+', '-', ':', '$', '*', '_', '#', ',', '(', '!', '=', '%', '~', '>', '|':
		return false
	}
	return true
}

// walk goes on in p, and returns how many of its bytes belong to the value, and
// whether it ends there. Lengths and ends are checked as far as they are there.
func (w *walker) walk(p []byte) (n int, done bool, bad fault) {
	for at := 0; ; {
		switch {
		case w.skip > 0:
			k := min(w.skip, len(p)-at)
			w.skip -= k
			at += k
			if w.skip > 0 {
				if w.skip == 1 && k > 0 && p[at-1] != '\r' {
					return 0, false, faultEnd
				}
				return at, false, ok
			}
			if p[at-1] != '\n' || k > 1 && p[at-2] != '\r' {
				return 0, false, faultEnd
			}
			w.proofs++
		case w.left == 0:
			return at, true, ok
		case at == len(p):
			return at, false, ok
		case w.line:
			k, whole, bad := w.text(p[at:])
			if bad != ok {
				return 0, false, bad
			}
			at += k
			if !whole {
				return at, false, ok
			}
			w.line, w.lax = false, false
			w.left--
		case w.n == 0:
			h, k, bad := element(p[at:])
			if bad == short {
				w.n = uint8(copy(w.head[:], p[at:]))
				return len(p), false, ok
			}
			if bad != ok {
				return 0, false, bad
			}
			at += k
			w.take(h)
		default:
			had := int(w.n)
			k := copy(w.head[had:], p[at:])
			h, size, bad := element(w.head[:had+k])
			if bad == short {
				w.n += uint8(k)
				return len(p), false, ok
			}
			if bad != ok {
				return 0, false, bad
			}
			w.n = 0
			at += size - had
			w.take(h)
		}
	}
}

// take counts the value that h is the head of.
func (w *walker) take(h head) {
	switch h.kind {
	case kindLine:
		w.line, w.cr = true, false
	case kindBulk:
		w.skip = h.n + 2
		w.left--
	case kindAggregate:
		w.left += h.n - 1
	case kindAttribute:
		w.left += h.n
	default:
		w.left--
	}
}

// text passes over a line whose length is not known.
func (w *walker) text(p []byte) (n int, whole bool, bad fault) {
	end := bytes.IndexByte(p, '\n')
	if end < 0 {
		w.cr = p[len(p)-1] == '\r'
		return len(p), false, ok
	}
	if end > 0 {
		w.cr = p[end-1] == '\r'
	}
	if !w.cr && !w.lax {
		return 0, false, faultLine
	}
	return end + 1, true, ok
}

type kind uint8

const (
	kindScalar kind = iota // ends with its head
	kindLine               // text up to the end of a line follows
	kindBulk
	kindAggregate
	kindAttribute // stands before a value and is no value itself
)

// A head is the beginning of a value.
type head struct {
	kind kind
	n    int // bytes of a string, or elements
}

// element reads the head of a value and returns its size: a type, and mostly a
// number and a line end.
func element(p []byte) (h head, n int, bad fault) {
	if len(p) == 0 {
		return head{}, 0, short
	}
	if c := p[0]; (c == '$' || c == '*') && len(p) > 3 && p[1]-'0' <= 9 { // what there is most of
		v, at := int(p[1]-'0'), 2
		for at < 8 && at < len(p) && p[at]-'0' <= 9 {
			v = v*10 + int(p[at]-'0')
			at++
		}
		if at+1 < len(p) && p[at] == '\r' && p[at+1] == '\n' {
			if c == '$' {
				return head{kindBulk, v}, at + 2, ok
			}
			return head{kindAggregate, v}, at + 2, ok
		}
	}
	switch p[0] {
	case '+', '-', '(':
		return head{kind: kindLine}, 1, ok
	case '$', '!', '=', '*', '>', '~', '%', '|':
	case ':', ',', '#', '_':
		end := bytes.IndexByte(p[:min(len(p), maxHead)], '\n')
		switch {
		case end < 0 && len(p) >= maxHead:
			return head{}, 0, faultNumber
		case !scalar(p[0], p[1:], end-1):
			return head{}, 0, faultNumber
		case end < 0:
			return head{}, 0, short
		}
		return head{}, end + 1, ok
	default:
		return head{}, 0, faultType
	}
	at := 1
	negative := len(p) > 1 && p[1] == '-'
	if negative {
		at++
	}
	v := 0
	from := at
	for ; at < len(p) && p[at]-'0' <= 9; at++ {
		if v = v*10 + int(p[at]-'0'); v > maxBulk {
			return head{}, 0, faultLength
		}
		if at-from > 10 {
			return head{}, 0, faultNumber
		}
	}
	switch {
	case at == len(p):
		return head{}, 0, short
	case p[at] != '\r' || at == from:
		return head{}, 0, faultNumber
	case at+1 == len(p):
		return head{}, 0, short
	case p[at+1] != '\n':
		return head{}, 0, faultLine
	case negative && (v != 1 || p[0] != '$' && p[0] != '*'):
		return head{}, 0, faultLength
	case negative:
		return head{}, at + 2, ok // RESP2's null
	}
	n = at + 2
	switch p[0] {
	case '$', '!', '=':
		return head{kindBulk, v}, n, ok
	}
	if v > maxCount {
		return head{}, 0, faultLength
	}
	switch p[0] {
	case '%':
		return head{kindAggregate, 2 * v}, n, ok
	case '|':
		return head{kindAttribute, 2 * v}, n, ok
	}
	return head{kindAggregate, v}, n, ok
}

// scalar says whether b[:end], which is followed by a line feed, is what a type
// holds; when end is negative the line feed is not there yet.
func scalar(kind byte, b []byte, end int) bool {
	if end >= 0 {
		if end == 0 || b[end-1] != '\r' {
			return false
		}
		b = b[:end-1]
	} else if len(b) > 0 && b[len(b)-1] == '\r' {
		b = b[:len(b)-1]
	}
	switch kind {
	case '_':
		return len(b) == 0
	case '#':
		return (len(b) == 1 || len(b) == 0 && end < 0) && (len(b) == 0 || b[0] == 't' || b[0] == 'f')
	}
	for _, c := range b {
		if c-'0' > 9 && c != '-' && c != '+' && (kind == ':' || !bytes.Contains([]byte(".eEinfa"), []byte{c})) {
			return false
		}
	}
	return len(b) > 0 || end < 0
}
