package mqtt

import (
	"strings"
	"testing"
	"unsafe"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestScanMessages(t *testing.T) {
	for _, tt := range messages {
		t.Run(tt.name, func(t *testing.T) {
			s := version(tt.version)()
			spans := scanAll(t, s, cat(tt.bytes, tt.bytes))
			if len(spans) != 2 {
				t.Fatalf("spans:\n%s", showSpans(spans))
			}
			m, _, err := Parse(tt.bytes, tt.version)
			if err != nil {
				t.Fatal(err)
			}
			for _, sp := range spans {
				if sp.Protocol != testID || Name(sp.Name) != m.Name || sp.At != 0 || sp.Len != m.Length {
					t.Errorf("span %+v of a %v", sp, m.Name)
				}
				if f, found := m.Field(FieldTopic); found && f.Len > 0 && string(sp.Event) != string(f.Bytes(tt.bytes)) {
					t.Errorf("event %q", sp.Event)
				}
				if f, found := m.Field(FieldPayload); found && sp.Body != f.Off {
					t.Errorf("body at %d, want %d", sp.Body, f.Off)
				}
				f, found := m.Field(FieldPacketID)
				if found != (sp.NumHoles == 1) || found && (sp.Holes[0].Off != f.Off || sp.Holes[0].Len != 2 || sp.Holes[0].Step != 1) {
					t.Errorf("holes %v, want packet identifier %v", sp.Holes[:sp.NumHoles], f)
				}
			}
		})
	}
}

func TestClasses(t *testing.T) {
	for _, tt := range messages {
		want := parsers.ClassData
		switch Name(tt.bytes[0] >> 4) {
		case CONNECT, CONNACK, PINGREQ, PINGRESP, DISCONNECT, AUTH:
			want = parsers.ClassUrgent
		case PUBACK, PUBREC, PUBREL, PUBCOMP:
			want = parsers.ClassAck
		}
		if sp := NewScanner(testID).Scan(nil, tt.bytes)[0]; sp.Class != want {
			t.Errorf("%s: class %d, want %d", tt.name, sp.Class, want)
		}
	}
}

func TestScanSplits(t *testing.T) {
	body := strings.Repeat("x", 20)
	suite.Scans(t, newScanner, parsertest.Streams[[]byte]{
		{"in the body", parsertest.Cut(publish(1, "a/b", 5, body), 20), `
PUBLISH 0+20 body 9 "a/b" hole 7 counter 0
PUBLISH 20+9 body 0
`},
		{"in the topic", parsertest.Cut(publish(1, "a/b", 5, body), 5), `
PUBLISH 0+5 body 5
PUBLISH 5+24 body 4 hole 2 counter 0
`},
		{"in the identifier", parsertest.Cut(publish(1, "a/b", 5, body), 8), `
PUBLISH 0+8 body 8
PUBLISH 8+21 body 1
`},
		{"in the fixed header, again and again", parsertest.Cut(publish(0, "a/b", 0, strings.Repeat("x", 200)), 1, 2, 3, 4), `
PUBLISH 0+1 body 1
PUBLISH 1+1 body 1
PUBLISH 2+1 body 1
PUBLISH 3+1 body 1
PUBLISH 4+204 body 4
`},
		{"at a boundary", parsertest.Cut(cat(publish(0, "a", 0, "1"), msg(0xc0)), 6), `
PUBLISH 0+6 body 5 "a"
PINGREQ 0+2 body 2
`},
		{"an acknowledgement", parsertest.Cut(cat(msg(0x40, u16(1)), msg(0x62, u16(2))), 3), `
PUBACK 0+3 body 3
PUBACK 3+1 body 1
PUBREL 0+4 body 4 hole 2 counter 1
`},
		{"a long topic", parsertest.Cut(publish(1, strings.Repeat("t", 1000), 5, body), 400, 800), `
PUBLISH 0+400 body 400
PUBLISH 400+400 body 400
PUBLISH 800+227 body 207 hole 205 counter 0
`},
	})
}

func TestKeys(t *testing.T) {
	key := func(b []byte) uint64 { return NewScanner(testID).Scan(nil, b)[0].Key }
	a := key(publish(0, "a", 0, "1"))
	if a != key(publish(1, "a", 9, "22")) {
		t.Error("QoS, identifier and body are in the key")
	}
	parsertest.InKey(t, a, map[string]uint64{
		"topic":    key(publish(0, "b", 0, "1")),
		"name":     key(msg(0xc0)),
		"protocol": NewScanner(testID+1).Scan(nil, publish(0, "a", 0, "1"))[0].Key,
		"length":   key(publish(0, strings.Repeat("a", 300), 0, "")),
	})
}

func TestAliases(t *testing.T) {
	s := NewScanner(testID)
	scanAll(t, s, connect(5))
	plain := scanAll(t, s, publish5(0, "a/b", 0, props(), "1"))[0]
	first := scanAll(t, s, publish5(0, "a/b", 0, props(userProperty("x", "y"), topicAlias(2)), "1"))[0]
	again := scanAll(t, s, publish5(1, "", 4, props(topicAlias(2)), "1"))[0]
	if first.Key != plain.Key || again.Key != plain.Key || string(again.Event) != "a/b" {
		t.Errorf("keys %x, %x, %x, event %q", plain.Key, first.Key, again.Key, again.Event)
	}
	unknown := scanAll(t, s, publish5(0, "", 0, props(topicAlias(3)), "1"))[0]
	other := scanAll(t, s, publish5(0, "", 0, props(topicAlias(4)), "1"))[0]
	if unknown.Key == other.Key || unknown.Key == plain.Key || unknown.Event != nil {
		t.Errorf("unknown aliases: %+v, %+v", unknown, other)
	}
	// A split message gives its topic a number too.
	split := publish5(0, "c", 0, props(topicAlias(64)), "1")
	scanAll(t, s, split[:6], split[6:])
	if sp := scanAll(t, s, publish5(0, "", 0, props(topicAlias(64)), "1"))[0]; string(sp.Event) != "c" {
		t.Errorf("event %q, want c", sp.Event)
	}
	// Past the bound the number is all there is.
	beyond := scanAll(t, s, publish5(0, "d", 0, props(topicAlias(65)), "1"), publish5(0, "", 0, props(topicAlias(65)), "1"))
	if beyond[1].Event != nil || len(s.Framer.aliases.topics) != maxAliases {
		t.Errorf("event %q, %d aliases", beyond[1].Event, len(s.Framer.aliases.topics))
	}
	// A new connection forgets.
	scanAll(t, s, connect(5))
	if sp := scanAll(t, s, publish5(0, "", 0, props(topicAlias(2)), "1"))[0]; sp.Event != nil {
		t.Errorf("event %q after a new CONNECT", sp.Event)
	}
}

// TestAliasEventsStay gives an alias a new topic while the old one's event is
// still borrowed.
func TestAliasEventsStay(t *testing.T) {
	s := NewScanner(testID)
	scanAll(t, s, connect(5), publish5(0, "old", 0, props(topicAlias(1)), ""))
	use := publish5(0, "", 0, props(topicAlias(1)), "")
	again := s.Rescan(nil, use)
	spans := s.Scan(nil, cat(use, publish5(0, "new", 0, props(topicAlias(1)), ""), use))
	if string(again[0].Event) != "old" || string(spans[0].Event) != "old" || string(spans[2].Event) != "new" {
		t.Errorf("events %q, %q, %q, want old, old, new", again[0].Event, spans[0].Event, spans[2].Event)
	}
}

func TestVersionIsLearned(t *testing.T) {
	body := publish5(0, "a", 0, props(userProperty("k", "v")), "body")
	for name, before := range map[string][]byte{
		"CONNECT":    connect(5),
		"CONNACK":    msg(0x20, []byte{0, 0}, props()),
		"PUBACK":     msg(0x40, u16(1), []byte{0}),
		"DISCONNECT": msg(0xe0, []byte{0}),
		"AUTH":       msg(0xf0),
		"alias":      publish5(0, "", 0, props(topicAlias(1)), ""),
	} {
		spans := scanAll(t, NewScanner(testID), cat(before, body))
		if sp := spans[1]; sp.Len-sp.Body != len("body") {
			t.Errorf("after %s the body is at %d of %d", name, sp.Body, sp.Len)
		}
	}
}

func TestResync(t *testing.T) {
	long := publish(0, "a/long/topic", 0, strings.Repeat("body ", 200))
	next := publish(0, "a/b/c", 0, "next")
	suite.Resync(t, newScanner, long[:300], parsertest.AfterLoss[[]byte]{
		{"message at the start", next, "PUBLISH 0+13 body 9 \"a/b/c\"\n"},
		{"ping at the start", msg(0xc0), "PINGREQ 0+2 body 2\n"},
		{"acknowledgement at the start", msg(0x40, u16(77)), "PUBACK 0+4 body 4 hole 2 counter 1\n"},
		{"cut message at the start", long[:100], "PUBLISH 0+100 body 17 \"a/long/topic\"\n"},
		{"message inside, up to the end", cat(long[500:], next), "opaque 517\nPUBLISH 0+13 body 9 \"a/b/c\"\n"},
		{"messages inside, the last cut", cat(long[500:], next, next, long[:40]), "opaque 517\nPUBLISH 0+13 body 9 \"a/b/c\"\nPUBLISH 0+13 body 9 \"a/b/c\"\nPUBLISH 0+40 body 17 \"a/long/topic\"\n"},
		{"nothing", long[500:700], "opaque 200\n"},
		{"acknowledgement inside is no evidence", cat(long[500:510], msg(0x40, u16(77))), "opaque 14\n"},
	})
}

// TestGarbage holds that what is no message is opaque and the next one is found.
func TestGarbage(t *testing.T) {
	good := publish(0, "a/b/c", 0, "good")
	bad := []byte("\x36\x05\x00\x01t\x00\x01") // QoS 3
	suite.Garbage(t, newScanner, good, "a/b/c", map[string][][]byte{
		"own segment":       {good, bad, good},
		"same segment":      {good, cat(bad, good)},
		"after a cut front": {good[:3], bad, good},
	})
}

func TestRescan(t *testing.T) {
	s := NewScanner(testID)
	cutOff := publish5(0, "x/y", 0, props(), "body")
	suite.Rescan(t, s, func() any { return s.Framer }, [][]byte{
		connect(5), publish5(1, "a", 1, props(topicAlias(1)), "1"), publish5(1, "", 2, props(topicAlias(1)), "22"), cutOff[:4],
	}, cutOff[:3], []byte("\x00"))
	suite.Shows(t, s, "PUBLISH 4+8 body 4\n", cutOff[4:])
}

func TestScannerSize(t *testing.T) {
	if n := unsafe.Sizeof(Scanner{}); n > 48 {
		t.Errorf("a Scanner takes %d bytes", n)
	}
}
