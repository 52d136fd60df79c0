package websocket_test

import (
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/mqtt"
	"sheaf/parsers/parsertest"
	"sheaf/parsers/websocket"
)

func registry() *parsers.Registry {
	return parsers.NewRegistry(websocket.Over(mqtt.Protocol(), 8080), websocket.Protocol())
}

// TestCaptures counts messages, and holds that everything is recognised.
func TestCaptures(t *testing.T) {
	reg := registry()
	id, _ := reg.Lookup("websocket")
	for file, want := range map[string]map[websocket.Name]int{
		"ws-zeek-broker-pubsub.pcap":    {websocket.Text: 8},
		"ws-suricata-compressed.pcap":   {websocket.Text: 10},
		"ws-zeek-two-fragments.pcap":    {websocket.Binary: 2},
		"ws-suricata-control-frag.pcap": {websocket.Text: 1},
	} {
		opaque := 0
		found := map[websocket.Name]int{}
		parsertest.Scan(t, reg, parsertest.Segments(t, parsertest.Capture(t, file)), func(seg *parsers.Segment, sp parsers.Span) {
			switch {
			case sp.Protocol != id:
				opaque++
				t.Logf("%s: opaque %q", file, seg.Payload()[:min(60, len(seg.Payload()))])
			case sp.At == 0:
				found[websocket.Name(sp.Name)]++
			}
		})
		for _, name := range []websocket.Name{websocket.Text, websocket.Binary} {
			if found[name] != want[name] {
				t.Errorf("%s: %d %v, want %d", file, found[name], name, want[name])
			}
		}
		if found[websocket.Upgrade] != 2 || opaque != 0 {
			t.Errorf("%s: %d HTTP heads, want 2, and %d spans of other protocols", file, found[websocket.Upgrade], opaque)
		}
		t.Logf("%s: %v", file, found)
	}
}

// TestCapturesOfOthers holds that no other protocol's traffic is taken for
// WebSocket.
func TestCapturesOfOthers(t *testing.T) {
	parsertest.CapturesOfOthers(t, registry(), "websocket", "ws-")
	parsertest.CapturesOfOthers(t, registry(), "mqtt-ws", "mqtt-ws-")
}
