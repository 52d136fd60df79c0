package websocket

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
	"sheaf/parsers/mqtt"
	"sheaf/parsers/parsertest"
)

func TestScan(t *testing.T) {
	const key = 0x37fa213d
	text := "\x81\x05Hello"
	pub := frame(0x82, publish("a/b", 5, "body"))
	two := frame(0x82, cat(publish("a/b", 5, "body"), publish("c", 6, "x")))
	straddling := cat(frame(0x82, publish("a/b", 5, "body")[:6]), frame(0x82, publish("a/b", 5, "body")[6:]))
	suite.Scans(t, newScanner, parsertest.Streams[[]byte]{
		{"server", [][]byte{cat(answer("mqtt"), pub, frame(0x82, []byte("\xd0\x00")))}, `
UPGRADE 0+159 body 159
PUBLISH 0+15 body 11 "a/b" hole 9 counter 0
PINGRESP 0+4 body 4
`},
		{"client", [][]byte{request("mqtt"), masked(key, frame(0x82, []byte(connect))), masked(key, pub)}, `
UPGRADE 0+184 body 184
CONNECT 0+28 body 18 mask 2+4 phase 0
PUBLISH 0+19 body 15 "a/b" mask 2+4 phase 0 hole 13 counter 0
`},
		{"several in a frame", [][]byte{two, masked(key, two)}, `
PUBLISH 0+15 body 11 "a/b" hole 9 counter 0
PUBLISH 0+8 body 7 "c" hole 5 counter 0
PUBLISH 0+19 body 15 "a/b" mask 2+4 phase 0 hole 13 counter 0
PUBLISH 0+8 body 7 "c" mask 0+0 phase 1 hole 5 counter 0
`},
		{"one in several frames", [][]byte{straddling}, `
PUBLISH 0+8 body 8
PUBLISH 8+9 body 5 hole 3 counter 0
`},
		{"one in fragments", [][]byte{frame(2, publish("a/b", 0, "body")[:7]), frame(0x89, nil), frame(0x80, publish("a/b", 0, "body")[7:])}, `
PUBLISH 0+9 body 9 "a/b"
PING 0+2 body 2
PUBLISH 9+6 body 2
`},
		{"cut in the payload", parsertest.Cut(masked(key, pub), 9), `
PUBLISH 0+9 body 9 mask 2+4 phase 0
PUBLISH 9+10 body 6 mask 0+0 phase 3 hole 4 counter 0
`},
		{"cut in the key", parsertest.Cut(masked(key, pub), 4), `
BINARY 0+4 body 4
PUBLISH 4+15 body 11 "a/b" mask 2+0 phase 0 hole 9 counter 0
`},
		{"cut behind the key", parsertest.Cut(masked(key, pub), 1, 6), `
BINARY 0+1 body 1
BINARY 1+5 body 5 mask 1+4 phase 0
PUBLISH 6+13 body 9 "a/b" mask 0+0 phase 0 hole 7 counter 0
`},
		{"other frames", [][]byte{cat([]byte(text), frame(0xc2, publish("a", 0, "x")), frame(0x88, []byte("\x03\xe8bye"))), pub}, `
TEXT 0+7 body 2
BINARY 0+8 body 2
CLOSE 0+7 body 2
PUBLISH 0+15 body 11 "a/b" hole 9 counter 0
`},
		{"text in fragments", [][]byte{[]byte("\x01\x03Hel"), []byte("\x8a\x00"), []byte("\x80\x02lo"), []byte(text)}, `
TEXT 0+5 body 2
PONG 0+2 body 2
TEXT 5+4 body 2
TEXT 0+7 body 2
`},
		{"empty", [][]byte{masked(key, []byte("\x82\x00")), pub}, `
BINARY 0+6 body 6 mask 2+4 phase 0
PUBLISH 0+15 body 11 "a/b" hole 9 counter 0
`},
		{"no frame", [][]byte{cat([]byte("\x83abc"), pub), []byte("GET / HTTP/1.1\r\n\r\n"), pub}, `
opaque 4
PUBLISH 0+15 body 11 "a/b" hole 9 counter 0
opaque 18
PUBLISH 0+15 body 11 "a/b" hole 9 counter 0
`},
	})
}

