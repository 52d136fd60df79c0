package amqp

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestScanFrames(t *testing.T) {
	for _, tt := range frames {
		t.Run(tt.name, func(t *testing.T) {
			spans := scanAll(t, NewScanner(testID), tt.bytes, tt.bytes)
			f, _, err := Parse(tt.bytes)
			if err != nil {
				t.Fatal(err)
			}
			if f.Name.HasContent() {
				// a method cuts the content short that the one before announced
				spans = append(spans[:1], scanAll(t, NewScanner(testID), tt.bytes)...)
			}
			if len(spans) != 2 {
				t.Fatalf("spans:\n%s", showSpans(spans))
			}
			for _, sp := range spans {
				if sp.Protocol != testID || Name(sp.Name) != f.Name || sp.At != 0 || sp.Len != f.Length {
					t.Errorf("span %+v of a %v", sp, f.Name)
				}
				if key, found := f.Field("routing-key"); found && f.Name.HasContent() {
					exchange, _ := f.Field("exchange")
					if want := string(exchange.Bytes(tt.bytes)) + "/" + string(key.Bytes(tt.bytes)); string(sp.Event) != want {
						t.Errorf("event %q, want %q", sp.Event, want)
					}
				} else if sp.Event != nil {
					t.Errorf("event %q", sp.Event)
				}
			}
		})
	}
}

func TestClasses(t *testing.T) {
	for _, tt := range frames {
		sp := NewScanner(testID).Scan(nil, tt.bytes)[0]
		want := parsers.ClassData
		switch name := Name(sp.Name); {
		case name == BasicAck || name == BasicNack || name == BasicReject:
			want = parsers.ClassAck
		case name == Heartbeat || name == ProtocolHeader || name == ChannelOpen || name == ChannelOpenOK || strings.HasPrefix(name.String(), "connection."):
			want = parsers.ClassUrgent
		}
		if sp.Class != want {
			t.Errorf("%s: class %d, want %d", tt.name, sp.Class, want)
		}
	}
}

