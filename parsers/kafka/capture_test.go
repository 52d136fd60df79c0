package kafka_test

import (
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/kafka"
	"sheaf/parsers/parsertest"
)

// TestCapturesOfOthers holds that no other protocol's traffic is taken for Kafka.
func TestCapturesOfOthers(t *testing.T) {
	parsertest.CapturesOfOthers(t, parsers.NewRegistry(kafka.Protocol()), "kafka", "kafka-")
}

// TestCaptures counts requests. On ports other than 9092 the responses are left
// opaque.
func TestCaptures(t *testing.T) {
	reg := parsers.NewRegistry(kafka.Protocol())
	for file, want := range map[string]map[string]int{
		"kafka-ndpi-produce-v3.pcapng":     {"Produce": 3},
		"kafka-deepflow-produce-v2.pcap":   {"Produce": 1},
		"kafka-deepflow-produce-v7.pcap":   {"Produce": 1},
		"kafka-deepflow-fetch-v12.pcap":    {"Fetch": 1},
		"kafka-deepflow-api-versions.pcap": {"ApiVersions": 1},
		"kafka-deepflow-mixed.pcap":        {"Fetch": 1, "OffsetCommit": 1, "Heartbeat": 1},
		"kafka-deepflow-join-group.pcap":   {"JoinGroup": 1},
	} {
		found := map[string]int{}
		events := map[string]int{}
		parsertest.Scan(t, reg, parsertest.Reassemble(parsertest.Segments(t, parsertest.Capture(t, file))), func(seg *parsers.Segment, sp parsers.Span) {
			switch {
			case sp.Protocol == parsers.Opaque:
				if seg.Key.SrcPort == 9092 || seg.Key.DstPort == 9092 {
					t.Errorf("%s: %d bytes are opaque", file, sp.Len)
				}
			case sp.At == 0:
				found[kafka.Name(sp.Name).String()]++
				events[string(sp.Event)]++
			}
		})
		for name, n := range want {
			if found[name] != n {
				t.Errorf("%s: %d %s, want %d", file, found[name], name, n)
			}
		}
		t.Logf("%s: %v, events %v", file, found, events)
	}
}
