package seal

import (
	"fmt"
	"testing"
)

// TestFind holds the bounds of the numbers that are looked at, for every suite.
func TestFind(t *testing.T) {
	for _, s := range Suites() {
		k := newKeys(t, s, 1)
		inner := append(patterned(100, 2), 23)
		const number = 1000
		record := k.Seal(nil, head, &[8]byte{0xff}, inner, number)
		for _, tt := range []struct {
			from, to uint64
			ok       bool
		}{
			{number, number + 1, true},
			{0, number + 1, true},
			{number, number + 100, true},
			{0, number, false},
			{number + 1, number + 100, false},
			{number, number, false},
			{number + 1, number, false},
		} {
			got, ok := Find(k, record, tt.from, tt.to)
			if ok != tt.ok || ok && got != number {
				t.Errorf("%s: in %d to %d found %d, %v", s, tt.from, tt.to, got, ok)
			}
		}
		for cut := range len(record) {
			if n, ok := Find(k, record[:cut], 0, number+1); ok {
				t.Fatalf("%s: in %d bytes found %d", s, cut, n)
			}
		}
		if n, ok := Find(newKeys(t, s, 9), record, 0, 2*number); ok {
			t.Errorf("%s: found %d with other keys", s, n)
		}
	}
}

// TestFindBehindPadding holds that records are found whatever their length is to the
// cipher's block, and with zeros to more than a block.
func TestFindBehindPadding(t *testing.T) {
	for _, s := range Suites() {
		k := newKeys(t, s, 1)
		for typ := byte(21); s.TLS13() && typ <= 23; typ++ {
			for length := range 70 {
				for _, zeros := range []int{0, 1, 15, 16, 70} {
					inner := append(append(patterned(length, 2), typ), make([]byte, zeros)...)
					record := k.Seal(nil, head, nil, inner, 5)
					if n, ok := Find(k, record, 0, 9); !ok || n != 5 {
						t.Fatalf("%s: content type %d behind %d bytes, %d zeros: %d, %v", s, typ, length, zeros, n, ok)
					}
				}
			}
		}
	}
}

// TestFindNonceFirst holds that a nonce in the range is the first number to be tried in
// TLS 1.2 with AES-GCM, and only there: a million others would take a second.
func TestFindNonceFirst(t *testing.T) {
	k := newKeys(t, ECDSAAES128GCM, 1)
	const number = 1 << 62
	record := k.Seal(nil, head, &[8]byte{0x40}, []byte("inner"), number)
	if n, ok := Find(k, record, 0, number+1); !ok || n != number {
		t.Errorf("%d, %v", n, ok)
	}
}

// TestLikelyIsRare holds what Find's first test is for: few numbers that are wrong pass it.
func TestLikelyIsRare(t *testing.T) {
	const tried, most = 10000, 10000 / 50 // 3 of 256 are expected
	for _, s := range Suites() {
		if !s.TLS13() {
			continue
		}
		k := newKeys(t, s, 1)
		record := k.Seal(nil, head, nil, append(patterned(100, 2), 23), 1<<40)
		passed := 0
		for n := range uint64(tried) {
			if k.likely(record, n) {
				passed++
			}
		}
		if passed > most {
			t.Errorf("%s: %d of %d numbers pass", s, passed, tried)
		}
	}
}

// BenchmarkFind is the cost of a number that is wrong.
func BenchmarkFind(b *testing.B) {
	for _, s := range []Suite{AES128GCM13, ChaCha20Poly130513, ECDSAAES128GCM, ECDSAChaCha20Poly1305} {
		for _, n := range []int{150, 1400} {
			b.Run(fmt.Sprintf("%s/%d", s, n), func(b *testing.B) {
				k := newKeys(b, s, 1)
				record := k.Seal(nil, head, &[8]byte{0xff}, append(patterned(n, 2), 23), 1<<40)
				b.ReportAllocs()
				from := uint64(0)
				for b.Loop() {
					Find(k, record, from, from+1)
					from++
				}
			})
		}
	}
}
