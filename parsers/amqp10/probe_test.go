package amqp10

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	one := transfer(1, 2, 5, "t", "hello")
	parsertest.Probes[[]byte]{
		{"preamble", head(protocolAMQP), parsers.Strong},
		{"preamble, SASL", head(protocolSASL), parsers.Strong},
		{"preamble, and a frame", cat(head(protocolSASL), sasl(SASLMechanisms, sym("PLAIN"))), parsers.Strong},
		{"cut preamble", head(protocolSASL)[:6], parsers.Weak},
		{"preamble of any version", []byte("AMQP\x00"), parsers.None},
		{"preamble of 0-9-1", []byte("AMQP\x00\x00\x09\x01"), parsers.None},
		{"preamble of 0-10", []byte("AMQP\x01\x01\x00\x0a"), parsers.None},
		{"transfer", one, parsers.Strong},
		{"transfer, cut", one[:15], parsers.Strong},
		{"transfer, cut before the performative", one[:10], parsers.Weak},
		{"transfer, cut in the header", one[:6], parsers.Weak},
		{"size", one[:4], parsers.None},
		{"empty", empty(), parsers.Weak},
		{"empty, then an open", cat(empty(), perform(0, Open, str("id"))), parsers.Strong},
		{"SASL", sasl(SASLInit, sym("PLAIN")), parsers.Strong},
		{"middle of a body", one[20:], parsers.None},
		{"many", []byte(strings.Repeat(string(one), 100)), parsers.Strong},
		{"and a byte", cat(one, []byte{9}), parsers.None},
		{"performative that is not known", frame(typeAMQP, 0, described(0x19, list())), parsers.None},
		{"megabytes", cat([]byte{1, 0, 0, 0, 2, 0, 0, 0}, described(0x14, list(num(0)))), parsers.None},
		{"0-9-1", []byte("\x01\x00\x01\x00\x00\x00\x0d\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x00\x01\x00\xce"), parsers.None},
		{"Kafka", []byte("\x00\x00\x00\x20\x00\x03\x00\x01\x00\x00\x00\x01\x00\x05abcde"), parsers.None},
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
		b[0], b[1], b[2], b[4], b[5] = 0, 0, 0, byte(i%4), 0
	})
}
