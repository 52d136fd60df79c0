package model

import (
	"bytes"
	"unicode/utf8"
)

// leastNoise is how many bytes it takes to look random, and from how many on a Body
// says whether they are plain (SPEC.md 5.2). With 8, 16 or 24 the frames of
// testdata/recorded are as long, to 0.05 %.
const leastNoise = 12

// Noise tells whether bytes, borrowed for the call, look random, as those of
// ciphertext and of compressed bodies do: the halves of bytes, of up to 128 of them
// from all over b, are spread about evenly. One run of random bytes in a hundred is
// not; a tenth of zeros or a quarter of text is too much. Fewer than 12 bytes, valid
// UTF-8 and what begins with 12 bytes of ASCII never look random. It only advises a
// writer, in 0.3 us: no reader asks.
func Noise(b []byte) bool {
	const (
		most  = 128 // of b: with 64 or 256 the frames of testdata/recorded are the same
		limit = 51  // 1 % of chi-squared with 2 * 15 degrees of freedom is above it
	)
	if len(b) < leastNoise {
		return false
	}
	high := byte(0)
	for _, c := range b[:leastNoise] {
		high |= c
	}
	if high < 0x80 || utf8.Valid(b) {
		return false
	}
	step := (len(b)-1)/most + 1 | 1 // odd, or only one byte of each field would be seen
	var upper, lower [16]int32
	n := int32(0)
	for i := 0; i < len(b); i += step {
		upper[b[i]>>4]++
		lower[b[i]&15]++
		n++
	}
	squares := int32(0)
	for i := range upper {
		squares += upper[i]*upper[i] + lower[i]*lower[i]
	}
	return 16*squares < (limit+2*n)*n
}

// random tells whether what is left of a body looks random, and what is left of
// the base neither begins nor ends like it, as it would where only a field is
// new: then there is nothing to look for. Two bodies of random bytes have none of their
// first eight in common 97 times in a hundred.
func random(base, body []byte) bool {
	const ends = 8
	if len(body) < leastNoise {
		return false
	}
	for i := range min(ends, len(base)) {
		if base[i] == body[i] {
			return false
		}
	}
	return !bytes.HasSuffix(base, body[len(body)-ends/2:]) && Noise(body)
}
