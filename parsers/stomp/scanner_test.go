package stomp

import (
	"strings"
	"testing"
	"unsafe"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestClasses(t *testing.T) {
	for _, tt := range messages {
		want := parsers.ClassData
		switch word, _, _ := strings.Cut(strings.TrimSpace(tt.text), "\n"); strings.TrimSpace(word) {
		case "CONNECT", "STOMP", "CONNECTED", "DISCONNECT", "ERROR":
			want = parsers.ClassUrgent
		case "ACK", "NACK", "RECEIPT":
			want = parsers.ClassAck
		}
		if got := scanAll(t, NewScanner(testID), tt.text)[0].Class; got != want {
			t.Errorf("%s: class %d, want %d", tt.name, got, want)
		}
	}
	if sp := scanAll(t, NewScanner(testID), "\n")[0]; sp.Class != parsers.ClassUrgent || Name(sp.Name) != HeartBeat {
		t.Errorf("heart-beat: %+v", sp)
	}
}

func TestScanSplits(t *testing.T) {
	text := "MESSAGE\nsubscription:7\ndestination:a\n\nhello\x00"
	long := "SEND\ndestination:a\ncontent-length:1000\n\n" + strings.Repeat("\x00", 1000) + "\x00"
	suite.Scans(t, newScanner, parsertest.Streams[string]{
		{"in the body", cut(text, 40), `
MESSAGE 0+40 body 38 "a" #0=7
MESSAGE 40+4 body 0
`},
		{"in the headers", cut(text, 10), `
MESSAGE 0+10 body 10
MESSAGE 10+34 body 28 #0=7
`},
		{"in the command, again and again", cut(text, 1, 2, 3), `
 0+1 body 1
 1+1 body 1
 2+1 body 1
MESSAGE 3+41 body 35 #0=7
`},
		{"before the NUL", cut(text, 43), `
MESSAGE 0+43 body 38 "a" #0=7
MESSAGE 43+1 body 0
`},
		{"before the line end behind", cut(text+"\n", 44), `
MESSAGE 0+44 body 38 "a" #0=7
heart-beat 0+1 body 1
`},
		{"a body of NULs", cut(long, 500), `
SEND 0+500 body 40 "a"
SEND 500+541 body 0
`},
		{"heart-beats and a frame", []string{"\n", "\r\n" + text, "\n\n"}, `
heart-beat 0+1 body 1
heart-beat 0+2 body 2
MESSAGE 0+44 body 38 "a" #0=7
heart-beat 0+2 body 2
`},
	})
}

func TestKeys(t *testing.T) {
	key := func(text string) uint64 { return NewScanner(testID).Scan(nil, []byte(text))[0].Key }
	a := key("MESSAGE\nsubscription:7\ndestination:a\n\nhello\x00")
	for name, other := range map[string]string{
		"subscription": "MESSAGE\nsubscription:8\ndestination:a\n\nhello\x00", "body": "MESSAGE\ndestination:a\n\n\x00",
		"case": "message\ndestination:a\n\n\x00",
	} {
		if key(other) != a {
			t.Errorf("%s is in the key", name)
		}
	}
	parsertest.InKey(t, a, map[string]uint64{
		"destination": key("MESSAGE\ndestination:b\n\n\x00"),
		"name":        key("SEND\ndestination:a\n\n\x00"),
		"protocol":    NewScanner(testID+1).Scan(nil, []byte("MESSAGE\ndestination:a\n\n\x00"))[0].Key,
	})
}

func TestResync(t *testing.T) {
	long := "SEND\ndestination:/queue/long\ncontent-length:1000\n\n" + strings.Repeat("body ", 200) + "\x00"
	next := "SEND\ndestination:a\n\nnext\x00"
	suite.Resync(t, newScanner, long[:300], parsertest.AfterLoss[string]{
		{"frame at the start", next, "SEND 0+25 body 20 \"a\"\n"},
		{"heart-beat at the start", "\n", "heart-beat 0+1 body 1\n"},
		{"cut frame at the start", long[:100], "SEND 0+100 body 50 \"/queue/long\"\n"},
		{"cut headers at the start", long[:10], "SEND 0+10 body 10\n"},
		{"frame inside, up to the end", long[500:] + next, "opaque 551\nSEND 0+25 body 20 \"a\"\n"},
		{"frames inside, the last cut", long[500:] + next + long[:60], "opaque 551\nSEND 0+25 body 20 \"a\"\nSEND 0+60 body 50 \"/queue/long\"\n"},
		{"line ends inside", long[500:] + "\n", "opaque 551\nheart-beat 0+1 body 1\n"},
		{"nothing", long[500:700], "opaque 200\n"},
	})
}

// TestGarbage holds that what is no frame is opaque and the next one is found.
func TestGarbage(t *testing.T) {
	good := "SEND\ndestination:a\ncontent-length:4\n\ngood\x00"
	suite.Garbage(t, newScanner, good, "a", map[string][]string{
		"own segment":       {good, "SEND\nx\n\n\x00", good},
		"same segment":      {good, "SEND\nx\n\n\x00" + good},
		"after a cut front": {good[:3], "\x00\x01", good},
		"body too short":    {good[:39], "d\x00\x00" + good},
	})
}

func TestRescan(t *testing.T) {
	s := NewScanner(testID)
	const cutOff = "SEND\ndestination:x\n\nbody\x00"
	suite.Rescan(t, s, func() any { return s.Framer }, []string{"SEND\ndestination:a\n\n1\x00" + "SEND\ndestination:b\n\n22\x00", cutOff[:9]},
		cutOff[:3], cutOff[:6], "\x01")
	suite.Shows(t, s, "SEND 9+16 body 11\n", cutOff[9:])
}

func TestScannerSize(t *testing.T) {
	if n := unsafe.Sizeof(Scanner{}); n > 40 {
		t.Errorf("a Scanner takes %d bytes", n)
	}
}
