package link

import (
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	// lengthSize is that of the length before each frame, in bytes, big endian (QEMU's
	// net/stream_data.c; its net/net.c reads it).
	lengthSize = 4

	// maxLength is the greatest length that a hypervisor has reason to write: QEMU has
	// buffers of NET_BUFSIZE, 4096 + 65536 bytes, for a frame (include/net/net.h), and
	// ends a connection with a greater one.
	maxLength = 4096 + 65536

	// splitterSize is the room for what is read at a time. It holds the longest frame
	// and the next one; more is no faster (BenchmarkStream), and each port has it.
	splitterSize = 2 * (lengthSize + MaxFrame)
)

var errLength = errors.New("no length of a frame")

// A splitter finds the frames in a stream of bytes, wherever that was cut.
//
//	buf   | given |  frame, frame, part of a frame  | room |
//	              start                             end
type splitter struct {
	buf        []byte
	start, end int
	skip       int    // bytes yet to come of a frame that is left out
	invalid    uint64 // frames left out: too short or too long
}

func newSplitter() *splitter { return &splitter{buf: make([]byte, splitterSize)} }

// reset forgets what is there, for another stream. The count stays.
func (s *splitter) reset() { s.start, s.end, s.skip = 0, 0, 0 }

// room returns where to read what comes next to; it is never empty if next has found no
// other frame.
func (s *splitter) room() []byte {
	if s.start > 0 {
		s.end = copy(s.buf, s.buf[s.start:s.end])
		s.start = 0
	}
	return s.buf[s.end:]
}

// filled takes n bytes that were read into room.
func (s *splitter) filled(n int) { s.end += n }

// next returns a frame, borrowed until room is called, or nil if none is complete. After
// an error nothing more can be found in this stream.
func (s *splitter) next() ([]byte, error) {
	for {
		if s.skip > 0 {
			n := min(s.skip, s.end-s.start)
			s.start, s.skip = s.start+n, s.skip-n
		}
		rest := s.buf[s.start:s.end]
		if len(rest) < lengthSize {
			return nil, nil
		}
		length := binary.BigEndian.Uint32(rest)
		switch {
		case length == 0 || length > maxLength:
			return nil, fmt.Errorf("length %d: %w", length, errLength)
		case length < MinFrame || length > MaxFrame:
			s.invalid++
			s.start += lengthSize
			s.skip = int(length)
		case len(rest) < lengthSize+int(length):
			return nil, nil
		default:
			s.start += lengthSize + int(length)
			return rest[lengthSize : lengthSize+length], nil
		}
	}
}
