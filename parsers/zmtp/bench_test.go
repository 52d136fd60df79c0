package zmtp

import (
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[[]byte] {
	small := message3("sensors/room-1/temperature", "21.5")
	large := message3("sensors/room-1/picture", strings.Repeat("x", 3000))
	return parsertest.Traffic[[]byte]{
		"message":    {small},
		"one":        {message3("sensors/room-1/temperature 21.5")},
		"subscribe":  {command("SUBSCRIBE", "sensors/room-1")},
		"ping":       {command("PING", "\x00\x64")},
		"batch":      {[]byte(strings.Repeat(string(small), 40))},
		"straddling": {large[:1448], large[1448:2896], cat(large[2896:], small[:10]), small[10:]},
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	traffic().NoAllocs(t, newScanner)
	parsertest.NoAllocsLost(t, newScanner(), strings.Repeat("\x01\x03abc\x00\x01ab\x04\x05\x04PING\x09", 80), Probe)
}

func BenchmarkScan(b *testing.B) { traffic().BenchmarkScan(b, newScanner) }

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	parsertest.BenchmarkLost(b, newScanner, map[string]string{
		"text":  strings.Repeat("0.123,456,789;", 104),
		"worst": strings.Repeat("\x01\x01a\x01\x01a\x01\x00", 182),
	})
}

func BenchmarkProbe(b *testing.B) {
	p := message3("sensors/room-1/temperature", "21.5")
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := message3("sensors/room-1/temperature", "21.5")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(p, false); err != nil {
			b.Fatal(err)
		}
	}
}
