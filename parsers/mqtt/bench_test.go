package mqtt

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[[]byte] {
	small := publish(0, "sensors/room-1/temperature", 0, "21.5")
	large := publish(1, "sensors/room-1/picture", 9, strings.Repeat("x", 3000))
	return parsertest.Traffic[[]byte]{
		"publish":    {small},
		"publish1":   {publish(1, "sensors/room-1/temperature", 9, "21.5")},
		"puback":     {msg(0x40, u16(9))},
		"ping":       {msg(0xc0)},
		"batch":      {[]byte(strings.Repeat(string(small), 40))},
		"straddling": {large[:1448], large[1448:2896], cat(large[2896:], small[:10]), small[10:]},
	}
}

// aliased is traffic of version 5.
func aliased() parsertest.Traffic[[]byte] {
	alias := publish5(1, "", 9, props(topicAlias(5)), "21.5")
	return parsertest.Traffic[[]byte]{
		"alias": {publish5(1, "sensors/room-1/temperature", 9, props(topicAlias(5)), "21.5"), alias, alias},
	}
}

// version makes scanners of connections of a version.
func version(v uint8) func() parsers.Scanner {
	return func() parsers.Scanner {
		s := NewScanner(testID)
		s.Framer.version = v
		return s
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	traffic().NoAllocs(t, version(4))
	aliased().NoAllocs(t, version(5))
	parsertest.NoAllocsLost(t, newScanner(), strings.Repeat("0\x10\x00\x04abcd\x82\x09\x00\x01\x00\x03a/b\x00", 80), Probe)
}

func BenchmarkScan(b *testing.B) {
	traffic().BenchmarkScan(b, version(4))
	aliased().BenchmarkScan(b, version(5))
}

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	parsertest.BenchmarkLost(b, newScanner, map[string]string{
		"text":  strings.Repeat("0.123,456,789;", 104),
		"worst": strings.Repeat("0\x06\x00\x01a0\x06\x00", 182),
	})
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
