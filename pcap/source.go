package pcap

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

const bufferSize = 64 << 10

// maxWindow is the largest window of a zstd stream that is read, in bytes: that of
// zstd --ultra and --long by themselves. So much is allocated only where a stream
// says that it needs it.
const maxWindow = 128 << 20

// A source is the byte stream of a capture, decompressed.
type source struct {
	in  counter       // what was taken from the caller's reader
	raw *bufio.Reader // over in
	br  *bufio.Reader // the capture: raw itself or over its decompression
	off int64         // bytes of the capture consumed
	buf []byte        // what take returned
}

// A counter counts the bytes that pass through it.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func newSource(r io.Reader) (*source, error) {
	s := &source{in: counter{r: r}}
	s.raw = bufio.NewReaderSize(&s.in, bufferSize)
	s.br = s.raw
	magic, _ := s.raw.Peek(4) // an input too short to tell fails later, as a capture
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}): // RFC 1952 section 2.3.1
		z, err := gzip.NewReader(s.raw)
		if err != nil {
			return nil, fmt.Errorf("gzip: %w", err)
		}
		s.br = bufio.NewReaderSize(z, bufferSize)
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}): // RFC 8878 section 3.1.1
		// One at a time is without goroutines, so there is nothing to close.
		z, err := zstd.NewReader(s.raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("zstd: %w", err)
		}
		s.br = bufio.NewReaderSize(z, bufferSize)
	}
	return s, nil
}

// archives are what captures come in that this package does not unpack, by their
// first bytes.
var archives = []struct{ magic, name string }{
	{"\xfd7zXZ\x00", "xz"}, {"BZh", "bzip2"}, {"\x04\x22\x4d\x18", "lz4"}, {"PK\x03\x04", "zip"}, {"7z\xbc\xaf", "7z"},
}

// archived returns what a capture is packed with, "" where it is not known.
func (s *source) archived() string {
	for _, a := range archives {
		if b, _ := s.peek(len(a.magic)); string(b) == a.magic {
			return a.name
		}
	}
	return ""
}

// inputOffset returns how much of the caller's input was consumed, in bytes.
func (s *source) inputOffset() int64 { return s.in.n - int64(s.raw.Buffered()) }

// take consumes n bytes and returns them, borrowed until the next take. The
// caller has bounded n. The error is io.EOF only if the input ends before the
// first of them, and io.ErrUnexpectedEOF if it ends among them.
func (s *source) take(n int) ([]byte, error) {
	if n > cap(s.buf) {
		s.buf = make([]byte, max(n, 2*cap(s.buf), 4096))
	}
	b := s.buf[:n]
	return b, s.fill(b)
}

// fill consumes as many bytes as b takes; its error is that of take.
func (s *source) fill(b []byte) error {
	got, err := io.ReadFull(s.br, b)
	s.off += int64(got)
	return err
}

// peek returns the next n bytes, at most 64 KiB, without consuming them,
// borrowed until any other call, or fewer of them and an error.
func (s *source) peek(n int) ([]byte, error) { return s.br.Peek(n) }

// skip consumes n bytes unseen.
func (s *source) skip(n int64) error {
	for n > 0 {
		got, err := s.br.Discard(int(min(n, 1<<30))) // Discard takes an int, which may have 32 bits
		s.off += int64(got)
		n -= int64(got)
		if err != nil {
			return unexpected(err)
		}
	}
	return nil
}

// unexpected turns io.EOF, where more had to come, into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
