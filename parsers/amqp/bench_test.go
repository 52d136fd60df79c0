package amqp

import (
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[[]byte] {
	small := deliver(1, "ctag-app-17", 5, "plant", "line4.temperature", "21.5")
	large := deliver(1, "ctag-app-17", 5, "plant", "line4.picture", strings.Repeat("x", 3000))
	return parsertest.Traffic[[]byte]{
		"deliver":    {small},
		"publish":    {publish(1, "plant", "line4.temperature", "21.5")},
		"ack":        {ack(1, 9)},
		"heartbeat":  {heartbeat()},
		"batch":      {[]byte(strings.Repeat(string(small), 40))},
		"events":     {cat(small, large)},
		"straddling": {large[:1448], large[1448:2896], cat(large[2896:], small[:15]), small[15:]},
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	traffic().NoAllocs(t, newScanner)
	parsertest.NoAllocsLost(t, newScanner(), strings.Repeat("\x01\x00\x01\x00\x00\x00\x09abcd\xce\x03\x00\x01\x00\x00", 80), Probe)
}

func BenchmarkScan(b *testing.B) { traffic().BenchmarkScan(b, newScanner) }

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	parsertest.BenchmarkLost(b, newScanner, map[string]string{
		"text":  strings.Repeat("0.123,456,789;", 104),
		"ends":  strings.Repeat("\xce", 1448),
		"worst": strings.Repeat("\x03\x00\x01\x00\x00\x00\x00\xce", 16) + "x" + strings.Repeat("\x08\x00\x00\x00\x00\x00\x00\xce", 160) + "x",
	})
}

func BenchmarkProbe(b *testing.B) {
	p := deliver(1, "ctag-app-17", 5, "plant", "line4.temperature", "21.5")
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := deliver(1, "ctag-app-17", 5, "plant", "line4.temperature", "21.5")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(p); err != nil {
			b.Fatal(err)
		}
	}
}
