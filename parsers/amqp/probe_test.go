package amqp

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	one := deliver(1, "c", 5, "x", "k", "hello")
	large := deliver(1, "c", 5, "x", "k", strings.Repeat("x", 900))
	parsertest.Probes[[]byte]{
		{"preamble", []byte(preamble), parsers.Strong},
		{"cut preamble", []byte("AMQP\x00\x00"), parsers.Weak},
		{"preamble of any version", []byte("AMQP\x00"), parsers.None},
		{"preamble of 1.0", []byte("AMQP\x00\x01\x00\x00"), parsers.None},
		{"preamble of 1.0, SASL", []byte("AMQP\x03\x01\x00\x00"), parsers.None},
		{"preamble of 0-10", []byte("AMQP\x01\x01\x00\x0a"), parsers.None},
		{"deliver", one, parsers.Strong},
		{"deliver, cut", one[:20], parsers.Strong},
		{"deliver, cut before the method", one[:9], parsers.Weak},
		{"first byte", one[:1], parsers.Weak},
		{"content header", one[27:], parsers.Strong},
		{"content body", one[61:], parsers.Strong},
		{"content body, cut", large[61:500], parsers.Weak},
		{"middle of a body", large[100:], parsers.None},
		{"heartbeat", heartbeat(), parsers.Strong},
		{"many", []byte(strings.Repeat(string(ack(1, 1)), 100)), parsers.Strong},
		{"and a byte", cat(one, []byte{0}), parsers.None},
		{"method that is not known", frame(typeMethod, 1, u16(99), u16(1)), parsers.None},
		{"channel 5000", ack(5000, 1), parsers.None},
		{"body of a megabyte", frame(typeBody, 1, make([]byte, 1<<20)), parsers.None},
		{"begin of 1.0", []byte("\x00\x00\x00\x21\x02\x00\x00\x00\x00\x53\x11\xc0\x14"), parsers.None},
		{"TPKT", []byte("\x03\x00\x00\x13\x0e\xe0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x0b\x00\x00\x00"), parsers.None},
		{"MySQL", []byte("\x01\x00\x00\x01\x0e"), parsers.None},
		{"TLS data", []byte("\x17\x03\x03\x00\x20abcdefgh"), parsers.None},
		{"GET", []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), parsers.None},
		{"MQTT", []byte("\x30\x0a\x00\x05a/b/cone"), parsers.None},
		{"NATS", []byte("PUB a.b 5\r\nhello\r\n"), parsers.None},
		{"zeroes", make([]byte, 100), parsers.None},
		{"nothing", nil, parsers.None},
	}.Check(t, Probe)
}

func TestProbeRandom(t *testing.T) {
	parsertest.ProbeRandom(t, 400_000, Probe, func(i int, b []byte) { // a length in front, as many protocols have
		b[0] = byte(i % 16)
		b[1], b[2], b[3], b[4] = 0, byte(i/32%2), 0, 0
	})
}
