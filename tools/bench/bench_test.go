package main

import (
	"fmt"
	"testing"

	"sheaf/tools/mkcapture/capgen"
)

// fanout is a trace whose messages go to 100 subscribers.
func fanout(tb testing.TB, messages int) *trace {
	tb.Helper()
	t, err := makeTrace(capgen.Fanout, capgen.Config{Clients: 100, Messages: messages})
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// benchmark runs a source through new lanes again and again, and reports a part
// of the cost for each packet.
func benchmark(b *testing.B, src source, warm int, part func(*cost) uint64) {
	s, err := newSchedule(src, nil)
	if err != nil {
		b.Fatal(err)
	}
	var sum cost
	ns := uint64(0)
	for b.Loop() {
		ends, err := s.lanes()
		if err != nil {
			b.Fatal(err)
		}
		c, err := s.runLanes(ends, src, warm, clock())
		if err != nil {
			b.Fatal(err)
		}
		sum.packets += c.packets
		ns += part(&c)
	}
	b.ReportMetric(sum.each(ns), "ns/packet")
	b.ReportMetric(0, "ns/op") // of both ends together, which says nothing
}

func BenchmarkEncode(b *testing.B) {
	t := fanout(b, 200)
	benchmark(b, t.packets, t.warmUp(), func(c *cost) uint64 { return c.encode })
}

func BenchmarkDecode(b *testing.B) {
	t := fanout(b, 200)
	benchmark(b, t.packets, t.warmUp(), func(c *cost) uint64 { return c.decode })
}

// BenchmarkFlows is encode and decode together.
func BenchmarkFlows(b *testing.B) {
	for _, n := range flowNumbers(testing.Short()) {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			src, warm := flowSource(n)
			benchmark(b, src, warm, func(c *cost) uint64 { return c.encode + c.decode })
		})
	}
}

// BenchmarkZstd is what BenchmarkEncode is compared with.
func BenchmarkZstd(b *testing.B) {
	t := fanout(b, 200)
	s, err := newSchedule(t.packets, nil)
	if err != nil {
		b.Fatal(err)
	}
	var sum cost
	for b.Loop() {
		c, err := s.runZstd(t.packets, t.warmUp(), clock())
		if err != nil {
			b.Fatal(err)
		}
		sum.packets += c.packets
		sum.encode += c.encode
	}
	b.ReportMetric(sum.each(sum.encode), "ns/packet")
	b.ReportMetric(0, "ns/op")
}
