package tls

import (
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[[]byte] {
	large := data(16000)
	var bulk [][]byte
	for len(large) > 1448 {
		bulk = append(bulk, large[:1448])
		large = large[1448:]
	}
	return parsertest.Traffic[[]byte]{
		"data":       {data(120)},
		"batch":      {[]byte(strings.Repeat(string(data(120)), 40))},
		"straddling": append(bulk, cat(large, data(100)[:3]), data(100)[3:]),
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	traffic().NoAllocs(t, newScanner)
	parsertest.NoAllocsLost(t, newScanner(), strings.Repeat("\x17\x03\x03\x00\x00\x17\x03\x03\x00", 80), Probe)
}

func BenchmarkScan(b *testing.B) { traffic().BenchmarkScan(b, newScanner) }

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	parsertest.BenchmarkLost(b, newScanner, map[string]string{
		"ciphertext": string(data(1448)[5:]),
		"worst":      strings.Repeat("\x16\x03\x03\x06", 362),
	})
}

func BenchmarkProbe(b *testing.B) {
	p := data(120)
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := data(120)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(p); err != nil {
			b.Fatal(err)
		}
	}
}
