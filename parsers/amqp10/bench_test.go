package amqp10

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[[]byte] {
	small := transfer(1, 0, 77, "\x00\x00\x00\x05", "21.5")
	large := transfer(1, 0, 77, "77", strings.Repeat("x", 3000))
	return parsertest.Traffic[[]byte]{
		"transfer":    {small},
		"disposition": {disposition(1, 5, 5)},
		"flow":        {perform(1, Flow, num(1), num(100), num(0), num(100), num(0), num(5), num(10))},
		"empty":       {empty()},
		"batch":       {[]byte(strings.Repeat(string(small), 40))},
		"straddling":  {large[:1448], large[1448:2896], cat(large[2896:], small[:15]), small[15:]},
		"attach":      {attach(1, 0, no, "", "queue"), perform(1, Detach, num(0), yes), attach(1, 0, no, "", "queue"), small},
	}
}

// linked returns a scanner that saw a link attached.
func linked() parsers.Scanner {
	s := newScanner()
	s.Scan(nil, attach(1, 0, no, "", "plant.line4.temperature"))
	return s
}

func TestScanDoesNotAllocate(t *testing.T) {
	traffic().NoAllocs(t, linked)
	parsertest.NoAllocsLost(t, newScanner(), strings.Repeat("\x00\x00\x00\x30\x02\x00\x00\x00\x00\x53\x14\xc0", 80), Probe)
}

func BenchmarkScan(b *testing.B) { traffic().BenchmarkScan(b, linked) }

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	parsertest.BenchmarkLost(b, newScanner, map[string]string{
		"text":  strings.Repeat("0.123,456,789;", 104),
		"marks": strings.Repeat("\x00S", 724),
		"worst": strings.Repeat("\x00\x00\x00\x0a\x02\x00\x00\x00\x00S", 144),
	})
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
