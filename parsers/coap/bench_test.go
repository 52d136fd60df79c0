package coap

import (
	"strings"
	"testing"

	"sheaf/parsers"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() map[string][]byte {
	return map[string][]byte{
		"notification": notification(1, "\x8d\x43", "\x01\x02", "21.5"),
		"put":          put(1, "token", "21.5", "sensors", "room-1", "temperature"),
		"get":          msg(Confirmable, 1, 1, "to", "", opt{11, "temperature"}),
		"ack":          msg(Acknowledgement, 0, 1, "", ""),
		"garbage":      []byte(strings.Repeat("Q\x01ab1", 40)),
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	for name, b := range traffic() {
		s := NewScanner(testID)
		spans := make([]parsers.Span, 0, 64)
		once := func() {
			spans = s.Scan(spans[:0], b)
			spans = s.Rescan(spans[:0], b)
			s.Lost()
			Probe(b)
		}
		once()
		if n := testing.AllocsPerRun(100, once); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkScan(b *testing.B) {
	for name, p := range traffic() {
		b.Run(name, func(b *testing.B) {
			s := NewScanner(testID)
			spans := make([]parsers.Span, 0, 64)
			b.ReportAllocs()
			for b.Loop() {
				spans = s.Scan(spans[:0], p)
			}
		})
	}
}

func BenchmarkProbe(b *testing.B) {
	p := put(1, "token", "21.5", "sensors", "room-1", "temperature")
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := put(1, "token", "21.5", "sensors", "room-1", "temperature")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(p); err != nil {
			b.Fatal(err)
		}
	}
}
