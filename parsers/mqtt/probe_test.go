package mqtt

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	long := publish(0, "a/b/c", 0, strings.Repeat("x", 3000))
	parsertest.Probes[[]byte]{
		{"CONNECT", connect(4), parsers.Strong},
		{"CONNECT 3.1", connect(3), parsers.Strong},
		{"CONNECT 5", connect(5), parsers.Strong},
		{"cut CONNECT", connect(4)[:14], parsers.Strong},
		{"first byte of a CONNECT", connect(4)[:1], parsers.Weak},
		{"CONNACK", msg(0x20, []byte{0, 0}), parsers.Weak},
		{"CONNACK 5 without properties", msg(0x20, []byte{0, 0}, props()), parsers.Weak},
		{"CONNACK twice", cat(msg(0x20, []byte{0, 0}), msg(0x20, []byte{0, 0})), parsers.Weak},
		{"CONNACK and SUBACK", cat(msg(0x20, []byte{0, 0}), msg(0x90, u16(1), []byte{0})), parsers.Strong},
		{"CONNACK 5", msg(0x20, []byte{0, 0}, props([]byte{0x22, 0, 10})), parsers.Strong},
		{"PUBLISH", publish(0, "a/b", 0, "1"), parsers.Strong},
		{"PUBLISH, little topic", publish(0, "a", 0, "1"), parsers.Weak},
		{"PUBLISH, cut", long[:1448], parsers.Weak},
		{"PUBLISH, cut in the topic", long[:6], parsers.Weak},
		{"many PUBLISH", []byte(strings.Repeat(string(publish(1, "a", 3, "1")), 100)), parsers.Strong},
		{"SUBSCRIBE", msg(0x82, u16(1), str("a/#"), []byte{1}), parsers.Strong},
		{"PINGREQ", msg(0xc0), parsers.Weak},
		{"PINGREQ, many", []byte(strings.Repeat("\xc0\x00", 500)), parsers.Weak},
		{"PUBACK", msg(0x40, u16(5)), parsers.Weak},
		{"DISCONNECT", msg(0xe0), parsers.Weak},
		{"middle of a body", long[100:1000], parsers.None},
		{"PUBLISH and a byte", cat(publish(0, "a/b", 0, "1"), []byte{0}), parsers.None},
		{"control characters", publish(0, "a\x01b", 0, "1"), parsers.None},
		{"wildcard", publish(0, "a/#", 0, "1"), parsers.None},
		{"again at QoS 0", msg(0x38, str("a/b")), parsers.None},
		{"claims megabytes", cat([]byte{0x30, 0x80, 0x80, 0x80, 1}, str("a/b")), parsers.None},
		{"TLS ClientHello", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), parsers.None},
		{"TLS data", []byte("\x17\x03\x03\x00\x20abcdefgh"), parsers.None},
		{"GET", []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), parsers.None},
		{"POST", []byte("POST / HTTP/1.1\r\nHost: a\r\n\r\n"), parsers.None},
		{"PUT", []byte("PUT / HTTP/1.1\r\nHost: a\r\n\r\n"), parsers.None},
		{"HTTP answer", []byte("HTTP/1.1 200 OK\r\n\r\n"), parsers.None},
		{"SSH", []byte("SSH-2.0-OpenSSH_9.6\r\n"), parsers.None},
		{"NATS", []byte("PUB a.b 5\r\nhello\r\n"), parsers.None},
		{"numbers", []byte("0.1234,1.5,2,3\n"), parsers.None},
		{"zeroes", make([]byte, 100), parsers.None},
		{"nothing", nil, parsers.None},
	}.Check(t, Probe)
}

func TestProbeRandom(t *testing.T) {
	parsertest.ProbeRandom(t, 200_000, Probe, nil)
}
