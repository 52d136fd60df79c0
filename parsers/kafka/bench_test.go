package kafka

import (
	"strings"
	"testing"

	"sheaf/parsers"
)

// traffic is what a scanner sees in steady state, by name. Each is scanned again
// and again as one stream of segments.
func traffic() map[string][][]byte {
	small := produce(3, 5, "client-1", "sensors.room-1", batch(0, "21.5"))
	large := produce(3, 5, "client-1", "sensors.room-1", batch(0, strings.Repeat("x", 3000)))
	return map[string][][]byte{
		"produce":    {small},
		"produce9":   {produce(9, 5, "client-1", "sensors.room-1", batch(0, "21.5"))},
		"fetch":      {fetch(12, 5, "client-1", "", 77, 8)},
		"heartbeat":  {request(12, 4, 2, "client-1", []byte("group"))},
		"batch":      {[]byte(strings.Repeat(string(small), 40))},
		"straddling": {large[:1448], large[1448:2896], cat(large[2896:], small[:10]), small[10:]},
	}
}

var response5 = response(5, "body")

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
	spans := s.Scan(nil, response(5, "body"))
	for range 2 {
		if n := testing.AllocsPerRun(100, func() { spans = s.Scan(spans[:0], response5) }); n != 0 {
			t.Errorf("response: %v allocations", n)
		}
	}
	s = NewScanner(testID)
	garbage := []byte(strings.Repeat("\x00\x00\x00\x20\x00\x03\x00\x01\x00\x00\x00\x05\x00\x02ab\xff", 80))
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
		"worst": []byte(strings.Repeat("\x00\x00\x00\x20\x00\x03\x00\x01\x00\x00\x00\x05\x00\x02ab\xff", 85)),
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
	p := produce(3, 5, "client-1", "sensors.room-1", batch(0, "21.5"))
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := produce(3, 5, "client-1", "sensors.room-1", batch(0, "21.5"))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(p, false); err != nil {
			b.Fatal(err)
		}
	}
}
