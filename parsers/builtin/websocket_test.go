package builtin_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/parsers/parsertest"
)

// protocolOf returns the name of the protocol that payloads to a port are taken
// for, one after another in a flow.
func protocolOf(t parsertest.TB, port uint16, payloads ...string) string {
	t.Helper()
	reg := builtin.Registry()
	var st parsers.Stream
	var d parsers.Decoder
	seq := uint32(1)
	for _, p := range payloads {
		packet := parsertest.TCPPacket(port, p)
		binary.BigEndian.PutUint32(packet[24:], seq) // which makes the checksum wrong: nobody looks
		seq += uint32(len(p))
		var seg parsers.Segment
		if err := d.Decode(packet, &seg); err != nil {
			t.Fatalf("%v", err)
		}
		st.Scan(reg, &seg, nil)
	}
	return reg.Name(st.Protocol())
}

// TestWebSocketAmongOthers holds that WebSocket is told from plain HTTP, whatever
// the port, and MQTT in it from other traffic.
func TestWebSocketAmongOthers(t *testing.T) {
	upgrade := func(protocol string) string {
		return "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n" + protocol + "\r\n"
	}
	plain := []string{
		"GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n", "POST /a HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd",
		"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\x82\x02\xc0\x00 text", strings.Repeat("<p>and so on</p>", 80),
		strings.Repeat("\x1f\x8b\x08\x00\x82\x7e\x81\x05abcd\x89\x00", 100),
	}
	for _, port := range []uint16{80, 8080, 9001, 12345} {
		for _, tt := range []struct {
			name, want string
			payloads   []string
		}{
			{"plain HTTP", "opaque", plain},
			{"MQTT from the start", "mqtt-ws", []string{upgrade("Sec-WebSocket-Protocol: mqtt\r\n"), "\x82\x80abcd"}},
			{"something else from the start", "websocket", []string{upgrade(""), "\x81\x02hi"}},
			{"plain HTTP first", "mqtt-ws", []string{plain[0], upgrade("Sec-WebSocket-Protocol: mqtt\r\n")}},
			{"MQTT in the middle", "mqtt-ws", []string{"\x82\x0e\x30\x0c\x00\x06room/121.5"}},
		} {
			if got := protocolOf(t, port, tt.payloads...); got != tt.want {
				t.Errorf("port %d, %s: %s, want %s", port, tt.name, got, tt.want)
			}
		}
	}
}

// TestFramesAreNotMQTT holds that a frame with a PUBLISH, which begins with the first
// byte of a SUBSCRIBE, is not taken for one.
func TestFramesAreNotMQTT(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topic := rapid.StringMatching(`[a-z0-9/]{1,40}`).Draw(t, "topic")
		rest := rapid.SliceOfN(rapid.Byte(), 2, 60).Draw(t, "rest")
		first := rapid.SampledFrom([]byte{0x30, 0x31, 0x32, 0x34}).Draw(t, "first")
		m := append([]byte{first, byte(2 + len(topic) + len(rest)), 0, byte(len(topic))}, topic...)
		m = append(m, rest...)
		frame := string(append([]byte{0x82, byte(len(m))}, m...))
		if got := protocolOf(t, 12345, frame); got != "mqtt-ws" && got != "opaque" {
			t.Fatalf("%q is taken for %s", frame, got)
		}
	})
}
