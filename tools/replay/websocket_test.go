package replay

import (
	"path/filepath"
	"testing"
	"time"
)

// TestWebSocket holds that MQTT is seen through WebSocket, masks included: the same
// messages and topics as without, for a few bytes more each, the keys.
func TestWebSocket(t *testing.T) {
	for _, tt := range []struct {
		name     string
		events   int
		messages uint64
		more     float64 // bytes that a message costs more, at the most
		acksMore float64 // and its acknowledgement
	}{
		{"telemetry-40", 40, 320, 6, 1},
		{"fanout-20-qos1", 1, 800, 1, 6},
	} {
		type sum struct {
			messages, acks  uint64
			bytes, ackBytes float64
			events, others  int
		}
		count := func(file, protocol string) (s sum) {
			p := replayFile(t, filepath.Join("..", "..", "testdata", file+".pcap.gz"), config(5*time.Millisecond))
			if !p.Exact() {
				t.Errorf("%s: %d packets came out different: %s", file, p.Mismatched, p.Difference)
			}
			for _, row := range p.Rows {
				switch {
				case row.Protocol == protocol && row.Name == "PUBLISH":
					s.messages += row.Messages
					s.bytes += row.BytesFrames
					s.events++
				case row.Protocol == protocol && row.Name == "PUBACK":
					s.acks += row.Messages
					s.ackBytes += row.BytesFrames
				case row.Protocol != protocol && row.Name != "":
					s.others++
				}
			}
			return s
		}
		plain, ws := count(tt.name, "mqtt"), count(tt.name+"-ws", "mqtt-ws")
		if ws.messages != tt.messages || ws.events != tt.events || ws.acks != tt.messages || ws.others != 0 {
			t.Errorf("%s: %+v, want %d messages of %d events, each acknowledged", tt.name, ws, tt.messages, tt.events)
		}
		n := float64(tt.messages)
		more, acksMore := (ws.bytes-plain.bytes)/n, (ws.ackBytes-plain.ackBytes)/n
		t.Logf("%s: over WebSocket a message costs %.2f bytes more, its acknowledgement %.2f", tt.name, more, acksMore)
		if more > tt.more || acksMore > tt.acksMore {
			t.Errorf("%s: a message costs %.2f bytes more, its acknowledgement %.2f", tt.name, more, acksMore)
		}
	}
}