// TestClassesAndKeys holds that what is inside says what a message is like.
func TestClassesAndKeys(t *testing.T) {
	scan := func(b []byte) parsers.Span { return scanAll(t, newScanner(), b)[0] }
	for name, tt := range map[string]struct {
		data []byte
		want parsers.Class
	}{
		"PUBLISH": {frame(0x82, publish("a", 0, "x")), parsers.ClassData},
		"PUBACK":  {frame(0x82, []byte("\x40\x02\x00\x05")), parsers.ClassAck},
		"PINGREQ": {frame(0x82, []byte("\xc0\x00")), parsers.ClassUrgent},
		"PING":    {frame(0x89, nil), parsers.ClassUrgent},
		"TEXT":    {frame(0x81, []byte("x")), parsers.ClassData},
	} {
		if got := scan(tt.data).Class; got != tt.want {
			t.Errorf("%s: class %d, want %d", name, got, tt.want)
		}
	}
	a := scan(frame(0x82, publish("a", 0, "x")))
	if b := scan(masked(77, frame(0x82, publish("a", 9, "yy")))); a.Key != b.Key {
		t.Error("key and body are in the key")
	}
	if b := scan(frame(0x82, publish("b", 0, "x"))); a.Key == b.Key {
		t.Error("topic is not in the key")
	}
}

// TestLentEvents holds that the events of a segment stay, whatever its later frames
// have the inner scanner learn.
func TestLentEvents(t *testing.T) {
	s := newScanner()
	alias := func(topic, body string) []byte {
		m := append([]byte{0x30, byte(2 + len(topic) + 4 + len(body)), 0, byte(len(topic))}, topic...)
		return frame(0x82, append(append(m, 3, 0x23, 0, 1), body...))
	}
	scanAll(t, s, frame(0x82, []byte("\x10\x0d\x00\x04MQTT\x05\x02\x00\x3c\x00\x00\x00")), alias("old", "1"))
	spans := s.Scan(nil, cat(alias("", "2"), alias("new", "3"), alias("", "4")))
	var got []string
	for _, sp := range spans {
		got = append(got, string(sp.Event))
	}
	if want := []string{"old", "new", "new"}; !cmp.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestRescan(t *testing.T) {
	s := NewScanner(testID, &inner)
	m := masked(99, frame(0x82, publish("x/y", 0, "body")))
	scanAll(t, s, m, m[:10])
	before, inside := *s, *s.inner.(*mqtt.Scanner)
	again := s.Rescan(nil, m)
	checkSpans(t, s.Rescan(nil, m[3:]), m[3:])
	checkSpans(t, s.Rescan(nil, request("mqtt")[:9]), request("mqtt")[:9])
	if s.state != before.state || s.head != before.head || s.passed != before.passed || s.at != before.at || s.extra != before.extra ||
		!reflect.DeepEqual(inside, *s.inner.(*mqtt.Scanner)) {
		t.Errorf("Rescan changed the scanner: %+v, before %+v", *s, before)
	}
	rest := s.Scan(nil, m[10:])
	if got := showSpans(again); got != "PUBLISH 0+17 body 13 \"x/y\" mask 2+4 phase 0\n" {
		t.Error(got)
	}
	if got := showSpans(rest); got != "PUBLISH 10+7 body 3 mask 0+0 phase 0\n" {
		t.Error(got)
	}
}

// TestResync finds frames again after a loss.
func TestResync(t *testing.T) {
	long := frame(0x82, publish("a/long/topic", 0, strings.Repeat("body ", 200)))
	next := frame(0x82, publish("a/b/c", 0, "next"))
	const found = "PUBLISH 0+15 body 11 \"a/b/c\"\n"
	suite.Resync(t, newScanner, long[:300], parsertest.AfterLoss[[]byte]{
		{"at the start", next, found},
		{"masked at the start", masked(5, next), "PUBLISH 0+19 body 15 \"a/b/c\" mask 2+4 phase 0\n"},
		{"ping at the start", frame(0x82, []byte("\xc0\x00")), "PINGREQ 0+4 body 4\n"},
		{"cut at the start", long[:100], "PUBLISH 0+100 body 21 \"a/long/topic\"\n"},
		{"inside, up to the end", cat(long[500:], next), "opaque 521\n" + found},
		{"inside, masked", cat(long[500:], masked(5, next)), "opaque 521\nPUBLISH 0+19 body 15 \"a/b/c\" mask 2+4 phase 0\n"},
		{"inside, the last cut", cat(long[500:], next, next, long[:40]), "opaque 521\n" + found + found + "PUBLISH 0+40 body 21 \"a/long/topic\"\n"},
		{"nothing", long[500:700], "opaque 200\n"},
	})
}
