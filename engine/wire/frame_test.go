package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// varint returns v as SPEC.md section 1 writes it.
func varint(v uint64) string { return string(binary.AppendUvarint(nil, v)) }

// parse is ParseFrame, with a panic as an error.
func parse(t *testing.T, b []byte) (f Frame, n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("% x: panic: %v", b, p)
		}
	}()
	return ParseFrame(b)
}

func TestParseFrameErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string
		want error
	}{
		{"nothing", "", ErrShort},
		{"half a length", "\x80", ErrShort},
		{"nine bytes of a length", "\x80\x80\x80\x80\x80\x80\x80\x80\x80", ErrShort},
		{"ten bytes of a length", "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", ErrFrame},
		{"length past 64 bits", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", ErrFrame},
		{"largest length", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ErrFrame},
		{"length one past the limit", varint((MaxFrame + 1) << 1), ErrFrame},
		{"length at the limit", varint(MaxFrame << 1), ErrShort},
		{"no room for the digest", varint(3<<1) + "abc", ErrFrame},
		{"length 0", "\x00", ErrFrame},
		{"digest only", varint(4<<1) + "abcd", nil},
		{"digest cut", varint(4<<1) + "abc", ErrShort},
		{"literals without a control length", varint(4<<1|1) + "abcd", ErrFrame},
		{"literals without a coding", varint(5<<1|1) + "abcd\x00", ErrFrame},
		{"literals of no bytes", varint(6<<1|1) + "abcd\x00\x00", ErrFrame},
		{"literals of one byte", varint(7<<1|1) + "abcd\x00\x00x", nil},
		{"control length unfinished", varint(6<<1|1) + "abcd\x80\x80", ErrFrame},
		{"control field longer than the frame", varint(8<<1|1) + "abcd\x02\x00xy", ErrFrame},
		{"control length of 64 bits", varint(16<<1|1) + "abcd\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00x", ErrFrame},
		{"control length that overflows", varint(16<<1|1) + "abcd\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00x", ErrFrame},
		{"control length that overflows at the end", varint(14<<1|1) + "abcd\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", ErrFrame},
		{"control length past 64 bits", varint(16<<1|1) + "abcd\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00x", ErrFrame},
		{"unknown coding", varint(7<<1|1) + "abcd\x00\x17x", ErrFrame},
		{"highest coding", varint(7<<1|1) + "abcd\x00\x16x", nil},
		{"length written long", "\x88\x80\x00abcd", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, n, err := parse(t, []byte(tt.in))
			if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if err != nil && (n != 0 || f.Control != nil || f.Literals != nil) {
				t.Errorf("%d bytes, %+v beside %v", n, f, err)
			}
			if err == nil && n != len(tt.in) {
				t.Errorf("%d bytes, want %d", n, len(tt.in))
			}
		})
	}
}

// A short frame is the bare error, so that callers may compare it.
func TestShortIsBare(t *testing.T) {
	if _, _, err := ParseFrame(nil); err != ErrShort {
		t.Errorf("frame: %v", err)
	}
	if _, _, err := ParseHello(nil); err != ErrShort {
		t.Errorf("hello: %v", err)
	}
}

var genFrame = rapid.Custom(func(t *rapid.T) Frame {
	f := Frame{
		Digest:   Digest(rapid.Uint32().Draw(t, "digest")),
		Control:  rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "control"),
		Literals: rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "literals"),
	}
	if len(f.Literals) > 0 {
		f.Coding = Coding(rapid.IntRange(0, int(MaxCoding)).Draw(t, "coding"))
	}
	return f
})

// Frames come back from a stream of them, and at every cut are short.
func TestFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.SliceOfN(genFrame, 1, 4).Draw(t, "frames")
		var stream []byte
		for _, f := range frames {
			stream = AppendFrame(stream, f)
		}
		for _, want := range frames {
			got, n, err := ParseFrame(stream)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			for cut := range n {
				if _, _, err := ParseFrame(stream[:cut]); err != ErrShort {
					t.Fatalf("cut at %d of %d: %v", cut, n, err)
				}
			}
			stream = stream[n:]
		}
		if len(stream) != 0 {
			t.Fatalf("%d bytes left", len(stream))
		}
	})
}

