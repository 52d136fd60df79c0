package aggregate

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"sheaf/engine/aggregate/codec"
	"sheaf/engine/wire"
)

func TestLiteralsAreCompressedWhereThereAreEnough(t *testing.T) {
	for _, tt := range []struct {
		n, level int
		coding   wire.Coding
	}{
		{0, 3, 0}, {63, 3, 0}, {64, 3, 3}, {65, 3, 3}, {1000, 1, 1}, {1000, 22, 22}, {1000, -1, 0}, {1 << 16, -1, 0},
	} {
		c := compressor{level: tt.level}
		in := bytes.Repeat([]byte("a"), tt.n)
		out, coding := c.compress(in)
		if coding != tt.coding {
			t.Errorf("%d bytes, level %d: coding %d, expected %d", tt.n, tt.level, coding, tt.coding)
		}
		if coding == 0 && !bytes.Equal(out, in) || coding != 0 && len(out) >= len(in) {
			t.Errorf("%d bytes, level %d: %d bytes", tt.n, tt.level, len(out))
		}
	}
}

func TestLiteralsAreNotMadeLonger(t *testing.T) {
	longer, same, shorter := 0, 0, 0
	noise := make([]byte, 200)
	rand.NewChaCha8([32]byte{1}).Read(noise)
	for length := 100; length < 110; length++ {
		for n := range 30 { // more and more of them are as before
			in := append(bytes.Clone(noise[:length]), noise[:n]...)
			all := zstdOf(t, in)
			c := compressor{level: 3}
			out, coding := c.compress(in)
			want, by := in, wire.Coding(0)
			switch {
			case len(all) > len(in):
				longer++
			case len(all) == len(in):
				same++
			default:
				shorter++
				want, by = all, 3
			}
			if coding != by || !bytes.Equal(out, want) {
				t.Errorf("%d bytes of %d: coding %d", len(all), len(in), coding)
			}
		}
	}
	if longer == 0 || same == 0 || shorter == 0 {
		t.Errorf("%d are longer, %d as long, %d shorter: not all came up", longer, same, shorter)
	}
}

// zstdOf compresses as a compressor of level 3 does, whatever comes of it.
func zstdOf(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstdEncoder()
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(b, nil)
}

var zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(3)),
		zstd.WithEncoderCRC(false), zstd.WithSingleSegment(true))
})

func TestLiteralsComeThrough(t *testing.T) {
	c, d := compressor{level: 3}, decompressor{}
	for _, n := range []int{0, 1, 63, 64, 1000, 64, 1 << 18} {
		in := bytes.Repeat([]byte("literal "), (n+7)/8)[:n]
		out, coding := c.compress(in)
		got, err := d.decompress(wire.Frame{Literals: out, Coding: coding})
		if err != nil || !bytes.Equal(got, in) {
			t.Errorf("%d bytes: %d come out, %v", n, len(got), err)
		}
	}
}

func TestDamagedLiteralsAreAFaultOfTheFrame(t *testing.T) {
	in := bytes.Repeat([]byte("literal "), 30)
	packed := zstdOf(t, in)
	for name, tt := range map[string]struct {
		literals []byte
		coding   wire.Coding
		ok       bool
	}{
		"as it was":         {packed, 3, true},
		"of another level":  {packed, 1, true},
		"none":              {nil, 3, true},
		"not compressed":    {in, 0, true},
		"said to be":        {in, 3, false},
		"cut":               {packed[:len(packed)-1], 3, false},
		"not zstd":          {append([]byte{1}, packed[1:]...), 3, false},
		"more than a frame": {zstdOf(t, make([]byte, wire.MaxFrame+1)), 3, false},
	} {
		d := decompressor{}
		got, err := d.decompress(wire.Frame{Literals: tt.literals, Coding: tt.coding})
		if (err == nil) != tt.ok || err != nil && !errors.Is(err, codec.ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
		if !tt.ok && len(got) > 0 {
			t.Errorf("%s: %d bytes with an error", name, len(got))
		}
	}
}

// A frame whose literals are damaged ends the epoch.
func TestExpanderRefusesDamagedLiterals(t *testing.T) {
	p := newPair(t, Config{})
	x := &p.ends[1].Expander
	frame := wire.AppendFrame(nil, wire.Frame{Control: []byte{1, 2}, Literals: []byte("no zstd"), Coding: 3})
	for range 2 {
		if packets, n, err := x.Expand(frame); !errors.Is(err, ErrFrame) || errors.Is(err, ErrDigest) || len(packets)+n > 0 {
			t.Errorf("%d packets, %d bytes, %v", len(packets), n, err)
		}
	}
}

// A frame says how its literals are compressed; none is by default 3, and more than
// zstd has is its most.
func TestFrameTellsTheCodingOfItsLiterals(t *testing.T) {
	for level, coding := range map[int]wire.Coding{-1: 0, 0: 3, 1: 1, 9: 9, 22: 22, 23: 22} {
		m := newMerger(t, Config{Compression: level, Similarity: ByNothing})
		add(t, m, 0, data(1, strings.Repeat("again and ", 20)).Packet())
		f, _, err := wire.ParseFrame(m.Flush(nil, 0, FlushEnd))
		if err != nil || f.Coding != coding || len(f.Literals) == 0 {
			t.Errorf("level %d: coding %d of %d bytes, expected %d, %v", level, f.Coding, len(f.Literals), coding, err)
		}
	}
}
