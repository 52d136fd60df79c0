package pcap

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

func gzipped(tb testing.TB, b []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func zstandard(tb testing.TB, b []byte) []byte {
	tb.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return z.EncodeAll(b, nil)
}

func TestReaderGzip(t *testing.T) {
	file := plain(LinkRaw).file(ip4, ip6, ip4)
	want, err := readAll(t, file)
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string][]byte{
		"one member":  gzipped(t, file),
		"zstd":        zstandard(t, file),
		"two frames":  append(zstandard(t, file[:50]), zstandard(t, file[50:])...),
		"two members": append(gzipped(t, file[:50]), gzipped(t, file[50:])...),
	} {
		got, err := readAll(t, in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: packets differ (-plain +packed):\n%s", name, diff)
		}
	}
}

func TestReaderGzipDamage(t *testing.T) {
	// Bytes that do not compress, or a cut would lose the whole capture.
	frames := make([][]byte, 100)
	for i := range frames {
		frames[i] = append(append([]byte{}, ip4...), make([]byte, 1000)...)
		for j := range frames[i][24:] {
			frames[i][24+j] = byte(i * j >> 3)
		}
	}
	z := gzipped(t, plain(LinkRaw).file(frames...))
	got, err := readAll(t, z[:len(z)/2])
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) == 0 || len(got) == len(frames) {
		t.Errorf("cut in half: got %d packets, %v", len(got), err)
	}
	got, err = readAll(t, z[:len(z)-4])
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(got) != len(frames) {
		t.Errorf("cut in the trailer: got %d packets, %v", len(got), err)
	}
	z[len(z)-5] ^= 1
	got, err = readAll(t, z)
	if !errors.Is(err, gzip.ErrChecksum) || len(got) != len(frames) {
		t.Errorf("wrong checksum: got %d packets, %v", len(got), err)
	}
	if _, err = NewReader(bytes.NewReader(z[:5])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut in the header: got %v", err)
	}
}

func TestReaderZstdDamage(t *testing.T) {
	file := plain(LinkRaw).file(ip4, ip6, ip4)
	z := zstandard(t, file)
	for n := 4; n < len(z); n++ {
		if _, err := readAll(t, z[:n]); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut to %d bytes: got %v", n, err)
		}
	}
	z[len(z)-1] ^= 1
	if got, err := readAll(t, z); !errors.Is(err, zstd.ErrCRCMismatch) {
		t.Errorf("wrong checksum: got %d packets, %v", len(got), err)
	}
	// A window of 1 GiB: magic, no flags, 2^(10 + 20).
	if _, err := NewReader(bytes.NewReader(hexBytes("28b52ffd 00 a0", "000000", strings.Repeat("00", 20)))); !errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Errorf("a window of 1 GiB: got %v", err)
	}
}

func TestReaderNotACapture(t *testing.T) {
	for name, in := range map[string][]byte{
		"empty":          {},
		"two bytes":      {0xd4, 0xc3},
		"text":           []byte("GET / HTTP/1.1\r\n\r\n"),
		"gzipped text":   gzipped(t, []byte("some text, not a capture")),
		"gzipped twice":  gzipped(t, gzipped(t, plain(LinkRaw).file(ip4))),
		"gzip of naught": gzipped(t, nil),
		"zstd of naught": zstandard(t, nil),
		"xz":             []byte("\xfd7zXZ\x00\x00\x04"),
		"lz4":            []byte("\x04\x22\x4d\x18\x64\x40\xa7"),
	} {
		_, err := NewReader(bytes.NewReader(in))
		var fe *FileError
		if !errors.Is(err, ErrFormat) || !errors.As(err, &fe) {
			t.Errorf("%s: got %v, want a *FileError with ErrFormat", name, err)
		}
		if fe != nil && strings.HasPrefix(name, "xz") != strings.Contains(fe.What, "packed with xz") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A failing disk or pipe is told apart from a damaged file.
func TestReaderInputFails(t *testing.T) {
	broken := errors.New("the disk is on fire")
	file := plain(LinkRaw).file(ip4, ip4)
	for _, n := range []int{0, 2, 10, 70, 80, len(file)} {
		r, err := NewReader(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken)))
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, broken) {
			t.Errorf("failing after %d bytes: got %v", n, err)
		}
	}
}

