package amqp10

import (
	"strings"
	"testing"

	"sheaf/parsers"
)

// traffic is what a scanner sees in steady state, by name. Each is scanned again
// and again as one stream of segments.
func traffic() map[string][][]byte {
	small := transfer(1, 0, 77, "\x00\x00\x00\x05", "21.5")
	large := transfer(1, 0, 77, "77", strings.Repeat("x", 3000))
	return map[string][][]byte{
		"transfer":    {small},
		"disposition": {disposition(1, 5, 5)},
		"flow":        {perform(1, Flow, num(1), num(100), num(0), num(100), num(0), num(5), num(10))},
		"empty":       {empty()},
		"batch":       {[]byte(strings.Repeat(string(small), 40))},
		"straddling":  {large[:1448], large[1448:2896], cat(large[2896:], small[:15]), small[15:]},
		"attach":      {attach(1, 0, no, "", "queue"), perform(1, Detach, num(0), yes), attach(1, 0, no, "", "queue"), small},
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	for name, segments := range traffic() {
		s := NewScanner(testID)
		spans := make([]parsers.Span, 0, 64)
		scanAll(t, s, attach(1, 0, no, "", "plant.line4.temperature"))
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
	garbage := []byte(strings.Repeat("\x00\x00\x00\x30\x02\x00\x00\x00\x00\x53\x14\xc0", 80))
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
			spans = s.Scan(spans, attach(1, 0, no, "", "plant.line4.temperature"))
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
		"marks": []byte(strings.Repeat("\x00S", 724)),
		"worst": []byte(strings.Repeat("\x00\x00\x00\x0a\x02\x00\x00\x00\x00S", 144)),
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
	p := transfer(1, 0, 77, "\x00\x00\x00\x05", "21.5")
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := transfer(1, 0, 77, "\x00\x00\x00\x05", "21.5")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(p); err != nil {
			b.Fatal(err)
		}
	}
}