// Frames: method of a deliver to "c" of "x" and "k" is 27 bytes, a content
// header 34, a body 8 and its text.
func TestScan(t *testing.T) {
	one := deliver(1, "c", 5, "x", "k", "hello")
	two := deliver(2, "c", 9, "x", "k", "other")
	large := deliver(1, "c", 5, "x", "k", strings.Repeat("x", 2500))
	suite.Scans(t, newScanner, parsertest.Streams[[]byte]{
		{"one message", parsertest.Cut(one), `
basic.deliver 0+74 body 68 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3 62+2:3
`},
		{"two messages", parsertest.Cut(cat(one, two)), `
basic.deliver 0+74 body 68 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3 62+2:3
basic.deliver 0+74 body 68 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3 62+2:3
`},
		{"frame by frame", parsertest.Cut(one, 27, 61), `
basic.deliver 0+27 body 27 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0
basic.deliver 27+34 body 34 1+2:3
basic.deliver 61+13 body 7 1+2:3
`},
		{"method, and the rest", parsertest.Cut(one, 27), `
basic.deliver 0+27 body 27 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0
basic.deliver 27+47 body 41 1+2:3 35+2:3
`},
		{"in the body", parsertest.Cut(one, 70), `
basic.deliver 0+70 body 68 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3 62+2:3
basic.deliver 70+4 body 0
`},
		{"before the last byte", parsertest.Cut(one, 73), `
basic.deliver 0+73 body 68 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3 62+2:3
basic.deliver 73+1 body 0
`},
		{"in the frame header of the body", parsertest.Cut(one, 63), `
basic.deliver 0+63 body 63 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3
basic.deliver 63+11 body 5
`},
		{"in the consumer tag", parsertest.Cut(one, 12), `
basic.deliver 0+12 body 12
basic.deliver 12+62 body 56 "x/k" 1+8:0 16+2:3 50+2:3
`},
		{"before the delivery tag", parsertest.Cut(one, 13), `
basic.deliver 0+13 body 13
basic.deliver 13+61 body 55 "x/k" 0+8:0 15+2:3 49+2:3
`},
		{"byte by byte in the method", parsertest.Cut(one, 1, 2, 8), `
method 0+1 body 1
method 1+1 body 1
method 2+6 body 6
basic.deliver 8+66 body 60 "x/k" 3+2:1 5+8:0 20+2:3 54+2:3
`},
		{"a body in three frames", parsertest.Cut(large), `
basic.deliver 0+2585 body 68 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3 62+2:3
`},
		{"a body in three segments", parsertest.Cut(large, 500, 1500), `
basic.deliver 0+500 body 68 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3 62+2:3
basic.deliver 500+1000 body 0 570+2:3
basic.deliver 1500+1085 body 0 578+2:3
`},
		{"no body", parsertest.Cut(deliver(1, "c", 5, "x", "k", "")), `
basic.deliver 0+61 body 61 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3
`},
		{"a heartbeat in between", parsertest.Cut(cat(one[:61], heartbeat(), one[61:])), `
basic.deliver 0+61 body 61 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3
heartbeat 0+8 body 8
basic.deliver 61+13 body 7 1+2:3
`},
		{"an acknowledgement on another channel in between", parsertest.Cut(cat(one[:27], ack(2, 7), one[27:])), `
basic.deliver 0+27 body 27 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0
basic.ack 0+21 body 21 1+2:3 11+8:2
basic.deliver 27+47 body 41 1+2:3 35+2:3
`},
		{"two channels take turns", parsertest.Cut(cat(one[:61], two[:61], one[61:], two[61:])), `
basic.deliver 0+61 body 61 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3
basic.deliver 0+61 body 61 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3
content-body 0+13 body 7 1+2:3
basic.deliver 61+13 body 7 1+2:3
`},
		{"content cut short", parsertest.Cut(cat(one[:61], ack(1, 7), one[61:])), `
basic.deliver 0+61 body 61 "x/k" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3
basic.ack 0+21 body 21 1+2:3 11+8:2
content-body 0+13 body 7 1+2:3
`},
		{"publish", parsertest.Cut(publish(1, "", "queue", "hi")), `
basic.publish 0+66 body 63 "/queue" 1+2:3 23+2:3 57+2:3
`},
		{"acknowledgements", parsertest.Cut(cat(ack(1, 7), ack(1, 8)), 21, 35), `
basic.ack 0+21 body 21 1+2:3 11+8:2
basic.ack 0+14 body 14 1+2:3
basic.ack 14+7 body 7
`},
		{"a long consumer tag", parsertest.Cut(method(1, BasicDeliver, str(strings.Repeat("t", 64)), u64(1), []byte{0}, str("x"), str("k"))), `
basic.deliver 0+90 body 90 "x/k" 1+2:3 76+8:0
`},
		{"the longest that is a hole", parsertest.Cut(method(1, BasicDeliver, str(strings.Repeat("t", 63)), u64(1), []byte{0}, str("x"), str("k"))), `
basic.deliver 0+89 body 89 "x/k" 1+2:3 3+4:1 11+64:1 75+8:0
`},
		{"consume-ok", parsertest.Cut(method(1, BasicConsumeOK, str("tag"))), `
basic.consume-ok 0+16 body 16 1+2:3 3+4:1 11+4:1
`},
		{"a method that is not known", parsertest.Cut(frame(typeMethod, 1, u16(99), u16(1), u32(0))), `
method 0+16 body 16 1+2:3
`},
		{"content without a method", parsertest.Cut(one[27:]), `
content-header 0+47 body 41 1+2:3 35+2:3
`},
	})
}

func TestHoleKinds(t *testing.T) {
	sp := NewScanner(testID).Scan(nil, deliver(1, "tag", 5, "x", "k", "hello"))[0]
	want := [parsers.MaxHoles]parsers.Hole{
		{Off: 1, Len: 2, Kind: parsers.HoleBig, Counter: 3},
		{Off: 3, Len: 4, Kind: parsers.HoleBig, Counter: 1},
		{Off: 11, Len: 4, Kind: parsers.HoleText, Counter: 1},
		{Off: 15, Len: 8, Kind: parsers.HoleBig, Counter: 0, Step: 1},
		{Off: 30, Len: 2, Kind: parsers.HoleBig, Counter: 3},
		{Off: 64, Len: 2, Kind: parsers.HoleBig, Counter: 3},
	}
	if diff := cmp.Diff(want, sp.Holes); diff != "" || sp.NumHoles != 6 {
		t.Error(diff)
	}
}

// TestCopies holds that what subscribers get of one message is the same but for
// the holes.
func TestCopies(t *testing.T) {
	rest := func(b []byte) string {
		spans := NewScanner(testID).Scan(nil, b)
		if len(spans) != 1 {
			t.Fatalf("spans:\n%s", showSpans(spans))
		}
		var out []byte
		at := 0
		for _, h := range spans[0].Holes[:spans[0].NumHoles] {
			out = append(out, b[at:h.Off]...)
			at = h.Off + h.Len
		}
		return string(append(out, b[at:]...))
	}
	if a, b := rest(deliver(1, "one", 5, "x", "k", "hello")), rest(deliver(77, "the other", 1<<40, "x", "k", "hello")); a != b {
		t.Errorf("%q\n%q", a, b)
	}
}

