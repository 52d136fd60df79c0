package mqttsn

import (
	"testing"

	"sheaf/parsers"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() map[string][]byte {
	return map[string][]byte{
		"publish":   publish(0x20, 7, 6, "21.5"),
		"forwarded": capsule("node", publish(0x20, 7, 6, "21.5")),
		"puback":    msg(PUBACK, "\x00\x07\x00\x06\x00"),
		"subscribe": msg(SUBSCRIBE, "\x20\x00\x08sensors/room-1/#"),
		"ping":      msg(PINGREQ, "sensor-1"),
		"garbage":   []byte("garbage"),
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	for name, b := range traffic() {
		s := NewScanner(testID)
		spans := make([]parsers.Span, 0, 64)
		if n := testing.AllocsPerRun(100, func() {
			spans = s.Scan(spans[:0], b)
			spans = s.Rescan(spans[:0], b)
			s.Lost()
			Probe(b)
		}); n != 0 {
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
	p := publish(0x20, 7, 6, "21.5")
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := publish(0x20, 7, 6, "21.5")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(p); err != nil {
			b.Fatal(err)
		}
	}
}
