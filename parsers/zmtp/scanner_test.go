package zmtp

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestScanMessages(t *testing.T) {
	for _, tt := range messages {
		s := NewScanner(testID)
		s.Framer.subscriber = tt.subscriber
		spans := scanAll(t, s, cat(tt.bytes, tt.bytes))
		if len(spans) != 2 {
			t.Errorf("%s: spans:\n%s", tt.name, showSpans(spans))
			continue
		}
		u, _, err := Parse(tt.bytes, tt.subscriber)
		if err != nil {
			t.Fatal(err)
		}
		sp := spans[0]
		if Name(sp.Name) != u.Name || sp.At != 0 || sp.Len != u.Length || string(sp.Event) != tt.event || (sp.Event == nil) != (tt.event == "") {
			t.Errorf("%s: span %+v of %v", tt.name, sp, u)
		}
		want := parsers.ClassUrgent
		switch u.Name {
		case Message, Command, Subscribe, Cancel, Join, Encrypted:
			want = parsers.ClassData
		}
		if sp.Class != want {
			t.Errorf("%s: class %d, want %d", tt.name, sp.Class, want)
		}
		if u.Name == Message {
			at := u.Frames[min(len(u.Frames)-1, 1)].Off
			if len(u.Frames) > 1 && u.Frames[1].Flags&flagCommand != 0 {
				at = u.Frames[2].Off
			}
			if sp.Body != at {
				t.Errorf("%s: body at %d, want %d", tt.name, sp.Body, at)
			}
		}
	}
}

func TestScanSplits(t *testing.T) {
	m := message3("weather", "41 degrees")
	large := message3("a", strings.Repeat("x", 300))
	suite.Scans(t, newScanner, parsertest.Streams[[]byte]{
		{"in the body", parsertest.Cut(m, 14), `
MESSAGE 0+14 body 11 "weather"
MESSAGE 14+7 body 0
`},
		{"between the frames", parsertest.Cut(m, 9), `
MESSAGE 0+9 body 9 "weather"
MESSAGE 9+12 body 2
`},
		{"in the second header", parsertest.Cut(m, 10), `
MESSAGE 0+10 body 10 "weather"
MESSAGE 10+11 body 1
`},
		{"in the topic", parsertest.Cut(m, 1, 4), `
MESSAGE 0+1 body 1
MESSAGE 1+3 body 3
MESSAGE 4+17 body 7
`},
		{"in a long header", parsertest.Cut(large, 4, 5, 6, 11, 12), `
MESSAGE 0+4 body 4 "a"
MESSAGE 4+1 body 1
MESSAGE 5+1 body 1
MESSAGE 6+5 body 5
MESSAGE 11+1 body 1
MESSAGE 12+300 body 0
`},
		{"the greeting as libzmq sends it", parsertest.Cut(cat(greeting("NULL"), ready("PUB")), 10, 11, 64), `
GREETING 0+10 body 10
GREETING 10+1 body 1
GREETING 11+53 body 53
READY 0+27 body 8
`},
		{"a command", parsertest.Cut(command("SUBSCRIBE", "weather"), 1, 8), `
COMMAND 0+1 body 1
COMMAND 1+7 body 7
SUBSCRIBE 8+11 body 11
`},
	})
}

func TestKeys(t *testing.T) {
	key := func(b []byte) uint64 { return NewScanner(testID).Scan(nil, b)[0].Key }
	a := key(message3("a", "1"))
	if a != key(message3("a", "22")) || a != key(message3("a", "2", "3")) || key(message3("1")) != key(message3("22")) {
		t.Error("the body is in the key")
	}
	parsertest.InKey(t, a, map[string]uint64{
		"topic":    key(message3("b", "1")),
		"name":     key(command("SUBSCRIBE", "a")),
		"protocol": NewScanner(testID+1).Scan(nil, message3("a", "1"))[0].Key,
		"length":   key(message3(strings.Repeat("a", 300), "1")),
	})
}

// TestSubscriber holds that messages are subscriptions where the handshake said
// so, and until the next one.
func TestSubscriber(t *testing.T) {
	s := NewScanner(testID)
	sub := message3("\x01a")
	stream := cat(greeting("NULL"), ready("XSUB"), sub, greeting("NULL"), sub, command("INITIATE", property("Socket-Type", "SUB")), sub, ready("PUB"), sub)
	var got []string
	for _, sp := range scanAll(t, s, stream) {
		if n := Name(sp.Name); n == Subscribe || n == Message {
			got = append(got, n.String())
		}
	}
	if diff := cmp.Diff([]string{"SUBSCRIBE", "MESSAGE", "SUBSCRIBE", "MESSAGE"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestResync(t *testing.T) {
	long := message3("a", strings.Repeat("body ", 200))
	next := message3("sports.football", "43")
	suite.Resync(t, newScanner, long[:300], parsertest.AfterLoss[[]byte]{
		{"message at the start", next, "MESSAGE 0+21 body 19 \"sports.football\"\n"},
		{"one frame at the start", message3("hello"), "MESSAGE 0+7 body 2\n"},
		{"command at the start", command("PING", "\x00\x64"), "PING 0+9 body 7\n"},
		{"cut message at the start", next[:20], "MESSAGE 0+20 body 19 \"sports.football\"\n"},
		{"cut topic at the start", next[:10], "MESSAGE 0+10 body 10\n"},
		{"message inside, up to the end", cat(long[500:], next), "opaque 512\nMESSAGE 0+21 body 19 \"sports.football\"\n"},
		{"subscription inside", cat(long[500:], command("SUBSCRIBE", "a"), long[:50]), "opaque 512\nSUBSCRIBE 0+13 body 13 \"a\"\nMESSAGE 0+50 body 12 \"a\"\n"},
		{"nothing", long[500:700], "opaque 200\n"},
		{"zeroes", make([]byte, 100), "opaque 100\n"},
		{"one frame inside is no evidence", cat(long[500:510], message3("hello")), "opaque 17\n"},
	})
}

// TestGarbage holds that what is no message is opaque and the next one is found.
func TestGarbage(t *testing.T) {
	good := message3("sports.football", "43")
	bad := []byte("\x09garbage")
	suite.Garbage(t, newScanner, good, "sports.football", map[string][][]byte{
		"own segment":           {good, bad, good},
		"same segment":          {good, cat(bad, good)},
		"after a cut front":     {good[:3], bad, good, good},
		"after the first frame": {good[:17], bad, good},
		"inside a message":      {cat(good[:17], bad), good},
	})
}

func TestRescan(t *testing.T) {
	s := NewScanner(testID)
	cutOff := message3("weather", "body")
	suite.Rescan(t, s, func() any { return s.Framer }, [][]byte{ready("SUB"), message3("weather", "1"), cutOff[:4]},
		greeting("NULL")[:10], cutOff[:3], []byte{0})
	suite.Shows(t, s, "MESSAGE 4+11 body 7\n", cutOff[4:])
}
