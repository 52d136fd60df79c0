package zmtp

import (
	"strings"
	"testing"

	"sheaf/parsers"
)

// traffic is what a scanner sees in steady state, by name. Each is scanned again
// and again as one stream of segments.
func traffic() map[string][][]byte {
	small := message3("sensors/room-1/temperature", "21.5")
	large := message3("sensors/room-1/picture", strings.Repeat("x", 3000))
	return map[string][][]byte{
		"message":    {small},
		"one":        {message3("sensors/room-1/temperature 21.5")},
		"subscribe":  {command("SUBSCRIBE", "sensors/room-1")},
		"ping":       {command("PING", "\x00\x64")},
		"batch":      {[]byte(strings.Repeat(string(small), 40))},
		"straddling": {large[:1448], large[1448:2896], cat(large[2896:], small[:10]), small[10:]},
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	for name, segments := range traffic() {
		s := NewScanner(testID)
		spans := make([]parsers.Span, 0, 64)
		once := func() {
			for _, p := range segments {
				spans = s.Scan(spans[:0], p)
				spans = s.Rescan(spans[:0], p)
			}
		}
		once()
		if n := testing.AllocsPerRun(100, once); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	s := NewScanner(testID)
	spans := make([]parsers.Span, 0, 64)
	garbage := []byte(strings.Repeat("\x01\x03abc\x00\x01ab\x04\x05\x04PING\x09", 80))
	if n := testing.AllocsPerRun(100, func() {
		s.Lost()
		spans = s.Scan(spans[:0], garbage)
		Probe(garbage)
	}); n != 0 {
		t.Errorf("garbage: %v allocations", n)
	}
}

func BenchmarkScan(b *testing.B) {
	for name, segments := range traffic() {
		b.Run(name, func(b *testing.B) {
			s := NewScanner(testID)
			spans := make([]parsers.Span, 0, 64)
			messages := 0
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range segments {
					spans = s.Scan(spans[:0], p)
					messages += len(spans)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/span")
		})
	}
}

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	for name, p := range map[string][]byte{
		"text":  []byte(strings.Repeat("0.123,456,789;", 104)),
		"worst": []byte(strings.Repeat("\x01\x01a\x01\x01a\x01\x00", 182)),
	} {
		b.Run(name, func(b *testing.B) {
			s := NewScanner(testID)
			spans := make([]parsers.Span, 0, 2048)
			b.ReportAllocs()
			for b.Loop() {
				s.Lost()
				spans = s.Scan(spans[:0], p)
			}
		})
	}
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
