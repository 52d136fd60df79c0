package amqp10

import (
	"encoding/binary"
	"math"
)

// The constructors of values that are looked into (1.6).
const (
	codeDescribed = 0x00
	codeNull      = 0x40
	codeTrue      = 0x41
	codeFalse     = 0x42
	codeUint0     = 0x43
	codeUlong0    = 0x44
	codeList0     = 0x45
	codeUint8     = 0x52
	codeUlong8    = 0x53
	codeBool      = 0x56
	codeUint32    = 0x70
	codeUlong64   = 0x80
	codeBinary8   = 0xa0
	codeString8   = 0xa1
	codeSymbol8   = 0xa3
	codeBinary32  = 0xb0
	codeString32  = 0xb1
	codeSymbol32  = 0xb3
	codeList8     = 0xc0
	codeList32    = 0xd0
)

// maxDepth bounds descriptors that are described themselves.
const maxDepth = 4

// A value is where a value is: its constructor, and its data without length and
// count. Offsets are into the bytes it was read from.
type value struct {
	code  byte
	off   int // of the data
	len   int // of the data; of a list, with what its elements take
	end   int // where the next value begins
	count int // elements of a list
}

func (v value) of(b []byte) []byte { return b[v.off : v.off+v.len] }

// readValue reads the value at an offset (1.2), which has to end at limit at the
// latest. Its end may lie behind the end of b, and so may its data: that is for
// callers to see. A described value is returned without its descriptor.
func readValue(b []byte, at, limit int, v *value) fault {
	for range maxDepth {
		if at >= limit {
			return faultTooShort
		}
		if at >= len(b) {
			return short
		}
		if b[at] != codeDescribed {
			return readPlain(b, at, limit, v)
		}
		if at+3 < min(len(b), limit) && b[at+1] == codeUlong8 { // nearly always
			at += 3
			continue
		}
		var descriptor value
		if bad := readPlainValue(b, at+1, limit, &descriptor); bad != ok {
			return bad
		}
		at = descriptor.end
	}
	return faultDescriptor
}

// readPlainValue reads a value that must not be described.
func readPlainValue(b []byte, at, limit int, v *value) fault {
	if at >= limit {
		return faultTooShort
	}
	if at >= len(b) {
		return short
	}
	if b[at] == codeDescribed {
		return faultDescriptor
	}
	return readPlain(b, at, limit, v)
}

// small is the size of a value with its constructor, by the constructor's high
// half, where that says it.
var small = [16]uint8{4: 1, 5: 2, 6: 3, 7: 5, 8: 9, 9: 17}

// readPlain reads a value by its constructor (1.2.3), of which b has the first
// byte.
func readPlain(b []byte, at, limit int, v *value) fault {
	code := b[at]
	if n := int(small[code>>4]); n > 0 {
		if at+n > limit {
			return faultTooLong
		}
		*v = value{code: code, off: at + 1, len: n - 1, end: at + n}
		return ok
	}
	at++
	prefix := 1
	switch code >> 4 {
	case 0xa, 0xc, 0xe:
	case 0xb, 0xd, 0xf:
		prefix = 4
	default:
		return faultConstructor
	}
	if at+prefix > limit {
		return faultTooShort
	}
	n, bad := length(b, at, prefix)
	if bad != ok {
		return bad
	}
	at += prefix
	*v = value{code: code, off: at, len: n, end: at + n}
	if v.end > limit {
		return faultTooLong
	}
	if code>>4 != 0xc && code>>4 != 0xd {
		return ok
	}
	if v.len < prefix {
		return faultTooShort
	}
	v.off += prefix
	v.len -= prefix
	v.count, bad = length(b, at, prefix)
	return bad
}

// length reads a length or a count of one or four bytes.
func length(b []byte, at, size int) (int, fault) {
	if at+size > len(b) {
		return 0, short
	}
	if size == 1 {
		return int(b[at]), ok
	}
	n := binary.BigEndian.Uint32(b[at:])
	if n > math.MaxInt32 {
		return 0, faultTooLong
	}
	return int(n), ok
}

// uint returns a value that is an unsigned number of up to four bytes, or a
// boolean, or a small ulong.
func (v value) uint(b []byte) (n uint32, found bool) {
	switch v.code {
	case codeUint0, codeFalse, codeUlong0:
		return 0, true
	case codeTrue:
		return 1, true
	case codeUint8, codeUlong8, codeBool:
		return uint32(b[v.off]), true
	case codeUint32:
		return binary.BigEndian.Uint32(b[v.off:]), true
	}
	return 0, false
}

func (v value) isText() bool {
	return v.code == codeString8 || v.code == codeString32 || v.code == codeSymbol8 || v.code == codeSymbol32
}

func (v value) isBinary() bool { return v.code == codeBinary8 || v.code == codeBinary32 }

func (v value) isList() bool {
	return v.code == codeList0 || v.code == codeList8 || v.code == codeList32
}
