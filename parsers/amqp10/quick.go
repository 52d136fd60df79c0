package amqp10

import (
	"encoding/binary"

	"sheaf/parsers"
)

// quick looks for what look does in the performatives that most traffic is of,
// in their usual form, up to the end of b. It says whether that is the form, and
// notes nothing where it is not.
func (f *front) quick(b []byte) bool {
	var p, tag place
	var n uint32
	at := f.fields.off
	switch {
	case f.name == Transfer && f.fields.count >= 3:
		var id place
		if n, at = quickNumber(b, at, &p); at == 0 {
			return false
		}
		if _, at = quickNumber(b, at, &id); at == 0 || at+2 > len(b) || b[at] != codeBinary8 {
			return false
		}
		if tag = (place{at + 2, int(b[at+1])}); tag.off+tag.len > len(b) {
			return false
		}
		if tag.len <= parsers.MaxHoleText {
			f.tag = tag
		}
		f.handle, f.linked, f.id = n, true, id
		return true

	case f.name == Disposition && f.fields.count >= 3:
		var first, last place
		if at >= len(b) || b[at] != codeTrue && b[at] != codeFalse {
			return false
		}
		if _, at = quickNumber(b, at+1, &first); at == 0 || at >= len(b) {
			return false
		}
		if b[at] != codeNull {
			if _, at = quickNumber(b, at, &last); at == 0 {
				return false
			}
		}
		f.first, f.last = first, last
		return true

	case f.name == Flow && f.fields.count >= 5:
		for range 5 {
			if n, at = quickNumber(b, at, &p); at == 0 {
				return false
			}
		}
		f.handle, f.linked = n, true
		return true
	}
	return false
}

// quickNumber reads a uint and returns where it ends, 0 when it is none.
func quickNumber(b []byte, at int, p *place) (n uint32, end int) {
	if at >= len(b) {
		return 0, 0
	}
	switch c := b[at]; {
	case c == codeUint0:
		*p = place{at + 1, 0}
		return 0, at + 1
	case c == codeUint8 && at+2 <= len(b):
		*p = place{at + 1, 1}
		return uint32(b[at+1]), at + 2
	case c == codeUint32 && at+5 <= len(b):
		*p = place{at + 1, 4}
		return binary.BigEndian.Uint32(b[at+1:]), at + 5
	}
	return 0, 0
}
