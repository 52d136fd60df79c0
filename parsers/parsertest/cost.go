package parsertest

import (
	"testing"

	"sheaf/parsers"
)

// Traffic is what a scanner sees in steady state, by name. Each is scanned again
// and again as one stream of segments.
type Traffic[B Text] map[string][]B

func (traffic Traffic[B]) payloads(name string) (list [][]byte) {
	for _, p := range traffic[name] {
		list = append(list, []byte(p))
	}
	return list
}

// NoAllocs holds that scanning traffic allocates nothing.
func (traffic Traffic[B]) NoAllocs(t *testing.T, scanner func() parsers.Scanner) {
	t.Helper()
	for name := range traffic {
		s := scanner()
		spans := make([]parsers.Span, 0, 64)
		list := traffic.payloads(name)
		once := func() {
			for _, p := range list {
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
}

// NoAllocsLost holds that looking for a boundary in garbage allocates nothing, nor
// does probing it.
func NoAllocsLost(t *testing.T, s parsers.Scanner, garbage string, probe func([]byte) parsers.Confidence) {
	t.Helper()
	spans := make([]parsers.Span, 0, 64)
	payload := []byte(garbage)
	if n := testing.AllocsPerRun(100, func() {
		s.Lost()
		spans = s.Scan(spans[:0], payload)
		probe(payload)
	}); n != 0 {
		t.Errorf("garbage: %v allocations", n)
	}
}

// BenchmarkScan is the cost of a span.
func (traffic Traffic[B]) BenchmarkScan(b *testing.B, scanner func() parsers.Scanner) {
	for name := range traffic {
		b.Run(name, func(b *testing.B) {
			s := scanner()
			spans := make([]parsers.Span, 0, 64)
			list := traffic.payloads(name)
			messages := 0
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range list {
					spans = s.Scan(spans[:0], p)
					messages += len(spans)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/span")
		})
	}
}

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B, scanner func() parsers.Scanner, segments map[string]string) {
	for name, p := range segments {
		b.Run(name, func(b *testing.B) {
			s := scanner()
			spans := make([]parsers.Span, 0, 2048)
			payload := []byte(p)
			b.ReportAllocs()
			for b.Loop() {
				s.Lost()
				spans = s.Scan(spans[:0], payload)
			}
		})
	}
}
