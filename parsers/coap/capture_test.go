package coap_test

import (
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/coap"
	"sheaf/parsers/parsertest"
)

func TestCaptures(t *testing.T) {
	reg := parsers.NewRegistry(coap.Protocol())
	notifications, opaque := 0, 0
	parsertest.Scan(t, reg, parsertest.Segments(t, parsertest.Capture(t, "coap-lwm2m-observe.pcapng")), func(_ *parsers.Segment, sp parsers.Span) {
		switch {
		case sp.Protocol == parsers.Opaque:
			opaque++
		case coap.Name(sp.Name) == coap.Notification:
			notifications++
		}
	})
	if notifications != 8543 || opaque != 0 {
		t.Errorf("%d notifications, want 8543, and %d opaque spans", notifications, opaque)
	}

	port, others := 0, 0
	parsertest.Scan(t, reg, parsertest.Segments(t, parsertest.Capture(t, "coap-ndpi-plus-mqtt.pcap")), func(seg *parsers.Segment, sp parsers.Span) {
		switch {
		case sp.Protocol == parsers.Opaque:
		case seg.Key.SrcPort == 5683 || seg.Key.DstPort == 5683:
			port++
		case seg.Key.SrcPort == 17500 || seg.Key.DstPort == 17500:
			others++
		default:
			t.Errorf("CoAP on %v", seg.Key)
		}
	})
	// On port 17500 it is found by its content.
	if port != 19 || others == 0 {
		t.Errorf("%d messages on port 5683, want 19, and %d elsewhere", port, others)
	}
	t.Logf("%d messages on port 17500", others)
}

// TestCapturesOfOthers holds that no other protocol's traffic is taken for CoAP.
func TestCapturesOfOthers(t *testing.T) {
	parsertest.CapturesOfOthers(t, parsers.NewRegistry(coap.Protocol()), "coap", "coap-")
}
