package nats_test

import (
	"path/filepath"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/parsers/nats"
	"sheaf/parsers/parsertest"
)

// TestCapturesOfOthers holds that no other protocol's traffic is taken for NATS.
func TestCapturesOfOthers(t *testing.T) {
	parsertest.CapturesOfOthers(t, builtin.Registry(), "nats", "nats")
}

// TestCaptures counts messages with segments in order, and the distinct events.
func TestCaptures(t *testing.T) {
	for file, want := range map[string][2]int{
		"nats-spicy-simple.pcap":          {4, 1},
		"nats-spicy-jetstream-kv.pcap":    {28, 8},
		"nats-deepflow-headers.pcap":      {9, 2},
		"nats-deepflow-otel.pcap":         {4, 1},
		"nats-deepflow-skywalking.pcap":   {1, 1},
		"nats-deepflow-err.pcap":          {0, 0},
		"nats-deepflow-rpc1-modpcap.pcap": {4, 2},
		"nats-deepflow-rpc3-modpcap.pcap": {1, 1},
		"live/nats-fanout-100.pcap":       {2646, 1},
		"live/nats-fanoutskew-100.pcap":   {3742, 1},
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			reg := builtin.Registry()
			id, _ := reg.Lookup("nats")
			n, opaque := 0, 0
			events := map[string]bool{}
			parsertest.Scan(t, reg, parsertest.Reassemble(parsertest.Segments(t, parsertest.Capture(t, file))), func(_ *parsers.Segment, sp parsers.Span) {
				switch {
				case sp.Protocol != id:
					opaque += sp.Len
				case sp.At == 0 && (sp.Name == uint8(nats.PUB) || sp.Name == uint8(nats.HPUB) || sp.Name == uint8(nats.MSG) || sp.Name == uint8(nats.HMSG)):
					n++
					if len(sp.Event) == 0 {
						t.Errorf("%s without an event", nats.Name(sp.Name))
					}
					events[string(sp.Event)] = true
				}
			})
			if n != want[0] || len(events) != want[1] {
				t.Errorf("%d messages, %d events, want %v: %v", n, len(events), want, events)
			}
			if opaque > 10 { // DEADBEEF
				t.Errorf("%d bytes are opaque", opaque)
			}
		})
	}
}
