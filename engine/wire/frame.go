package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A Frame is one aggregated unit on a lane (SPEC.md section 2). A message to 100
// subscribers takes some 25 bytes in steady traffic: one of length, four of digest, and
// the control field.
type Frame struct {
	Digest   Digest // over the packets that the frame rebuilds
	Control  []byte // what a model.Coder wrote. Borrowed: by AppendFrame for the call; ParseFrame's are parts of its input
	Literals []byte // bytes that the control field counts, as coded. Borrowed, likewise
	Coding   Coding // how Literals are coded; meaningless without any
}

// Coding is the compression parameter of a frame's literals: 0 for none, else
// the level that a zstd encoder (RFC 8878) was given, 1 to 22. To a decoder all levels
// are the same; which one it was is for people who look at a frame.
type Coding uint8

// MaxCoding is the highest zstd level.
const MaxCoding Coding = 22

var (
	// ErrShort tells that more bytes are needed before a frame or a hello can be
	// parsed, and that what is there is the beginning of one. It is never wrapped.
	ErrShort = errors.New("wire: frame incomplete")
	// ErrFrame tells that the bytes cannot become a frame, whatever follows. The lane
	// has no way to go on behind them: the epoch is over.
	ErrFrame = errors.New("wire: malformed frame")
)

// digestLen is the length of the digest in a frame, in bytes.
const digestLen = 4

// MaxFrame is the largest frame, in bytes behind its length, that is ever written or
// accepted. A reader holds one frame at a time, so this is what a peer can make it
// hold before it has looked at a byte. The packets of a frame may have four times as
// much together (DefaultLimits): all of it is alike, or the writer ends the frame.
const MaxFrame = 1 << 20

// AppendFrame appends f to dst. A frame without literals does without the two fields
// that tell where they begin, which saves two bytes in most.
func AppendFrame(dst []byte, f Frame) []byte {
	n := digestLen + len(f.Control)
	var head [binary.MaxVarintLen64]byte
	literals := len(f.Literals) > 0
	if literals {
		k := binary.PutUvarint(head[:], uint64(len(f.Control)))
		n += k + 1 + len(f.Literals)
	}
	dst = binary.AppendUvarint(dst, uint64(n)<<1|uint64(b2i(literals)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(f.Digest))
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
	f.Digest = Digest(binary.LittleEndian.Uint32(body))
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

// A Digest is over the packets of one frame (SPEC.md 6.10), from 0 on: each one
// of a flow adds the CRC-32C of all that its flow has had so far, and each one
// that is carried verbatim continues the sum before it. So the order within a
// flow counts, and the place among all of a packet whose flow nobody knows; the
// order across flows does not. It guards against the two ends' having drifted apart in
// what they remember, and against what overtakes; the carrier guards against everything
// else. Of frames that are wrong it misses one in 2^32.
type Digest uint32

// Add adds a packet, borrowed for the call, of a flow whose packets so far have
// the checksum flow, 0 for none. It returns the flow's checksum with this one.
func (d *Digest) Add(flow uint32, packet []byte) uint32 {
	flow = crc(flow, packet)
	*d += Digest(flow)
	return flow
}

// AddVerbatim adds a packet, borrowed for the call, that is of no known flow.
func (d *Digest) AddVerbatim(packet []byte) { *d = Digest(crc(uint32(*d), packet)) }

// crc returns the CRC-32C (RFC 3720 appendix B.4) of some bytes and b behind them,
// where before is that of the former, 0 for none.
func crc(before uint32, b []byte) uint32 { return crc32.Update(before, castagnoli, b) }
