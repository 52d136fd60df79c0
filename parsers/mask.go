package parsers

import (
	"encoding/binary"
	"math/bits"
)

// Mask appends b to dst, each byte of it the exclusive or with a byte of key in
// turn, beginning with byte phase of it (0 to 3, the most significant first). To
// mask twice changes nothing. It is the masking of WebSocket (RFC 6455, 5.3).
func Mask(dst, b []byte, key uint32, phase uint8) []byte {
	n := len(dst)
	dst = append(dst, b...)
	MaskInPlace(dst[n:], key, phase)
	return dst
}

// MaskInPlace masks b like Mask.
func MaskInPlace(b []byte, key uint32, phase uint8) {
	key = bits.RotateLeft32(key, 8*int(phase))
	wide := uint64(key)<<32 | uint64(key)
	for ; len(b) >= 8; b = b[8:] {
		binary.BigEndian.PutUint64(b, binary.BigEndian.Uint64(b)^wide)
	}
	for i := range b {
		b[i] ^= byte(wide >> (56 - 8*i))
	}
}
