package amqp

import (
	"strings"
	"testing"

	"sheaf/parsers"
)

// traffic is what a scanner sees in steady state, by name. Each is scanned again
// and again as one stream of segments.
func traffic() map[string][][]byte {
	small := deliver(1, "ctag-app-17", 5, "plant", "line4.temperature", "21.5")
	large := deliver(1, "ctag-app-17", 5, "plant", "line4.picture", strings.Repeat("x", 3000))
	return map[string][][]byte{
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
		once()
		if n := testing.AllocsPerRun(100, once); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	s := NewScanner(testID)
	spans := make([]parsers.Span, 0, 64)
	garbage := []byte(strings.Repeat("\x01\x00\x01\x00\x00\x00\x09abcd\xce\x03\x00\x01\x00\x00", 80))
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
		"ends":  []byte(strings.Repeat("\xce", 1448)),
		"worst": []byte(strings.Repeat("\x03\x00\x01\x00\x00\x00\x00\xce", 16) + "x" + strings.Repeat("\x08\x00\x00\x00\x00\x00\x00\xce", 160) + "x"),
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
