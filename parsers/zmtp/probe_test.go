package zmtp

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	parsertest.Probes[[]byte]{
		{"greeting", greeting("NULL"), parsers.Strong},
		{"signature", greeting("NULL")[:10], parsers.Strong},
		{"signature and version", greeting("NULL")[:11], parsers.Strong},
		{"signature of version 1", cat(greeting("NULL")[:10], []byte{1}), parsers.None},
		{"READY", ready("PUB"), parsers.Strong},
		{"SUBSCRIBE", command("SUBSCRIBE", "a"), parsers.Strong},
		{"SUBSCRIBE to a long topic, cut behind what is looked at", command("SUBSCRIBE", strings.Repeat("a", 300))[:290], parsers.Strong},
		{"CANCEL", command("CANCEL", "a"), parsers.Strong},
		{"PING", command("PING", "\x00\x64"), parsers.Weak},
		{"unknown command", command("NEW", ""), parsers.Weak},
		{"message", message3("weather", "41"), parsers.Weak},
		{"messages", []byte(strings.Repeat(string(message3("weather", "41")), 20)), parsers.Weak},
		{"cut in the topic", message3("weather", "41")[:5], parsers.Weak},
		{"request", message3("", "hello"), parsers.Weak},
		{"one frame", message3("hello"), parsers.Weak},
		{"one frame, cut", message3("hello")[:5], parsers.None},
		{"message and a byte", cat(message3("weather", "41"), []byte{9}), parsers.None},
		{"SUBSCRIBE and a byte", cat(command("SUBSCRIBE", "a"), []byte{9}), parsers.None},
		{"part of a greeting", greeting("NULL")[11:], parsers.None},
		{"TLS ClientHello", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), parsers.None},
		{"GET", []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), parsers.None},
		{"telnet", []byte("\xff\xfd\x18\xff\xfd\x20"), parsers.None},
		{"Kafka", []byte("\x00\x00\x00\x15\x00\x12\x00\x00\x00\x00\x00\x81\x00\x07rdkafka\x00\x00\x00\x00"), parsers.None},
		{"zeroes", make([]byte, 100), parsers.None},
		{"nothing", nil, parsers.None},
	}.Check(t, Probe)
}

func TestProbeRandom(t *testing.T) {
	parsertest.ProbeRandom(t, 200_000, Probe, func(_ int, b []byte) {
		b[0], b[1] = 4, b[1]&31
	})
}
