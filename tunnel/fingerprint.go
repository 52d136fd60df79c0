package tunnel

import (
	"bytes"
	"fmt"
	"strings"
)

// Fingerprint is the SHA-256 of a gateway's Ed25519 public key, and what the
// gateway is known by.
//
// As text it is 56 characters of Crockford's base32 in 8 groups of 7, such as
//
//	5X0C3QG-...-M2W8RZT
//
// They hold the 32 bytes and a CRC-24 (RFC 9580 section 6.1), which finds every
// typing error in up to four neighbouring characters, hence any wrong character
// and any two swapped ones, and all but one in 16 million of the others.
type Fingerprint [32]byte

const (
	alphabet  = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	textChars = (32 + 3) * 8 / 5
	group     = 7
)

// String returns the text form, 63 characters long.
func (f Fingerprint) String() string {
	sum := crc24(f[:])
	b := append(f[:], byte(sum>>16), byte(sum>>8), byte(sum))
	var s strings.Builder
	var bits, n uint
	for _, c := range b {
		bits, n = bits<<8|uint(c), n+8
		for ; n >= 5; n -= 5 {
			if k := s.Len(); k%(group+1) == group {
				s.WriteByte('-')
			}
			s.WriteByte(alphabet[bits>>(n-5)&31])
		}
	}
	return s.String()
}

// ParseFingerprint is the inverse of [Fingerprint.String]. Case does not matter,
// nor do dashes and spaces, and O is taken for 0, I and L for 1.
func ParseFingerprint(s string) (Fingerprint, error) {
	var b []byte
	var bits, n uint
	chars := 0
	for i, r := range strings.ToUpper(s) {
		switch r {
		case '-', ' ', '\t', '\n', '\r':
			continue
		case 'O':
			r = '0'
		case 'I', 'L':
			r = '1'
		}
		v := strings.IndexRune(alphabet, r)
		if v < 0 {
			return Fingerprint{}, fmt.Errorf("%w: %q at position %d is not used in fingerprints", ErrFingerprint, r, i+1)
		}
		if chars++; chars > textChars {
			continue
		}
		bits, n = bits<<5|uint(v), n+5
		if n >= 8 {
			n -= 8
			b = append(b, byte(bits>>n))
		}
	}
	if chars != textChars {
		return Fingerprint{}, fmt.Errorf("%w: it has %d characters without the dashes, not %d", ErrFingerprint, chars, textChars)
	}
	f := Fingerprint(b[:32])
	sum := crc24(f[:])
	if !bytes.Equal(b[32:], []byte{byte(sum >> 16), byte(sum >> 8), byte(sum)}) {
		return Fingerprint{}, fmt.Errorf("%w: a character is wrong or two are swapped; compare it with what the peer's keygen printed", ErrFingerprint)
	}
	return f, nil
}

// crc24 is the CRC of RFC 9580 section 6.1.1.
func crc24(b []byte) uint32 {
	crc := uint32(0xb704ce)
	for _, c := range b {
		crc ^= uint32(c) << 16
		for range 8 {
			if crc <<= 1; crc&0x1000000 != 0 {
				crc ^= 0x864cfb | 0x1000000
			}
		}
	}
	return crc
}
