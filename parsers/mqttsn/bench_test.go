package mqttsn

import (
	"testing"

	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[[]byte] {
	return parsertest.Traffic[[]byte]{
		"publish":   {publish(0x20, 7, 6, "21.5")},
		"forwarded": {capsule("node", publish(0x20, 7, 6, "21.5"))},
		"puback":    {msg(PUBACK, "\x00\x07\x00\x06\x00")},
		"subscribe": {msg(SUBSCRIBE, "\x20\x00\x08sensors/room-1/#")},
		"ping":      {msg(PINGREQ, "sensor-1")},
		"garbage":   {[]byte("garbage")},
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	traffic().NoAllocs(t, newScanner)
	for _, datagrams := range traffic() {
		parsertest.NoAllocsLost(t, newScanner(), string(datagrams[0]), Probe)
	}
}

func BenchmarkScan(b *testing.B) { traffic().BenchmarkScan(b, newScanner) }

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
