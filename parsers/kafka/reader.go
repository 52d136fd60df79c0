package kafka

import (
	"encoding/binary"

	"sheaf/parsers"
)

// A reader walks over a message whose end may be missing. After a fault it stays
// where it is, and what it reads is 0.
type reader struct {
	b    []byte // at most the message
	at   int
	size int // bytes of the whole message
	bad  fault
}

// skip moves on by n bytes, which are there unless it says otherwise.
func (r *reader) skip(n int) bool {
	switch {
	case r.bad != ok:
	case n > r.size-r.at:
		r.bad = faultTooShort
	case n > len(r.b)-r.at:
		r.bad = short
	default:
		r.at += n
	}
	return r.bad == ok
}

// take returns the next n bytes, nil when they are not there.
func (r *reader) take(n int) []byte {
	if !r.skip(n) {
		return nil
	}
	return r.b[r.at-n : r.at]
}

func (r *reader) u8() uint8 {
	if !r.skip(1) {
		return 0
	}
	return r.b[r.at-1]
}

func (r *reader) u16() uint16 {
	if !r.skip(2) {
		return 0
	}
	return binary.BigEndian.Uint16(r.b[r.at-2:])
}

func (r *reader) u32() uint32 {
	if !r.skip(4) {
		return 0
	}
	return binary.BigEndian.Uint32(r.b[r.at-4:])
}

// uvarint reads a number of up to 32 bits that is written in groups of seven.
func (r *reader) uvarint() uint32 {
	if r.bad == ok && r.at < len(r.b) && r.b[r.at] < 0x80 { // what there is most of
		r.at++
		return uint32(r.b[r.at-1])
	}
	v := uint32(0)
	for shift := 0; shift < 35; shift += 7 {
		c := r.u8()
		if v |= uint32(c&0x7f) << shift; c < 0x80 {
			return v
		}
	}
	r.bad = faultNumber
	return 0
}

// tags reads how many tagged fields there are, and says whether there are any.
func (r *reader) tags() bool { return r.uvarint() > 0 }

// count reads the size of an array. None has more elements than bytes.
func (r *reader) count(compact bool) int {
	n := uint32(0)
	if compact {
		n = max(r.uvarint(), 1) - 1
	} else if n = r.u32(); n == 1<<32-1 {
		n = 0
	}
	if r.bad == ok && int64(n) > int64(r.size-r.at) {
		r.bad = faultCount
	}
	return int(n)
}

// length reads the length of a string that may be missing, and is 0 then.
func (r *reader) length(compact bool) int {
	if compact {
		return int(max(r.uvarint(), 1)) - 1
	}
	n := r.u16()
	if n == 0xffff {
		return 0
	}
	return int(n)
}

// string reads a string of n bytes, which is text as far as it is there.
func (r *reader) string(n int) (place, fault) {
	switch {
	case r.bad != ok:
		return place{}, r.bad
	case n > maxString:
		return place{}, faultText
	}
	if s := r.b[:min(len(r.b), r.at+n)]; parsers.TokenEnd(s, r.at, ' ', 0x7f) < len(s) {
		return place{}, faultText
	}
	p := place{r.at, n}
	if !r.skip(n) {
		return place{}, r.bad
	}
	return p, ok
}
