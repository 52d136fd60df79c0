package nats

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	long := "MSG a.b.c 1 3000\r\n" + strings.Repeat("x", 3000) + "\r\n"
	parsertest.Probes[string]{
		{"INFO", info, parsers.Strong},
		{"cut INFO", `INFO {"server_id":"NCK`, parsers.Strong},
		{"INFO that is a log", `INFO {"a":1}` + "\r\n", parsers.Weak},
		{"CONNECT", connect, parsers.Strong},
		{"CONNECT and PING", connect + "PING\r\n", parsers.Strong},
		{"MSG", "MSG a.b 1 5\r\nhello\r\n", parsers.Strong},
		{"PUB", "PUB a.b 5\r\nhello\r\n", parsers.Strong},
		{"HMSG", "HMSG a 1 12 12\r\nNATS/1.0\r\n\r\n\r\n", parsers.Strong},
		{"MSG and a cut one", "MSG a.b 1 5\r\nhello\r\nMSG a", parsers.Strong},
		{"MSG, cut", long[:1448], parsers.Weak},
		{"MSG, cut in the line", long[:6], parsers.Weak},
		{"first byte", "M", parsers.Weak},
		{"SUB", "SUB a 1\r\n", parsers.Weak},
		{"SUB and PING", "SUB a 1\r\nPING\r\n", parsers.Strong},
		{"PING", "PING\r\n", parsers.Weak},
		{"PING, many", strings.Repeat("PING\r\n", 100), parsers.None},
		{"+OK", "+OK\r\n", parsers.Weak},
		{"-ERR of Redis", "-ERR unknown command\r\n", parsers.Weak},
		{"POP3", "+OK POP3 server ready\r\n", parsers.None},
		{"middle of a body", long[100:1000], parsers.None},
		{"MSG and a byte", "MSG a.b 1 5\r\nhello\r\n\x00", parsers.None},
		{"payload too long", "MSG a.b 1 4\r\nhello\r\n", parsers.None},
		{"claims megabytes", "MSG a.b 1 60000000\r\n", parsers.None},
		{"MQTT", "\x30\x0c\x00\x06room/121.5", parsers.None},
		{"Redis", "*2\r\n$3\r\nGET\r\n$1\r\na\r\n", parsers.None},
		{"STOMP", "CONNECT\nlogin:a\n\n\x00", parsers.None},
		{"HTTP CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", parsers.None},
		{"HTTP PUT", "PUT / HTTP/1.1\r\nHost: a\r\n\r\n", parsers.None},
		{"SIP", "INFO sip:a@b SIP/2.0\r\n\r\n", parsers.None},
		{"SIP SUBSCRIBE", "SUBSCRIBE sip:a@b SIP/2.0\r\n\r\n", parsers.None},
		{"IRC", "PING :server\r\n", parsers.None},
		{"nothing", "", parsers.None},
	}.Check(t, Probe)
}

func TestProbeRandom(t *testing.T) {
	parsertest.ProbeRandom(t, 200_000, Probe, nil)
}
