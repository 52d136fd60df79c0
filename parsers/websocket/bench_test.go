package websocket

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[[]byte] {
	pub := publish("sensors/room-1/temperature", 0, "21.5")
	small := frame(0x82, pub)
	large := masked(0x01020304, frame(0x82, publish("sensors/room-1/picture", 9, strings.Repeat("x", 3000))))
	return parsertest.Traffic[[]byte]{
		"publish":    {small},
		"masked":     {masked(0xdeadbeef, small)},
		"puback":     {masked(0xdeadbeef, frame(0x82, []byte("\x40\x02\x00\x09")))},
		"two":        {masked(0xdeadbeef, frame(0x82, cat(pub, pub)))},
		"batch":      {[]byte(strings.Repeat(string(small), 40))},
		"straddling": {large[:1448], large[1448:2896], cat(large[2896:], small[:10]), small[10:]},
		"text":       {masked(0xdeadbeef, frame(0x81, []byte(`{"t":21.5}`)))},
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	traffic().NoAllocs(t, newScanner)
	traffic().NoAllocs(t, newBare)
	garbage := strings.Repeat("\x82\x09\x30\x07\x00\x01a\x88\x02\x03\xe8\x81\x03abc\x8a\x01", 80)
	parsertest.NoAllocsLost(t, newScanner(), garbage, Over(inner).Probe)
	parsertest.NoAllocsLost(t, newBare(), garbage, Protocol().Probe)
	lost := newScanner()
	lost.Scan(nil, masked(1, frame(0x82, make([]byte, 4000)))) // makes room for what is unmasked
	parsertest.NoAllocsLost(t, lost, strings.Repeat("\x82\x89abcd0\x07\x00\x01a\x82\x83", 80), func([]byte) parsers.Confidence { return parsers.None })
}

func BenchmarkScan(b *testing.B) { traffic().BenchmarkScan(b, newScanner) }

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	parsertest.BenchmarkLost(b, newScanner, map[string]string{
		"text":   strings.Repeat("0.123,456,789;", 104),
		"worst":  strings.Repeat("\x82\x06\x30\x04\x00\x01a", 182),
		"masked": strings.Repeat("\x82\x86abcd0\x04\x00\x01", 145),
	})
}

func BenchmarkProbe(b *testing.B) {
	p := frame(0x82, publish("sensors/room-1/temperature", 0, "21.5"))
	probe := Over(inner).Probe
	for b.Loop() {
		probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := masked(9, frame(0x82, publish("sensors/room-1/temperature", 0, "21.5")))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(p); err != nil {
			b.Fatal(err)
		}
	}
}
