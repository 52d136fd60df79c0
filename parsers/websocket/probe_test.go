package websocket

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	const none, weak, strong = parsers.None, parsers.Weak, parsers.Strong
	pub := frame(0x82, publish("a/b", 0, "1"))
	long := frame(0x82, publish("a/b", 0, strings.Repeat("x", 3000)))
	text := frame(0x81, []byte(`{"type":"subscribe","topic":"a"}`))
	plain := "GET / HTTP/1.1\r\nHost: a\r\nCookie: upgrade: websocket\r\n\r\n"
	for _, tt := range []struct {
		name      string
		payload   []byte
		mqtt, any parsers.Confidence
	}{
		{"request", request("mqtt"), strong, strong},
		{"request of 3.1", request("mqttv3.1"), strong, strong},
		{"request for one of several", request("chat, mqtt"), strong, strong},
		{"request for something else", request("v12.stomp"), none, strong},
		{"request for anything", request(""), none, strong},
		{"answer", answer("mqtt"), strong, strong},
		{"answer for anything", answer(""), none, strong},
		{"request, cut behind its protocol", request("mqtt")[:170], strong, none},
		{"request, cut before its protocol", request("mqtt")[:120], none, none},
		{"answer with a frame behind", cat(answer("mqtt"), pub), strong, strong},
		{"plain GET", []byte(plain), none, none},
		{"plain POST", []byte("POST / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n"), none, none},
		{"plain answer", []byte("HTTP/1.1 200 OK\r\nUpgrade: websocket\r\n\r\n"), none, none},
		{"upgrade to HTTP/2", []byte("GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n"), none, none},
		{"HTTP/2", []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), none, none},
		{"PUBLISH", pub, strong, none},
		{"PUBLISH, masked", masked(0x12345678, pub), strong, none},
		{"PUBLISH and PUBLISH", cat(pub, pub[:9]), weak, none},
		{"CONNECT", masked(9, frame(0x82, []byte(connect))), strong, none},
		{"PUBLISH, cut", long[:1448], weak, none},
		{"PINGREQ", frame(0x82, []byte("\xc0\x00")), weak, none},
		{"ping", frame(0x89, nil), weak, weak},
		{"close", masked(3, frame(0x88, []byte("\x03\xe8"))), weak, weak},
		{"text", text, none, strong},
		{"text, masked", masked(0x12345678, text), none, strong},
		{"little text", frame(0x81, []byte("hi")), none, weak},
		{"binary, not MQTT", frame(0x82, []byte("\x00\x01\x02")), none, none},
		{"one end that masks and does not", cat(pub, masked(5, pub)), none, none},
		{"PUBLISH and a byte that is no frame's", cat(pub, []byte{3}), none, none},
		{"ZMTP", []byte("\x01\x12weather/north/wind\x00\x0241"), none, none},
		{"MQTT", publish("a/b", 0, "1"), none, none},
		{"MQTT SUBSCRIBE", []byte("\x82\x08\x00\x01\x00\x03a/b\x00"), none, none},
		{"TLS", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), none, none},
		{"nothing", nil, none, none},
	} {
		if got := Over(inner).Probe(tt.payload); got != tt.mqtt {
			t.Errorf("%s: MQTT inside %d, want %d", tt.name, got, tt.mqtt)
		}
		if got := Protocol().Probe(tt.payload); got != tt.any {
			t.Errorf("%s: anything %d, want %d", tt.name, got, tt.any)
		}
	}
}

func TestProbeRandom(t *testing.T) {
	disguise := func(i int, b []byte) {
		b[0] = []byte{0x82, 0x81, 0x02, 0x80}[i/2%4]
		b[1] = byte(len(b) - 2)
		if i%4 == 0 {
			b[1] = byte(len(b)-6) | flagMasked
		}
	}
	parsertest.ProbeRandom(t, 200_000, Over(inner).Probe, disguise)
	parsertest.ProbeRandom(t, 200_000, Protocol().Probe, disguise)
}
