package parsers

import (
	"encoding/binary"
	"math/bits"
)

// Text protocols are read eight bytes at a time, each of which is looked at in its
// own part of a word: their words are short, and a call for each byte, or for each
// of the faster ways of the standard library, costs more than what it does.
const (
	each  = 0x0101010101010101 // times a byte: that byte in each place
	highs = 0x80 * each
)

// TokenEnd returns the offset of the first byte of b, from at on, that is less
// than low, which is at most 0x80, or equal to stop; len(b) when there is none.
func TokenEnd(b []byte, at int, low, stop byte) int {
	lows, stops := uint64(low)*each, uint64(stop)*each
	for ; len(b)-at >= 8; at += 8 {
		w := binary.LittleEndian.Uint64(b[at:])
		diff := w ^ stops
		// What is subtracted borrows from the next byte only where there is one to
		// be found, and it is the first that counts.
		if found := ((w-lows)&^w | (diff-each)&^diff) & highs; found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for at < len(b) && b[at] >= low && b[at] != stop {
		at++
	}
	return at
}

// LowEnd is TokenEnd without a stop; it is small enough to stand where it is called.
func LowEnd(b []byte, at int, low byte) int {
	for ; len(b)-at >= 8; at += 8 {
		w := binary.LittleEndian.Uint64(b[at:])
		if found := (w - uint64(low)*each) &^ w & highs; found != 0 {
			return at + bits.TrailingZeros64(found)/8
		}
	}
	for at < len(b) && b[at] >= low {
		at++
	}
	return at
}

// DecimalEnd returns where the decimal number ends that stands at an offset of b
// and can be a HoleDecimal; at when there is none.
func DecimalEnd(b []byte, at int) int {
	end := at
	for end < len(b) && b[end]-'0' <= 9 {
		end++
	}
	if n := end - at; n > MaxHoleDigits || n > 1 && b[at] == '0' {
		return at
	}
	return end
}

// IsDecimal says whether b can be a HoleDecimal.
func IsDecimal(b []byte) bool { return len(b) > 0 && DecimalEnd(b, 0) == len(b) }

// Decimal reads a decimal number of at most nine digits, leading zeros among them.
func Decimal(b []byte) (n int, ok bool) {
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
