package resp

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	long := arrayOf("message", "a:b", strings.Repeat("x", 3000))
	list := arrayOf(strings.Split(strings.Repeat("xxx ", 300), " ")...)
	parsertest.Probes[string]{
		{"command", arrayOf("GET", "a"), parsers.Strong},
		{"PING", arrayOf("PING"), parsers.Strong},
		{"PUBLISH", arrayOf("PUBLISH", "a", "x"), parsers.Strong},
		{"message", arrayOf("message", "a", "x"), parsers.Strong},
		{"message, RESP3", ">" + arrayOf("message", "a", "x")[1:], parsers.Strong},
		{"message and a cut one", arrayOf("message", "a", "x") + "*3\r\n$7\r\nmess", parsers.Strong},
		{"subscribed", "*3\r\n$9\r\nsubscribe\r\n$3\r\nFoo\r\n:1\r\n", parsers.Strong},
		{"map", "%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.1\r\n", parsers.Strong},
		{"message, cut", long[:1448], parsers.Weak},
		{"message, cut in the channel", long[:20], parsers.Weak},
		{"first byte", "*", parsers.Weak},
		{"string", "$9\r\nall of it\r\n", parsers.Strong},
		{"short string", "$1\r\n6\r\n", parsers.Weak},
		{"null", "$-1\r\n", parsers.Weak},
		{"+OK", "+OK\r\n", parsers.Weak},
		{"+OK, many", strings.Repeat("+OK\r\n", 200), parsers.Weak},
		{"integer", ":1\r\n", parsers.Weak},
		{"integers, many", strings.Repeat(":1\r\n", 200), parsers.None},
		{"inline", "PUBLISH a b\r\n", parsers.Weak},
		{"inline PING", "PING\r\n", parsers.Weak},
		{"inline, unknown", "FAKE COMMAND\r\n", parsers.None},
		{"elements of a large reply", list[6:1000], parsers.None},
		{"middle of a body", long[100:1000], parsers.None},
		{"message and a byte", arrayOf("message", "a", "x") + "\x00", parsers.None},
		{"string too long", "*1\r\n$3\r\nGETS\r\n", parsers.None},
		{"claims megabytes", "$500000000\r\n", parsers.None},
		{"POP3", "+OK POP3 server ready\r\n", parsers.Weak},
		{"IMAP", "* OK IMAP4rev1\r\n", parsers.None},
		{"IRC", ":server 001 me :Welcome\r\n", parsers.None},
		{"SMTP", "220 mail ESMTP\r\n", parsers.None},
		{"SMTP AUTH", "AUTH LOGIN\r\n", parsers.Weak},
		{"HTTP GET", "GET / HTTP/1.1\r\n\r\n", parsers.None},
		{"HTTP OPTIONS", "OPTIONS * HTTP/1.1\r\n\r\n", parsers.None},
		{"HTTP answer", "HTTP/1.1 200 OK\r\n\r\n", parsers.None},
		{"NATS INFO", "INFO {\"server_id\":\"NA\"}\r\n", parsers.Weak},
		{"NATS", "PUB a.b 5\r\nhello\r\n", parsers.None},
		{"MQTT", "\x30\x0c\x00\x06room/121.5", parsers.None},
		{"STOMP", "SUBSCRIBE\nid:0\n\n\x00", parsers.None},
		{"nothing", "", parsers.None},
	}.Check(t, Probe)
}

func TestProbeRandom(t *testing.T) {
	parsertest.ProbeRandom(t, 200_000, Probe, nil)
}
