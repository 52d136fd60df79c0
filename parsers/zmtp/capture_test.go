package zmtp_test

import (
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
	"sheaf/parsers/zmtp"
)

// TestCaptures counts messages, and holds that everything is recognised.
func TestCaptures(t *testing.T) {
	reg := parsers.NewRegistry(zmtp.Protocol())
	for file, want := range map[string]int{
		"zmtp-deepflow-pubsub-all.pcap":   35,
		"zmtp-deepflow-pubsub-one.pcap":   5,
		"zmtp-deepflow-reqrep-null.pcap":  2,
		"zmtp-deepflow-reqrep-plain.pcap": 2,
		"zmtp-distsys-pushpull.pcap":      1,
	} {
		found, opaque := 0, 0
		events := map[string]int{}
		parsertest.Scan(t, reg, parsertest.Segments(t, parsertest.Capture(t, file)), func(_ *parsers.Segment, sp parsers.Span) {
			switch {
			case sp.Protocol == parsers.Opaque:
				opaque++
			case zmtp.Name(sp.Name) == zmtp.Message && sp.At == 0:
				found++
				events[string(sp.Event)]++
			}
		})
		if found != want || opaque != 0 {
			t.Errorf("%s: %d messages, want %d, and %d opaque spans", file, found, want, opaque)
		}
		t.Logf("%s: %v", file, events)
	}
}

// TestCapturesOfOthers holds that no other protocol's traffic is taken for ZMTP.
func TestCapturesOfOthers(t *testing.T) {
	parsertest.CapturesOfOthers(t, parsers.NewRegistry(zmtp.Protocol()), "zmtp", "zmtp-")
}
