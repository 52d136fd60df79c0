package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/pcap"
	"sheaf/tools/mkcapture/capgen"
)

// The directions of a lane, and the ends that send in them.
const (
	up   = 0
	down = 1
)

// A packet is an IP packet on its way. Its data is borrowed until the next one.
type packet struct {
	at   time.Duration
	dir  int
	data []byte
}

// A source gives the same packets, in order of time, every time it is run
// through.
type source = iter.Seq[packet]

// A trace is a capture in memory.
type trace struct {
	bytes   []byte
	entries []traceEntry
}

type traceEntry struct {
	at  time.Duration
	dir int
	end int // in bytes
}

// packets is the trace as a source.
func (t *trace) packets(yield func(packet) bool) {
	from := 0
	for _, e := range t.entries {
		if !yield(packet{e.at, e.dir, t.bytes[from:e.end:e.end]}) {
			return
		}
		from = e.end
	}
}

// warmUp returns how many packets are no part of the measurement: a fifth.
func (t *trace) warmUp() int { return len(t.entries) / 5 }

func (t *trace) add(at time.Duration, dir int, data []byte) {
	t.bytes = append(t.bytes, data...)
	t.entries = append(t.entries, traceEntry{at, dir, len(t.bytes)})
}

// loadTrace reads a capture file.
func loadTrace(name string) (*trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := readTrace(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

func readTrace(r io.Reader) (*trace, error) {
	in, err := pcap.NewReader(r)
	if err != nil {
		return nil, err
	}
	t := &trace{}
	c := newCompass()
	var clock pcap.Clock
	for {
		p, err := in.Next()
		if errors.Is(err, io.EOF) && !errors.As(err, new(*pcap.FileError)) {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		if p.Skip == pcap.SkipNone {
			t.add(clock.At(p.Time), c.direction(p.Data), p.Data)
		}
	}
}

// makeTrace makes a capture.
func makeTrace(w capgen.Workload, cfg capgen.Config) (*trace, error) {
	var b bytes.Buffer
	f := capgen.File{Workload: w, Config: cfg}
	if _, err := f.WritePcap(&b); err != nil {
		return nil, err
	}
	return readTrace(&b)
}

// A compass tells which way packets go.
type compass struct {
	decoder parsers.Decoder
	segment parsers.Segment
	brokers map[uint16]bool // ports
}

func newCompass() *compass {
	c := &compass{brokers: make(map[uint16]bool)}
	for _, port := range builtin.Registry().ServerPorts() {
		c.brokers[port] = true
	}
	return c
}

// direction is a guess where neither port is a broker's.
func (c *compass) direction(data []byte) int {
	if c.decoder.Decode(data, &c.segment) != nil {
		return up
	}
	k := &c.segment.Key
	to, from := c.brokers[k.DstPort], c.brokers[k.SrcPort]
	if to == from {
		to = k.DstPort <= k.SrcPort
	}
	if to {
		return up
	}
	return down
}

// flowPackets is a source of n packets of so many flows, each of them with the
// flow of its acknowledgements.
func flowPackets(flows, n int) source {
	return func(yield func(packet) bool) {
		s := capgen.NewFlows(flows, 1)
		s.Acks = true
		for i := range n {
			dir := down
			if i%2 != 0 {
				dir = up // the acknowledgement
			}
			at, data := s.Next()
			if !yield(packet{at, dir, data}) {
				return
			}
		}
	}
}