func TestKeys(t *testing.T) {
	key := func(b []byte) uint64 { return NewScanner(testID).Scan(nil, b)[0].Key }
	a := key(publish(1, "x", "a", "1"))
	if a != key(publish(2, "x", "a", "22")) {
		t.Error("channel and body are in the key")
	}
	parsertest.InKey(t, a, map[string]uint64{
		"routing key": key(publish(1, "x", "b", "1")),
		"exchange":    key(publish(1, "y", "a", "1")),
		"name":        key(deliver(1, "", 1, "x", "a", "1")),
		"protocol":    NewScanner(testID+1).Scan(nil, publish(1, "x", "a", "1"))[0].Key,
		"length":      key(publish(1, strings.Repeat("x", 255), strings.Repeat("a", 255), "1")),
	})
}

// TestEventsStay holds that events of a Rescan and of the Scan after it do not
// overwrite one another.
func TestEventsStay(t *testing.T) {
	s := NewScanner(testID)
	s.Scan(nil, cat(publish(1, "x", "warm", "1"), publish(1, "x", "up", "1"), publish(1, "x", "now", "1")))
	again := s.Rescan(nil, cat(publish(1, "x", "a", "1"), publish(1, "x", "b", "1")))
	spans := s.Scan(nil, cat(publish(1, "x", "c", "1"), publish(1, "x", "d", "1"), publish(1, "x", "d", "1"), publish(1, "x", "e", "1")))
	got := ""
	for _, sp := range append(again, spans...) {
		got += string(sp.Event) + " "
	}
	if want := "x/a x/b x/c x/d x/d x/e "; got != want {
		t.Errorf("events %s, want %s", got, want)
	}
}

func TestResync(t *testing.T) {
	long := publish(1, "x", "long", strings.Repeat("body \xce ", 100))
	next := deliver(1, "c", 5, "x", "k", "next")
	const nextSpan = "basic.deliver 0+73 body 68 \"x/k\" 1+2:3 3+4:1 11+2:1 13+8:0 28+2:3 62+2:3\n"
	suite.Resync(t, newScanner, long[:100], parsertest.AfterLoss[[]byte]{
		{"message at the start", next, nextSpan},
		{"heartbeat at the start", heartbeat(), "heartbeat 0+8 body 8\n"},
		{"acknowledgement at the start", ack(1, 77), "basic.ack 0+21 body 21 1+2:3 11+8:2\n"},
		{"content header at the start", next[27:], "content-header 0+46 body 41 1+2:3 35+2:3\n"},
		{"cut body at the start", body(1, strings.Repeat("y", 300))[:100], "content-body 0+100 body 7 1+2:3\n"},
		{"message inside", cat(long[500:], next), fmt.Sprintf("opaque %d\n", len(long)-500) + nextSpan},
		{"cut message inside", cat(long[500:], next[:40]), fmt.Sprintf("opaque %d\n", len(long)-500) + "basic.deliver 0+40 body 40 \"x/k\" 1+2:3 3+4:1 11+2:1 13+8:0\n"},
		{"nothing", long[200:500], "opaque 300\n"},
		{"1.0", []byte("AMQP\x00\x01\x00\x00"), "opaque 8\n"},
	})
}

// TestGarbage holds that what is no frame is opaque and the next one is found.
func TestGarbage(t *testing.T) {
	good := deliver(1, "c", 5, "x", "k", "good")
	bad := []byte("\x01\x00\x01\x7f\xff\xff\xff garbage")
	noEnd := ack(1, 3)
	noEnd[len(noEnd)-1] = 0
	suite.Garbage(t, newScanner, good, "x/k", map[string][][]byte{
		"own segment":          {good, bad, good},
		"same segment":         {good, cat(bad, []byte{frameEnd}, good)},
		"after a cut front":    {good[:3], bad, good},
		"without an end":       {good, noEnd, good},
		"without an end later": {good, noEnd[:15], noEnd[15:], good},
		"in a content":         {good[:61], bad, good},
	})
}

func TestRescan(t *testing.T) {
	s := NewScanner(testID)
	message := deliver(1, "c", 5, "x", "k", "hello")
	state := func() any { return [...]any{s.state, s.at, s.key, s.content, string(s.carry)} }
	suite.Rescan(t, s, state, [][]byte{message, ack(1, 5), message[:68]}, message[:66], message[70:], []byte("\x00"))
	suite.Shows(t, s, "basic.deliver 68+6 body 0\n", message[68:])
}

func TestScannerSize(t *testing.T) {
	if n := unsafe.Sizeof(Scanner{}); n > 128 {
		t.Errorf("a Scanner takes %d bytes", n)
	}
}
