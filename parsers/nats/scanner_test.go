package nats

import (
	"strings"
	"testing"
	"unsafe"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestClasses(t *testing.T) {
	one := func(s *Scanner, text string) parsers.Class { return scanAll(t, s, text)[0].Class }
	for _, tt := range messages {
		want := parsers.ClassData
		switch word, _, _ := strings.Cut(strings.ToUpper(strings.Trim(tt.text, "\r\n ")), " "); {
		case strings.Contains("INFO CONNECT PING PONG -ERR", word):
			want = parsers.ClassUrgent
		case word == "+OK", strings.HasPrefix(tt.text, "PUB $JS.ACK."):
			want = parsers.ClassAck
		}
		if got := one(NewScanner(testID), tt.text); got != want {
			t.Errorf("%s: class %d, want %d", tt.name, got, want)
		}
	}
	// A server's PING keeps a connection alive, and so does the answer; a client's
	// is waited for.
	for _, tt := range []struct {
		first, text string
		want        parsers.Class
	}{
		{info, "PING\r\n", parsers.ClassAck},
		{info, "PONG\r\n", parsers.ClassUrgent},
		{connect, "PING\r\n", parsers.ClassUrgent},
		{connect, "PONG\r\n", parsers.ClassAck},
		{"MSG a 1 0\r\n\r\n", "PING\r\n", parsers.ClassAck},
		{"SUB a 1\r\n", "PONG\r\n", parsers.ClassAck},
	} {
		s := NewScanner(testID)
		scanAll(t, s, tt.first)
		if got := one(s, tt.text); got != tt.want {
			t.Errorf("%q after %q: class %d, want %d", tt.text, tt.first, got, tt.want)
		}
	}
}

func TestScanSplits(t *testing.T) {
	body := strings.Repeat("x", 20)
	suite.Scans(t, newScanner, parsertest.Streams[string]{
		{"in the body", cut("MSG a.b 17 20\r\n"+body+"\r\n", 20), `
MSG 0+20 body 15 "a.b" #1=17
MSG 20+17 body 0
`},
		{"in the control line", cut("MSG a.b 17 20\r\n"+body+"\r\n", 6), `
MSG 0+6 body 6
MSG 6+31 body 9 #1=17
`},
		{"in the sid", cut("MSG a.b 17 20\r\n"+body+"\r\n", 9), `
MSG 0+9 body 9
MSG 9+28 body 6
`},
		{"in the operation, again and again", cut("HMSG a 1 12 12\r\nNATS/1.0\r\n\r\n\r\n", 1, 2, 3, 16), `
 0+1 body 1
HMSG 1+1 body 1
HMSG 2+1 body 1
HMSG 3+13 body 13 #0=1
HMSG 16+14 body 12
`},
		{"in the end", cut("MSG a 1 2\r\nhi\r\n", 14), `
MSG 0+14 body 11 "a" #0=1
MSG 14+1 body 0
`},
		{"at a boundary", cut("MSG a 1 2\r\nhi\r\nPING\r\n", 15), `
MSG 0+15 body 11 "a" #0=1
PING 0+6 body 6
`},
		{"a long line", cut("INFO {"+strings.Repeat("x", 3000)+"}\r\nPING\r\n", 1000, 2000), `
INFO 0+1000 body 5
INFO 1000+1000 body 0
INFO 2000+1009 body 0
PING 0+6 body 6
`},
	})
}

func TestKeys(t *testing.T) {
	key := func(text string) uint64 { return NewScanner(testID).Scan(nil, []byte(text))[0].Key }
	a := key("MSG a.b 1 2\r\nhi\r\n")
	for name, other := range map[string]string{
		"sid": "MSG a.b 20 2\r\nhi\r\n", "reply": "MSG a.b 1 c 2\r\nhi\r\n", "body": "MSG a.b 1 0\r\n\r\n",
	} {
		if key(other) != a {
			t.Errorf("%s is in the key", name)
		}
	}
	parsertest.InKey(t, a, map[string]uint64{
		"subject":  key("MSG a.c 1 2\r\nhi\r\n"),
		"name":     key("PUB a.b 2\r\nhi\r\n"),
		"protocol": NewScanner(testID+1).Scan(nil, []byte("MSG a.b 1 2\r\nhi\r\n"))[0].Key,
	})
	if key("SUB a 1\r\n") != key("SUB b 2\r\n") || key("SUB a.b 1\r\n") != key("SUB a.c 2\r\n") {
		t.Error("subscriptions that begin alike are not alike")
	}
	if key("SUB a.b 1\r\n") == key("SUB b.b 1\r\n") {
		t.Error("subscriptions that do not begin alike are alike")
	}
	if key("SUB a.") == key("SUB a 1\r\n") || key("SUB a.") != key("SUB a.b") {
		t.Error("cut lines are not alike, or like whole ones")
	}
	if key("MSG _INBOX.a.b 1 0\r\n\r\n") != key("MSG _INBOX.c.d 1 0\r\n\r\n") {
		t.Error("inboxes are not all alike")
	}
	if key("PUB $JS.ACK.S.a.1.2.3.4.5 0\r\n\r\n") != key("PUB $JS.ACK.S.b.1.2.4.4.0 0\r\n\r\n") {
		t.Error("acknowledgements are not all alike")
	}
}

func TestResync(t *testing.T) {
	long := "MSG a.long.subject 9 1000\r\n" + strings.Repeat("body ", 200) + "\r\n"
	next := "MSG a.b 1 4\r\nnext\r\n"
	suite.Resync(t, newScanner, long[:300], parsertest.AfterLoss[string]{
		{"message at the start", next, "MSG 0+19 body 13 \"a.b\" #1=1\n"},
		{"ping at the start", "PING\r\n", "PING 0+6 body 6\n"},
		{"cut message at the start", long[:100], "MSG 0+100 body 27 \"a.long.subject\" #0=9\n"},
		{"cut line at the start", long[:10], "MSG 0+10 body 10\n"},
		{"message inside, up to the end", long[500:] + next, "opaque 529\nMSG 0+19 body 13 \"a.b\" #1=1\n"},
		{"messages inside, the last cut", long[500:] + next + long[:40], "opaque 529\nMSG 0+19 body 13 \"a.b\" #1=1\nMSG 0+40 body 27 \"a.long.subject\" #0=9\n"},
		{"nothing", long[500:700], "opaque 200\n"},
		{"an end that is no message", "\r\nPINGS and PONGS\r\n", "opaque 19\n"},
		{"ping inside is no evidence", long[500:] + "PING\r\n", "opaque 535\n"},
		{"a line inside is none either", long[500:] + "SUB a 1\r\nand so on\r\n", "opaque 549\n"},
	})
}

// TestGarbage holds that what is no message is opaque and the next one is found.
func TestGarbage(t *testing.T) {
	good := "MSG a.b 1 4\r\ngood\r\n"
	suite.Garbage(t, newScanner, good, "a.b", map[string][]string{
		"own segment":       {good, "MSG a b c d e f\r\n", good},
		"same segment":      {good, "MSG a b c d e f\r\n" + good},
		"after a cut front": {good[:3], "\x00\x01", good},
		"payload too short": {good[:15], "d\r\n" + good},
	})
}

func TestRescan(t *testing.T) {
	s := NewScanner(testID)
	const cutOff = "PUB x.y 4\r\nbody\r\n"
	suite.Rescan(t, s, func() any { return s.Framer }, []string{connect + "PUB a 1\r\nx\r\nPUB b 2\r\nyy\r\n", cutOff[:6]},
		cutOff[:3], "\x00")
	suite.Shows(t, s, "PUB 6+11 body 5\n", cutOff[6:])
}

func TestScannerSize(t *testing.T) {
	if n := unsafe.Sizeof(Scanner{}); n > 24 {
		t.Errorf("a Scanner takes %d bytes", n)
	}
}
