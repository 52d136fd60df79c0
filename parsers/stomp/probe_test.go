package stomp

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	long := "MESSAGE\ndestination:a\nmessage-id:7\n\n" + strings.Repeat("x", 3000) + "\x00"
	parsertest.Probes[string]{
		{"CONNECT", messages[0].text, parsers.Strong},
		{"STOMP", messages[1].text, parsers.Strong},
		{"CONNECTED", messages[2].text, parsers.Strong},
		{"SEND", messages[3].text, parsers.Strong},
		{"SEND without headers", "SEND\n\n\x00", parsers.Weak},
		{"MESSAGE, cut", long[:1448], parsers.Strong},
		{"MESSAGE, cut in the headers", long[:20], parsers.Weak},
		{"first byte", "M", parsers.Weak},
		{"lower case", "message\ndestination:a\nmessage-id:7\n\n\x00", parsers.Strong},
		{"lower case, cut", "message\ndestination:a\nmessage-id:7\n\nhello", parsers.Weak},
		{"ACK", "ACK\nid:1\n\n\x00", parsers.Strong},
		{"heart-beat", "\n", parsers.Weak},
		{"heart-beat and SEND", "\n" + messages[3].text, parsers.Strong},
		{"middle of a body", long[100:1000], parsers.None},
		{"frame and a byte", messages[3].text + "x", parsers.None},
		{"claims megabytes", "SEND\ncontent-length:200000000\n\n", parsers.None},
		{"HTTP CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", parsers.None},
		{"HTTP answer", "HTTP/1.1 200 OK\r\n\r\n", parsers.None},
		{"SIP", "MESSAGE sip:a@b SIP/2.0\r\nTo: a\r\n\r\n", parsers.None},
		{"NATS", "CONNECT {\"verbose\":false}\r\n", parsers.None},
		{"Redis", "SUBSCRIBE a\r\n", parsers.None},
		{"line ends and something else", "\n\nhello", parsers.None},
		{"nothing", "", parsers.None},
	}.Check(t, Probe)
}

func TestProbeRandom(t *testing.T) {
	parsertest.ProbeRandom(t, 200_000, Probe, nil)
}
