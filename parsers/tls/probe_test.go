package tls

import (
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	parsertest.Probes[[]byte]{
		{"ClientHello", clientHello, parsers.Strong},
		{"ClientHello, cut", clientHello[:20], parsers.Strong},
		{"ServerHello, cut", serverHello[:20], parsers.Strong},
		{"certificate, cut", record(Handshake, message(11, 3000))[:1448], parsers.Weak},
		{"flight of a server", cat(serverHello, change, data(900)), parsers.Strong},
		{"flight of a server, cut", cat(serverHello, change, data(3000))[:1448], parsers.Strong},
		{"data", data(150), parsers.Strong},
		{"data, twice", cat(data(150), data(90)), parsers.Strong},
		{"data and a head that is cut", cat(data(150), data(90)[:4]), parsers.Strong},
		{"data and a byte", cat(data(150), data(90)[:1]), parsers.Weak},
		{"data, cut", data(16000)[:1448], parsers.Weak},
		{"a head", data(16000)[:5], parsers.Weak},
		{"a version", data(100)[:3], parsers.Weak},
		{"a type", data(100)[:2], parsers.None},
		{"data and something else", cat(data(150), []byte("GET / HTTP/1.1")), parsers.None},
		{"inside of data", data(2000)[700:], parsers.None},
		{"close_notify", closeNotify, parsers.Strong},
		{"MQTT", []byte("\x30\x0c\x00\x03a/bhello"), parsers.None},
		{"Kafka", []byte("\x00\x00\x00\x15\x00\x12\x00\x00\x00\x00\x00\x81\x00\x07rdkafka\x00\x00\x00\x00"), parsers.None},
		{"text", []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), parsers.None},
		{"DTLS", []byte("\x16\xfe\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40"), parsers.None},
		{"zeroes", make([]byte, 100), parsers.None},
		{"nothing", nil, parsers.None},
	}.Check(t, Probe)
}

// TestProbeRandom holds that not even bytes which begin like a record are taken for
// TLS where that is all.
func TestProbeRandom(t *testing.T) {
	parsertest.ProbeRandom(t, 500_000, Probe, func(_ int, b []byte) {
		b[0] = b[0]%5 + 20
		b[1] = major
		b[2] = b[2]%4 + 1
		if b[3] == 0 && int(b[4]) <= len(b) {
			b[3] = 1 // else it ends where the bytes do, or another follows
		}
	})
}
