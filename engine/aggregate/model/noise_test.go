package model

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestNoise holds what Noise is for: of random bytes it knows nearly all, of what
// a model can make shorter it takes nearly nothing for random.
func TestNoise(t *testing.T) {
	source := rand.NewChaCha8([32]byte{3})
	random := rand.New(source)
	bytesOf := func(n int) []byte {
		b := make([]byte, n)
		source.Read(b)
		return b
	}
	floats := func(n int) []byte {
		var b []byte
		for len(b) < n {
			b = binary.BigEndian.AppendUint64(b, math.Float64bits(20+random.Float64()))
		}
		return b[:n]
	}
	numbers := func(n int) []byte {
		var b []byte
		for len(b) < n {
			b = binary.LittleEndian.AppendUint32(b, random.Uint32N(100000))
		}
		return b[:n]
	}
	text := func(alphabet string) func(int) []byte {
		return func(n int) []byte {
			var b strings.Builder
			runes := []rune(alphabet)
			for b.Len() < n {
				b.WriteRune(runes[random.IntN(len(runes))])
			}
			return []byte(b.String())
		}
	}
	zipped := func(n int) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write([]byte(hex.EncodeToString(bytesOf(400 + 2*n))))
		w.Close()
		return b.Bytes()[200 : 200+n] // behind its tables
	}
	for _, tt := range []struct {
		name  string
		make  func(n int) []byte
		sizes []int
		noise bool
	}{
		{"random", bytesOf, []int{12, 16, 20, 32, 64, 100, 128, 129, 200, 500, 1400, 20000}, true},
		{"gzip", zipped, []int{20, 100, 400}, true},
		{"too few", bytesOf, []int{0, 1, 11}, false},
		{"text", text("the quick brown fox {}:,"), []int{12, 40, 1400}, false},
		{"Cyrillic", text("привет мир"), []int{12, 40, 1400}, false},
		{"hexadecimal", func(n int) []byte { return []byte(hex.EncodeToString(bytesOf(n))) }, []int{12, 400}, false},
		{"base64", func(n int) []byte { return []byte(base64.StdEncoding.EncodeToString(bytesOf(n))) }, []int{12, 400}, false},
		{"floats", floats, []int{128, 400, 1400}, false},
		{"numbers", numbers, []int{32, 100, 400, 1400}, false}, // at 400 every fourth byte is of the lowest
		{"zeros", func(n int) []byte { return make([]byte, n) }, []int{12, 1400}, false},
	} {
		for _, n := range tt.sizes {
			const tries = 400
			found := 0
			for range tries {
				if Noise(tt.make(n)) {
					found++
				}
			}
			if right := max(found, tries-found); right < tries*96/100 || (found > tries/2) != tt.noise {
				t.Errorf("%s, %d bytes: %d of %d look random", tt.name, n, found, tries)
			}
		}
	}
}

// Random bytes cost what they are and little more, with a base or without,
// and what is known before them nothing.
func TestNoiseCost(t *testing.T) {
	source := rand.NewChaCha8([32]byte{4})
	w, r := new(Body), new(Body)
	head := "site/line 7/data: "
	base, took, size := []byte(nil), 0, 0
	const bodies = 400
	for i := range bodies {
		body := make([]byte, len(head)+20+i%100)
		source.Read(body[copy(body, head):])
		var c Coder
		c.Write(nil)
		if _, err := w.Code(&c, nil, planned(base, body, 0)); err != nil {
			t.Fatal(err)
		}
		control, literals := c.Finish(), c.Literals
		took += len(control) + len(literals)
		size += len(body) - len(head)
		c.Read(control)
		c.Literals = literals
		if got, err := r.Code(&c, nil, &Edit{Base: base, Limit: len(body)}); err != nil || !bytes.Equal(got, body) {
			t.Fatalf("read %x, %v; written %x", got, err, body)
		}
		if len(literals) > 0 { // one less is an error
			var x Body
			c.Read(control)
			c.Literals = literals[1:]
			if _, err := x.Code(&c, nil, &Edit{Base: base, Limit: len(body)}); err == nil && i == 0 {
				t.Error("nothing said about a literal that is missing")
			}
		}
		base = body
	}
	t.Logf("%d bytes for %d that look random", took, size)
	if took > size+3*bodies {
		t.Errorf("%d bytes for %d that look random", took, size)
	}
}

func BenchmarkNoise(b *testing.B) {
	random := make([]byte, 1400)
	rand.NewChaCha8([32]byte{5}).Read(random)
	text := []byte(strings.Repeat(benchOld, 12))[:1400]
	for name, body := range map[string][]byte{"random": random, "text": text} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Noise(body)
			}
		})
	}
}
