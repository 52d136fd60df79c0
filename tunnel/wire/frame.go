package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A Frame is one aggregated unit on a lane (SPEC.md section 2).
type Frame struct {
	Digest   uint32 // over the packets that the frame rebuilds; see Digest
	Control  []byte // what a Coder wrote: the aggregation control field. Borrowed.
	Literals []byte // bytes that the control field counts, as coded. Borrowed.
	Coding   Coding // how Literals are coded; meaningless without any
}

// Coding is the compression parameter of a frame's literals: 0 for none, else
// the level that a zstd encoder (RFC 8878) was given, 1 to 22. A decoder needs
// the level only to know that the bytes are compressed.
type Coding uint8

// MaxCoding is the highest zstd level.
const MaxCoding Coding = 22

var (
	// ErrShort tells that more bytes are needed before the frame can be parsed.
	ErrShort = errors.New("wire: frame incomplete")
	// ErrFrame tells that the bytes are not a frame of this version.
	ErrFrame = errors.New("wire: malformed frame")
)

// digestLen is the length of the digest in a frame.
const digestLen = 4

// MaxFrame is the largest frame, in bytes behind its length, that is ever
// written or accepted.
const MaxFrame = 1 << 20

// AppendFrame appends f to dst.
func AppendFrame(dst []byte, f Frame) []byte {
	n := digestLen + len(f.Control)
	var head [binary.MaxVarintLen64]byte
	literals := len(f.Literals) > 0
	if literals {
		k := binary.PutUvarint(head[:], uint64(len(f.Control)))
		n += k + 1 + len(f.Literals)
	}
	dst = binary.AppendUvarint(dst, uint64(n)<<1|uint64(b2i(literals)))
	dst = binary.LittleEndian.AppendUint32(dst, f.Digest)
	if !literals {
		return append(dst, f.Control...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(f.Control)))
	dst = append(dst, byte(f.Coding))
	dst = append(dst, f.Control...)
	return append(dst, f.Literals...)
}

// ParseFrame parses the frame at the start of b and returns its length n. The
// frame's slices are parts of b. The error is ErrShort where b holds only the
// beginning of a frame, and wraps ErrFrame where it cannot become one.
func ParseFrame(b []byte) (f Frame, n int, err error) {
	v, k := binary.Uvarint(b)
	switch {
	case k == 0 && len(b) < binary.MaxVarintLen64:
		return Frame{}, 0, ErrShort
	case k <= 0 || v>>1 > MaxFrame:
		return Frame{}, 0, fmt.Errorf("%w: length above %d", ErrFrame, MaxFrame)
	case v>>1 < digestLen:
		return Frame{}, 0, fmt.Errorf("%w: %d bytes cannot hold the digest", ErrFrame, v>>1)
	}
	n = k + int(v>>1)
	if len(b) < n {
		return Frame{}, 0, ErrShort
	}
	body := b[k:n]
	f.Digest = binary.LittleEndian.Uint32(body)
	body = body[digestLen:]
	if v&1 == 0 {
		f.Control = body
		return f, n, nil
	}
	size, k := binary.Uvarint(body)
	// a byte for the coding and one of literals follow the control field at least
	if k <= 0 || len(body)-k < 2 || size > uint64(len(body)-k-2) {
		return Frame{}, 0, fmt.Errorf("%w: control field longer than the frame", ErrFrame)
	}
	f.Coding = Coding(body[k])
	if f.Coding > MaxCoding {
		return Frame{}, 0, fmt.Errorf("%w: literal coding %d", ErrFrame, f.Coding)
	}
	body = body[k+1:]
	f.Control, f.Literals = body[:size], body[size:]
	return f, n, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Digest adds a packet to the digest of a frame, which starts at 0: the sum, in
// 32 bits, of the CRC-32C (RFC 3720 appendix B.4) of all its packets, in any
// order. It guards against the two ends' memories having drifted apart; the
// carrier guards against everything else.
func Digest(sum uint32, packet []byte) uint32 {
	return sum + crc32.Checksum(packet, castagnoli)
}
