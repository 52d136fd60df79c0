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

// TestOpenRefuses holds it for each byte of a record, and for what its head says of its
// length.
func TestOpenRefuses(t *testing.T) {
	for _, s := range Suites() {
		k := newKeys(t, s, 1)
		record := k.Seal(nil, head, &[8]byte{1}, []byte("inner"), 7)
		for i := range record {
			for _, bad := range [][]byte{bytes.Clone(record), record[:i], append(bytes.Clone(record), 0)} {
				if len(bad) == len(record) {
					bad[i] ^= 1
				}
				dst := []byte("dst")
				if got, ok := k.Open(dst, bad, 7); ok || string(got) != "dst" {
					t.Fatalf("%s: byte %d of %d: %q, %v", s, i, len(bad), got, ok)
				}
			}
		}
	}
}

// TestOpenBoundsFragment holds the longest record, and the first that is longer.
func TestOpenBoundsFragment(t *testing.T) {
	for _, s := range Suites() {
		k := newKeys(t, s, 1)
		longest := patterned(HeadLen+MaxFragment-k.Overhead(), 2)
		if got, ok := k.Open(nil, k.Seal(nil, head, new([8]byte), longest, 1), 1); !ok || !bytes.Equal(got, longest) {
			t.Errorf("%s: the longest does not open", s)
		}
		if _, ok := k.Open(nil, k.Seal(nil, head, new([8]byte), append(longest, 0), 1), 1); ok {
			t.Errorf("%s: a longer one opens", s)
		}
	}
}

// TestInPlace holds that a record is opened and sealed where it stands.
func TestInPlace(t *testing.T) {
	for _, s := range Suites() {
		k, nonce := newKeys(t, s, 1), [8]byte{1}
		record := k.Seal(nil, head, &nonce, []byte("inner"), 7)
		want, begin := bytes.Clone(record), HeadLen+k.NonceLen()
		inner, ok := k.Open(record[begin:begin], record, 7)
		if !ok || string(inner) != "inner" || &inner[0] != &record[begin] {
			t.Fatalf("%s: %q, %v", s, inner, ok)
		}
		if again := k.Seal(record[:0], head, &nonce, inner, 7); !bytes.Equal(again, want) || &again[0] != &record[0] {
			t.Errorf("%s: %x, want %x", s, again, want)
		}
	}
}

// TestAdditionalData12 holds that type and version are of what TLS 1.2 protects, as they
// stand in the head (RFC 5246 section 6.2.3.3).
func TestAdditionalData12(t *testing.T) {
	k := newKeys(t, ECDSAAES128GCM, 1)
	aad := k.additional([3]byte{22, 3, 3}, 0x0102030405060708, 0x090a)
	if want := []byte{1, 2, 3, 4, 5, 6, 7, 8, 22, 3, 3, 9, 10}; !bytes.Equal(aad, want) {
		t.Errorf("%x, want %x", aad, want)
	}
}

// FuzzOpen opens any record with keys that fit it or not: what opens is sealed to the same
// bytes, and its pieces are those of the plaintext.
func FuzzOpen(f *testing.F) {
	for i, s := range Suites() {
		k, err := NewKeys(s, patterned(s.SecretLen(), uint32(i)))
		if err != nil {
			f.Fatal(err)
		}
		record := k.Seal(nil, head, &[8]byte{1}, []byte("inner\x17\x00"), uint64(i))
		f.Add(uint8(i), uint32(i), record, uint64(i), 3)
		f.Add(uint8(i), uint32(i), record[HeadLen+k.NonceLen():len(record)-TagLen], uint64(i), 0)
	}
	f.Fuzz(func(t *testing.T, suite uint8, seed uint32, b []byte, number uint64, cut int) {
		s := Suites()[int(suite)%len(suites)]
		k := newKeys(t, s, seed)
		nonce := [8]byte(patterned(8, seed))
		record := b
		inner, ok := k.Open(nil, record, number)
		if !ok { // then what it holds is sealed, for what lies behind the proof
			if len(b) > MaxFragment-k.Overhead() {
				return
			}
			record = k.Seal(nil, head, &nonce, b, number)
			if inner, ok = k.Open(nil, record, number); !ok {
				t.Fatalf("%s: what was sealed does not open", s)
			}
		}
		copy(nonce[:k.NonceLen()], record[HeadLen:])
		if again := k.Seal(nil, [3]byte(record), &nonce, inner, number); !bytes.Equal(again, record) {
			t.Fatalf("%s: sealed to %x, was %x", s, again, record)
		}
		Find(k, record, number, number+1)
		if cut < 0 || cut > len(inner) {
			return
		}
		text := record[HeadLen+k.NonceLen() : len(record)-TagLen]
		k.XOR(text[cut:], text[cut:], number, &nonce, cut)
		k.XOR(text[:cut], text[:cut], number, &nonce, 0)
		if !bytes.Equal(text, inner) {
			t.Fatalf("%s: pieces cut at %d: %x, want %x", s, cut, text, inner)
		}
	})
}

// BenchmarkXOR is the cost of a piece that begins within a block.
func BenchmarkXOR(b *testing.B) {
	for _, s := range []Suite{AES128GCM13, AES256GCM13, ChaCha20Poly130513} {
		for _, n := range []int{16, 100, 1400} {
			b.Run(fmt.Sprintf("%s/%d", s, n), func(b *testing.B) {
				k, piece := newKeys(b, s, 1), patterned(n, 2)
				b.ReportAllocs()
				b.SetBytes(int64(n))
				for b.Loop() {
					k.XOR(piece, piece, 1, nil, 7)
				}
			})
		}
	}
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
