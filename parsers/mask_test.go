package parsers_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// The example of RFC 6455, 5.7.
func TestMask(t *testing.T) {
	got := parsers.Mask([]byte("<"), []byte{0x7f, 0x9f, 0x4d, 0x51, 0x58}, 0x37fa213d, 0)
	if string(got) != "<Hello" {
		t.Errorf("%q", got)
	}
}

func TestMaskIsByteByByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes")
		key := rapid.Uint32().Draw(t, "key")
		phase := rapid.Uint8Range(0, 3).Draw(t, "phase")
		k := binary.BigEndian.AppendUint32(nil, key)
		want := bytes.Clone(b)
		for i := range want {
			want[i] ^= k[(i+int(phase))%4]
		}
		got := parsers.Mask(nil, b, key, phase)
		if !bytes.Equal(got, want) {
			t.Fatalf("%x, want %x", got, want)
		}
		// in two parts, the second with the phase where the first ends
		at := rapid.IntRange(0, len(b)).Draw(t, "cut")
		parts := parsers.Mask(parsers.Mask(nil, b[:at], key, phase), b[at:], key, uint8((int(phase)+at)&3))
		if !bytes.Equal(parts, want) {
			t.Fatalf("in parts %x, want %x", parts, want)
		}
		if parsers.MaskInPlace(got, key, phase); !bytes.Equal(got, b) {
			t.Fatalf("twice %x, want %x", got, b)
		}
	})
}
