package seal

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// patterned returns n bytes that are no others', by a seed.
func patterned(n int, seed uint32) []byte {
	b := make([]byte, n)
	for i := range b {
		seed = seed*1664525 + 1013904223
		b[i] = byte(seed >> 24)
	}
	return b
}

func newKeys(t testing.TB, s Suite, seed uint32) *Keys {
	t.Helper()
	k, err := NewKeys(s, patterned(s.SecretLen(), seed))
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return k
}

var head = [3]byte{23, 3, 3}

// TestOpenAndSealDoNotAllocate holds it for all that is done for each record.
func TestOpenAndSealDoNotAllocate(t *testing.T) {
	for _, s := range Suites() {
		k, nonce := newKeys(t, s, 1), [8]byte{1}
		inner, room := patterned(150, 2), make([]byte, 0, 512)
		record := k.Seal(nil, head, &nonce, inner, 7)
		piece := make([]byte, 100)
		for name, f := range map[string]func(){
			"Open":      func() { k.Open(room, record, 7) },
			"not Open":  func() { k.Open(room, record, 8) },
			"Seal":      func() { k.Seal(room, head, &nonce, inner, 7) },
			"AppendTag": func() { k.AppendTag(room, head, &nonce, inner, 7) },
			"XOR":       func() { k.XOR(piece, inner[:100], 7, &nonce, 33) },
		} {
			if n := testing.AllocsPerRun(10, f); n > 0 {
				t.Errorf("%s: %s allocates %v times", s, name, n)
			}
		}
	}
}

// TestSealOpens is the round trip of any record under any number, keys of any generation,
// and of its pieces.
func TestSealOpens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(Suites()).Draw(t, "suite")
		k, err := NewKeys(s, patterned(s.SecretLen(), rapid.Uint32().Draw(t, "seed")))
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 3).Draw(t, "updates") {
			if s.TLS13() {
				if k, err = k.Next(); err != nil {
					t.Fatal(err)
				}
			}
		}
		number := rapid.Uint64().Draw(t, "number")
		nonce := [8]byte(patterned(8, rapid.Uint32().Draw(t, "nonce")))
		inner := patterned(rapid.IntRange(0, 1500).Draw(t, "length"), rapid.Uint32().Draw(t, "content"))
		before := []byte("before")
		record := k.Seal(bytes.Clone(before), head, &nonce, inner, number)[len(before):]
		if len(record) != len(inner)+k.Overhead() {
			t.Fatalf("%d bytes for %d and %d", len(record), len(inner), k.Overhead())
		}
		again, ok := k.Open(bytes.Clone(before), record, number)
		if !ok || !bytes.Equal(again, append(before, inner...)) {
			t.Fatalf("%v: %x, want %x", ok, again, inner)
		}
		if _, ok := k.Open(nil, record, number+1); ok {
			t.Fatal("opens under another number")
		}
		tag := k.AppendTag(bytes.Clone(before), head, &nonce, inner, number)
		if want := append(before, record[len(record)-TagLen:]...); !bytes.Equal(tag, want) {
			t.Fatalf("tag %x, want %x", tag, want)
		}
		text := record[HeadLen+k.NonceLen() : len(record)-TagLen]
		pieces := make([]byte, len(text))
		for off := 0; off < len(text); {
			end := min(len(text), off+rapid.IntRange(1, 200).Draw(t, "piece"))
			k.XOR(pieces[off:end], text[off:end], number, &nonce, off)
			off = end
		}
		if !bytes.Equal(pieces, inner) {
			t.Fatalf("pieces %x, want %x", pieces, inner)
		}
		k.XOR(pieces, pieces, number, &nonce, 0)
		if !bytes.Equal(pieces, text) {
			t.Fatalf("in place %x, want %x", pieces, text)
		}
	})
}

func BenchmarkOpenSeal(b *testing.B) {
	for _, s := range Suites() {
		if s == RSAAES128GCM || s == RSAAES256GCM || s == RSAChaCha20Poly1305 {
			continue // what ECDSA's have
		}
		for _, n := range []int{150, 1400} {
			b.Run(fmt.Sprintf("%s/%d", s, n), func(b *testing.B) {
				k, nonce := newKeys(b, s, 1), [8]byte{1}
				record := k.Seal(nil, head, &nonce, patterned(n-k.Overhead(), 2), math.MaxUint32)
				room, room2 := make([]byte, 0, n), make([]byte, 0, n)
				b.ReportAllocs()
				b.SetBytes(int64(n))
				for b.Loop() {
					inner, _ := k.Open(room, record, math.MaxUint32)
					k.Seal(room2, head, &nonce, inner, math.MaxUint32)
				}
			})
		}
	}
}
