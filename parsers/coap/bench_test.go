package coap

import (
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[[]byte] {
	return parsertest.Traffic[[]byte]{
		"notification": {notification(1, "\x8d\x43", "\x01\x02", "21.5")},
		"put":          {put(1, "token", "21.5", "sensors", "room-1", "temperature")},
		"get":          {msg(Confirmable, 1, 1, "to", "", opt{11, "temperature"})},
		"ack":          {msg(Acknowledgement, 0, 1, "", "")},
		"garbage":      {[]byte(strings.Repeat("Q\x01ab1", 40))},
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
