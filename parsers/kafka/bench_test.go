package kafka

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

// traffic is what a scanner sees in steady state, by name.
func traffic() parsertest.Traffic[[]byte] {
	small := produce(3, 5, "client-1", "sensors.room-1", batch(0, "21.5"))
	large := produce(3, 5, "client-1", "sensors.room-1", batch(0, strings.Repeat("x", 3000)))
	return parsertest.Traffic[[]byte]{
		"produce":      {small},
		"produce9":     {produce(9, 5, "client-1", "sensors.room-1", batch(0, "21.5"))},
		"fetch":        {fetch(7, 5, "client-1", "sensors.room-1", 77, 8)},
		"fetch-topic":  {fetch(12, 5, "client-1", "sensors.room-1", 77, 8)},
		"fetch-no-new": {fetch(12, 5, "client-1", "", 77, 8)},
		"heartbeat":    {request(12, 4, 2, "client-1", []byte("group"))},
		"batch":        {[]byte(strings.Repeat(string(small), 40))},
		"straddling":   {large[:1448], large[1448:2896], cat(large[2896:], small[:10]), small[10:]},
	}
}

// answers is what a broker sends: a record batch that was fetched, and less.
func answers() parsertest.Traffic[[]byte] {
	return parsertest.Traffic[[]byte]{
		"fetched":  {response(5, "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x4d"+string(batch(0, "21.5")))},
		"response": {response(5, "body")},
	}
}

// answering returns a scanner of a flow of responses.
func answering() parsers.Scanner {
	s := NewScanner(testID)
	s.Framer.side = responses
	return s
}

func TestScanDoesNotAllocate(t *testing.T) {
	traffic().NoAllocs(t, newScanner)
	answers().NoAllocs(t, answering)
	parsertest.NoAllocsLost(t, newScanner(), strings.Repeat("\x00\x00\x00\x20\x00\x03\x00\x01\x00\x00\x00\x05\x00\x02ab\xff", 80), Probe)
}

func BenchmarkScan(b *testing.B) {
	traffic().BenchmarkScan(b, newScanner)
	answers().BenchmarkScan(b, answering)
}

// BenchmarkLost is the cost of a segment in which no boundary is found.
func BenchmarkLost(b *testing.B) {
	parsertest.BenchmarkLost(b, newScanner, map[string]string{
		"text":  strings.Repeat("0.123,456,789;", 104),
		"worst": strings.Repeat("\x00\x00\x00\x20\x00\x03\x00\x01\x00\x00\x00\x05\x00\x02ab\xff", 85),
	})
}

func BenchmarkProbe(b *testing.B) {
	p := produce(3, 5, "client-1", "sensors.room-1", batch(0, "21.5"))
	for b.Loop() {
		Probe(p)
	}
}

func BenchmarkParse(b *testing.B) {
	p := produce(3, 5, "client-1", "sensors.room-1", batch(0, "21.5"))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(p, false); err != nil {
			b.Fatal(err)
		}
	}
}