func TestDigest(t *testing.T) {
	// RFC 3720 appendix B.4
	zeros, ones := make([]byte, 32), bytes.Repeat([]byte{0xff}, 32)
	var d Digest
	if flow := d.Add(0, zeros); flow != 0x8a9136aa || d != 0x8a9136aa {
		t.Errorf("32 zeros: %#x, flow %#x", d, flow)
	}
	d = 0
	if d.AddVerbatim(ones); d != 0x62a8ab43 {
		t.Errorf("32 ones: %#x", d)
	}
	d = 0xffffffff
	if d.Add(0, []byte("123456789")); d != Digest(crc32.Checksum([]byte("123456789"), castagnoli))-1 {
		t.Errorf("the sum does not wrap: %#x", d)
	}
}

// The order within a flow and the place of what is carried as it is are covered,
// the order across flows is not.
func TestDigestCoversOrder(t *testing.T) {
	// a packet is a letter for its flow, - for none, and a number
	digest := func(packets ...string) (d Digest) {
		flows := map[byte]uint32{'b': 7} // of which there were packets in earlier frames
		for _, p := range packets {
			if p[0] == '-' {
				d.AddVerbatim([]byte(p))
			} else {
				flows[p[0]] = d.Add(flows[p[0]], []byte(p))
			}
		}
		return d
	}
	all := []string{"a1", "b1", "a2", "-1", "b2", "a3", "a4", "-2", "-3", "b3", "b4"}
	want := digest(all...)
	for i := range len(all) - 1 {
		swapped := append([]string(nil), all...)
		swapped[i], swapped[i+1] = all[i+1], all[i]
		free := all[i][0] != all[i+1][0] && all[i][0] != '-' && all[i+1][0] != '-'
		if got := digest(swapped...); (got == want) != free {
			t.Errorf("%s before %s: %#x, else %#x", all[i+1], all[i], got, want)
		}
		if got := digest(append(append([]string(nil), all[:i]...), all[i+1:]...)...); got == want {
			t.Errorf("without %s it is the same", all[i])
		}
	}
	if digest("a1", "a1") == digest("a1") || digest("-1", "-1") == digest("-1") || digest("a1", "b1") == digest("a1", "c1") {
		t.Error("packets that are left out or of another flow go unseen")
	}
}

func FuzzParseFrame(f *testing.F) {
	f.Add(AppendFrame(nil, Frame{}))
	f.Add(AppendFrame(nil, Frame{Digest: 1, Control: []byte("control")}))
	f.Add(AppendFrame(nil, Frame{Digest: 1, Control: []byte("control"), Literals: []byte("literals"), Coding: 3}))
	f.Add([]byte("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"))
	f.Add([]byte("\x21abcd\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00x")) // a control length near 2^64
	f.Add([]byte("\x1dabcd\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, n, err := ParseFrame(b)
		if err != nil {
			if n != 0 || err != ErrShort && !errors.Is(err, ErrFrame) {
				t.Fatalf("%d bytes, %v", n, err)
			}
			return
		}
		if n < 1+digestLen || n > len(b) || len(fr.Control)+len(fr.Literals) > n {
			t.Fatalf("%d of %d bytes, %d of control, %d of literals", n, len(b), len(fr.Control), len(fr.Literals))
		}
		again, _, err := ParseFrame(AppendFrame(nil, fr))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fr, again, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-first +again):\n%s", diff)
		}
	})
}

func TestFrameAllocates(t *testing.T) {
	f := Frame{Digest: 7, Control: make([]byte, 40), Literals: make([]byte, 200), Coding: 3}
	buf := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() {
		buf = AppendFrame(buf[:0], f)
		if _, _, err := ParseFrame(buf); err != nil {
			t.Fatal(err)
		}
		if _, _, err := ParseFrame(buf[:9]); err != ErrShort {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("allocates %g times", n)
	}
}

func BenchmarkParseFrame(b *testing.B) {
	buf := AppendFrame(nil, Frame{Digest: 7, Control: make([]byte, 40), Literals: make([]byte, 200), Coding: 3})
	for b.Loop() {
		if _, _, err := ParseFrame(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	packet := make([]byte, 200)
	var d Digest
	flow := uint32(0)
	for b.Loop() {
		flow = d.Add(flow, packet)
	}
}
