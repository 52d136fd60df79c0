package mqttsn

import (
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	parsertest.Probes[[]byte]{
		{"CONNECT", msg(CONNECT, "\x04\x01\x00\x3csensor-1"), parsers.Strong},
		{"forwarded CONNECT", capsule("node", msg(CONNECT, "\x04\x01\x00\x3csensor-1")), parsers.Strong},
		{"REGISTER of a client", msg(REGISTER, "\x00\x00\x00\x05sensors/1"), parsers.Strong},
		{"CONNECT with little text", msg(CONNECT, "\x04\x01\x00\x3cc-1"), parsers.Weak},
		{"CONNECT with other flags", msg(CONNECT, "\x24\x01\x00\x3csensor-1"), parsers.Weak},
		{"CONNECT with control characters", msg(CONNECT, "\x04\x01\x00\x3csensor\n1"), parsers.Weak},
		{"REGISTER of a gateway", msg(REGISTER, "\x00\x07\x00\x05sensors/1"), parsers.Weak},
		{"PUBLISH", publish(0x20, 7, 6, "21.5"), parsers.Weak},
		{"PINGREQ", msg(PINGREQ, ""), parsers.Weak},
		{"PUBLISH, cut", publish(0x20, 7, 6, "21.5")[:9], parsers.None},
		{"PUBLISH and a byte", append(publish(0x20, 7, 6, "21.5"), 0), parsers.None},
		{"DNS", []byte("\x52\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03org\x00\x00\x01\x00\x01"), parsers.None},
		{"STUN", []byte("\x00\x01\x00\x00\x21\x12\xa4\x42123456789012"), parsers.None},
		{"CoAP", []byte("\x40\x01\x00\x01\xb4room"), parsers.None},
		{"RTP", []byte("\x80\x60\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01abc"), parsers.None},
		{"zeroes", make([]byte, 100), parsers.None},
		{"nothing", nil, parsers.None},
	}.Check(t, Probe)
}

func TestProbeRandom(t *testing.T) {
	n := 0
	probe := func(b []byte) parsers.Confidence {
		n++
		return Probe(b[:8+n%56])
	}
	parsertest.ProbeRandom(t, 400_000, probe, func(i int, b []byte) { // right as far as the type
		b[0], b[1] = byte(8+(i+1)%56), byte(CONNECT-1)
	})
}
