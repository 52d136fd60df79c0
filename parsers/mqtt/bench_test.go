package mqtt

import (
	"strings"
	"testing"

	"sheaf/parsers"
)

// traffic is what a scanner sees in steady state, by name. Each is scanned again
// and again as one stream of segments.
func traffic() map[string][][]byte {
	small := publish(0, "sensors/room-1/temperature", 0, "21.5")
	large := publish(1, "sensors/room-1/picture", 9, strings.Repeat("x", 3000))
	alias := publish5(1, "", 9, props(topicAlias(5)), "21.5")
	return map[string][][]byte{
		"publish":    {small},
		"publish1":   {publish(1, "sensors/room-1/temperature", 9, "21.5")},
		"alias":      {publish5(1, "sensors/room-1/temperature", 9, props(topicAlias(5)), "21.5"), alias, alias},
		"puback":     {msg(0x40, u16(9))},
		"ping":       {msg(0xc0)},
		"batch":      {[]byte(strings.Repeat(string(small), 40))},
		"straddling": {large[:1448], large[1448:2896], cat(large[2896:], small[:10]), small[10:]},
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	for name, segments := range traffic() {
		s := NewScanner(testID)
		spans := make([]parsers.Span, 0, 64)
		scanAll(t, s, connect(5))
		if name != "alias" {
			s.version = 4
		}
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
	garbage := []byte(strings.Repeat("0\x10\x00\x04abcd\x82\x09\x00\x01\x00\x03a/b\x00", 80))
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
			spans = s.Scan(spans, connect(5))
			if name != "alias" {
				s.version = 4
			}
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
		"worst": []byte(strings.Repeat("0\x06\x00\x01a0\x06\x00", 182)),
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
	p := publish(0, "sensors/room-1/temperature", 0, "21.5")
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := publish(1, "sensors/room-1/temperature", 9, "21.5")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(p, 4); err != nil {
			b.Fatal(err)
		}
	}
}
