package resp

import (
	"strings"
	"testing"
	"unsafe"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestClasses(t *testing.T) {
	for text, want := range map[string]parsers.Class{
		arrayOf("PUBLISH", "a", "b"):       parsers.ClassData,
		arrayOf("message", "a", "b"):       parsers.ClassData,
		arrayOf("SUBSCRIBE", "a"):          parsers.ClassData,
		arrayOf("XACK", "a", "g", "1-0"):   parsers.ClassAck,
		":100\r\n":                         parsers.ClassAck,
		"+OK\r\n":                          parsers.ClassAck,
		"+PONG\r\n":                        parsers.ClassUrgent,
		arrayOf("pong", ""):                parsers.ClassUrgent,
		"PING\r\n":                         parsers.ClassUrgent,
		arrayOf("ping"):                    parsers.ClassUrgent,
		arrayOf("HELLO", "3"):              parsers.ClassUrgent,
		arrayOf("AUTH", "x"):               parsers.ClassUrgent,
		"-LOADING\r\n":                     parsers.ClassUrgent,
		"$5\r\nhello\r\n":                  parsers.ClassData,
		"%1\r\n+server\r\n$5\r\nredis\r\n": parsers.ClassData,
		"*2\r\n$4\r\npong\r\n$1\r\nx\r\n":  parsers.ClassUrgent,
	} {
		if got := scanAll(t, NewScanner(testID), text)[0].Class; got != want {
			t.Errorf("%q: class %d, want %d", text, got, want)
		}
	}
}

// TestSides holds that what an array is depends on who sends it.
func TestSides(t *testing.T) {
	for _, tt := range []struct {
		first, text string
		want        Name
	}{
		{arrayOf("GET", "a"), arrayOf("json.something", "a"), COMMAND},
		{"PING\r\n", arrayOf("json.something", "a"), COMMAND},
		{"PING\r\n", "json.something a\r\n", COMMAND},
		{"+OK\r\n", arrayOf("json.something", "a"), Array},
		{"+OK\r\n", arrayOf("GET", "a"), Array},
		{":1\r\n", arrayOf("message", "a", "b"), Msg},
		{arrayOf("GET", "a"), arrayOf("message", "a", "b"), COMMAND},
		{arrayOf("GET", "a"), "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n$1\r\nb\r\n", SUBSCRIBE},
		{arrayOf("x", "a"), arrayOf("GET", "a"), COMMAND},
	} {
		s := NewScanner(testID)
		scanAll(t, s, tt.first)
		if got := Name(scanAll(t, s, tt.text)[0].Name); got != tt.want {
			t.Errorf("%q after %q: %v, want %v", tt.text, tt.first, got, tt.want)
		}
	}
}

func TestScanSplits(t *testing.T) {
	text := arrayOf("message", "a:b", "hello world")
	suite.Scans(t, newScanner, parsertest.Streams[string]{
		{"in the payload", cut(text, 40), `
message 0+40 body 31 "a:b"
message 40+4 body 0
`},
		{"in the channel", cut(text, 22), `
 0+22 body 22
message 22+22 body 9
`},
		{"in heads, again and again", cut(text, 1, 2, 3, 4, 6), `
 0+1 body 1
 1+1 body 1
 2+1 body 1
 3+1 body 1
 4+2 body 2
message 6+38 body 25
`},
		{"in the end", cut(text, 43), `
message 0+43 body 31 "a:b"
message 43+1 body 0
`},
		{"in a long line", cut("-ERR "+strings.Repeat("x", 50)+"\r\n:1\r\n", 20, 56, 58), `
Error 0+20 body 1
Error 20+36 body 0
Error 56+1 body 0
Integer 0+1 body 1
Integer 1+3 body 0
`},
		{"a long channel", cut(arrayOf("message", strings.Repeat("c", 1000), "x"), 100, 600), `
 0+100 body 100
message 100+500 body 500
message 600+433 body 426
`},
	})
}

func TestKeys(t *testing.T) {
	key := func(text string) uint64 { return NewScanner(testID).Scan(nil, []byte(text))[0].Key }
	a := key(arrayOf("message", "a:b", "hello"))
	for name, other := range map[string]string{
		"body": arrayOf("message", "a:b", ""), "RESP3": ">" + arrayOf("message", "a:b", "x")[1:],
	} {
		if key(other) != a {
			t.Errorf("%s is in the key", name)
		}
	}
	parsertest.InKey(t, a, map[string]uint64{
		"channel":  key(arrayOf("message", "a:c", "hello")),
		"name":     key(arrayOf("PUBLISH", "a:b", "hello")),
		"protocol": NewScanner(testID+1).Scan(nil, []byte(arrayOf("message", "a:b", "hello")))[0].Key,
	})
	long := strings.Repeat("c", 300)
	if key(arrayOf("message", long, "x")) == key(arrayOf("message", long+"c", "x")) {
		t.Error("the length of a long channel is not in the key")
	}
}

func TestResync(t *testing.T) {
	long := arrayOf("message", "a:b", strings.Repeat("body ", 200))
	next := arrayOf("message", "c", "next")
	list := arrayOf(strings.Split(strings.Repeat("xxx ", 300), " ")...)
	suite.Resync(t, newScanner, long[:300], parsertest.AfterLoss[string]{
		{"message at the start", next, "message 0+34 body 28 \"c\"\n"},
		{"reply at the start", ":1\r\n", "Integer 0+4 body 1\n"},
		{"cut message at the start", long[:100], "message 0+100 body 33 \"a:b\"\n"},
		{"cut head at the start", long[:10], " 0+10 body 10\n"},
		{"message inside, up to the end", long[500:] + next, "opaque 535\nmessage 0+34 body 28 \"c\"\n"},
		{"messages inside, the last cut", long[500:] + next + long[:60], "opaque 535\nmessage 0+34 body 28 \"c\"\nmessage 0+60 body 33 \"a:b\"\n"},
		{"nothing", long[500:700], "opaque 200\n"},
		{"a reply inside is no evidence", long[500:] + ":1\r\n", "opaque 539\n"},
		{"elements of a large reply", list[6:1000], "opaque 994\n"},
	})
}

// TestGarbage holds that what is no message is opaque and the next one is found.
func TestGarbage(t *testing.T) {
	good := arrayOf("message", "a:b", "good")
	suite.Garbage(t, newScanner, good, "a:b", map[string][]string{
		"own segment":       {good, "*1\r\nx", good},
		"same segment":      {good, "*1\r\nx\r\n" + good},
		"after a cut front": {good[:3], "\x00\x01", good},
		"string too short":  {good[:35], "d\r\n" + good},
	})
}

func TestRescan(t *testing.T) {
	s := NewScanner(testID)
	cutOff := arrayOf("PUBLISH", "x:y", "body")
	state := func() any { return [...]any{s.state, s.at, s.walker, string(s.carry)} }
	suite.Rescan(t, s, state, []string{arrayOf("PUBLISH", "a", "1") + arrayOf("PUBLISH", "b", "22"), cutOff[:9]},
		cutOff[:3], cutOff[:6], "\x00")
	suite.Shows(t, s, "PUBLISH 9+27 body 21\n", cutOff[9:])
}

func TestScannerSize(t *testing.T) {
	if n := unsafe.Sizeof(Scanner{}); n > 208 {
		t.Errorf("a Scanner takes %d bytes", n)
	}
}