func TestReaderSmallReads(t *testing.T) {
	for name, file := range map[string][]byte{
		"classic": plain(LinkRaw).file(ip4, ip6),
		"pcapng":  join(ngBig.section(), ngBig.iface(LinkRaw, 0), ngBig.enhanced(0, 0, ip4, 24), ngBig.simple(ip6, 44)),
	} {
		r, err := NewReader(iotest.OneByteReader(bytes.NewReader(file)))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range [][]byte{ip4, ip6} {
			if p, err := r.Next(); err != nil || !bytes.Equal(p.Data, want) {
				t.Errorf("%s: got %+v, %v", name, p, err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: got %v, want io.EOF", name, err)
		}
		if got := r.InputOffset(); got != int64(len(file)) {
			t.Errorf("%s: InputOffset() = %d, want %d", name, got, len(file))
		}
	}
}

func TestReaderInputOffset(t *testing.T) {
	c := plain(LinkRaw)
	r, err := NewReader(bytes.NewReader(c.file(ip4, ip4)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{24, 64, 104} {
		if got := r.InputOffset(); got != want {
			t.Errorf("got %d, want %d", got, want)
		}
		r.Next()
	}
}

// endless yields a header and then one chunk again and again.
type endless struct {
	head, chunk, rest []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if e.head != nil {
		e.rest, e.head = e.head, nil
	}
	if len(e.rest) == 0 {
		e.rest = e.chunk
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func endlessCaptures() map[string]*endless {
	c := plain(LinkEthernet)
	frame := hexBytes(macHex, "8100 0001 0800", ip4Hex)
	arp := hexBytes(macHex, "0806 0001")
	n := ngLittle
	return map[string]*endless{
		"classic": {head: c.header(), chunk: join(c.record(frame, len(frame)), c.record(arp, len(arp)))},
		"pcapng": {head: join(n.section(), n.iface(LinkEthernet, 0, n.resol(9)), n.iface(252, 0)),
			chunk: join(n.enhanced(0, 1, frame, len(frame)), n.block(5, make([]byte, 20)), n.simple(frame, len(frame)), n.enhanced(1, 1, frame, len(frame)))},
	}
}

func TestReaderAllocations(t *testing.T) {
	for name, in := range endlessCaptures() {
		r, err := NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		next := func() {
			if _, err := r.Next(); err != nil {
				t.Fatal(err)
			}
		}
		next() // the first record makes the buffer
		if got := testing.AllocsPerRun(1000, next); got != 0 {
			t.Errorf("%s: %v allocations in a Next, want 0", name, got)
		}
	}
}

// Claimed lengths alone must not make the reader allocate.
func TestReaderMemory(t *testing.T) {
	n := ngLittle
	huge := n.block(0x0bad, make([]byte, 8))
	binary.LittleEndian.PutUint32(huge[4:], 0xfffffffc)
	absurd := plain(LinkRaw)
	absurd.snap = 0xffffffff
	rec := absurd.record(nil, 0)
	binary.LittleEndian.PutUint32(rec[8:], 0xffffffff)
	for name, file := range map[string][]byte{
		"block of 4 GiB":  join(n.section(), huge),
		"packet of 4 GiB": join(absurd.header(), rec),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := readAll(t, file); err == nil {
			t.Errorf("%s: no error", name)
		}
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
			t.Errorf("%s: %d bytes allocated", name, got)
		}
	}
}

func TestSkipReasonString(t *testing.T) {
	for s := range numSkipReasons + 1 {
		if got := s.String(); got == "" || (s < numSkipReasons) == strings.HasPrefix(got, "SkipReason(") {
			t.Errorf("reason %d is %q", uint8(s), got)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for name, in := range endlessCaptures() {
		b.Run(name, func(b *testing.B) {
			r, err := NewReader(in)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleReader() {
	file := plain(LinkEthernet).file(hexBytes(macHex, "0800", ip4Hex), hexBytes(macHex, "0806 0001"))
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		fmt.Println(err)
		return
	}
	var clock Clock
	for {
		p, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if p.Skip != SkipNone {
			fmt.Printf("packet %d: %v\n", p.Number, p.Skip)
			continue
		}
		fmt.Printf("packet %d: %d bytes of IP at %v\n", p.Number, len(p.Data), clock.At(p.Time))
	}
	// Output:
	// packet 1: 24 bytes of IP at 0s
	// packet 2: not IP
}
