package amqp10

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
			spans := scanAll(t, NewScanner(testID), cat(tt.bytes, tt.bytes))
			f, _, err := Parse(tt.bytes)
			if err != nil {
				t.Fatal(err)
			}
			if len(spans) != 2 {
				t.Fatalf("spans:\n%s", showSpans(spans))
			}
			for _, sp := range spans {
				if sp.Protocol != testID || Name(sp.Name) != f.Name || sp.At != 0 || sp.Len != f.Length {
					t.Errorf("span %+v of a %v", sp, f.Name)
				}
				if field, found := f.Field("payload"); found && sp.Body != field.Off || !found && sp.Body != sp.Len {
					t.Errorf("body at %d, payload %v", sp.Body, field)
				}
				if f.Address.Len > 0 && string(sp.Event) != string(f.Address.Bytes(tt.bytes)) {
					t.Errorf("event %q", sp.Event)
				}
			}
		})
	}
}

func TestClasses(t *testing.T) {
	for _, tt := range frames {
		sp := NewScanner(testID).Scan(nil, tt.bytes)[0]
		want := parsers.ClassUrgent
		switch Name(sp.Name) {
		case Flow, Disposition:
			want = parsers.ClassAck
		case Transfer, Attach, Detach, Performative:
			want = parsers.ClassData
		}
		if sp.Class != want {
			t.Errorf("%s: class %d, want %d", tt.name, sp.Class, want)
		}
	}
}

func TestScan(t *testing.T) {
	one := transfer(1, 2, 5, "\x00\x00\x00\x05", "hello")
	suite.Scans(t, newScanner, parsertest.Streams[[]byte]{
		{"transfer", parsertest.Cut(one), `
transfer 0+40 body 27 "#2" 6+2:3 17+1:0 20+4:1
`},
		{"transfer, delivery-id in four bytes", parsertest.Cut(transfer(1, 2, 500, "500", "hello")), `
transfer 0+42 body 29 "#2" 6+2:3 17+4:0 23+3:1
`},
		{"first transfer", parsertest.Cut(transfer(1, 2, 0, "0", "hello")), `
transfer 0+36 body 23 "#2" 6+2:3 19+1:1
`},
		{"number turned round", parsertest.Cut(transfer(1, 2, 5, "\x05\x00\x00\x00\x00\x00\x00\x00", "hello")), `
transfer 0+44 body 31 "#2" 6+2:3 17+1:0 20+1:1
`},
		{"unique tag", parsertest.Cut(transfer(1, 2, 5, strings.Repeat("u", 16), "hello")), `
transfer 0+52 body 39 "#2" 6+2:3 17+1:0 20+16:1
`},
		{"long tag", parsertest.Cut(transfer(1, 2, 5, strings.Repeat("u", 65), "hello")), `
transfer 0+101 body 88 "#2" 6+2:3 17+1:0
`},
		{"handle 64", parsertest.Cut(transfer(1, 64, 5, "a", "hello")), `
transfer 0+37 body 24 6+2:3 17+1:0 20+1:1
`},
		{"after an attach", parsertest.Cut(cat(attach(1, 2, no, "", "queue"), one, transfer(2, 2, 5, "a", "hello"))), `
attach 0+43 body 43 "queue" 6+2:3
transfer 0+40 body 27 "queue" 6+2:3 17+1:0 20+4:1
transfer 0+37 body 24 "#2" 6+2:3 17+1:0 20+1:1
`},
		{"in the payload", parsertest.Cut(one, 35), `
transfer 0+35 body 27 "#2" 6+2:3 17+1:0 20+4:1
transfer 35+5 body 0
`},
		{"in the tag", parsertest.Cut(one, 20), `
transfer 0+20 body 20
transfer 20+20 body 7 0+4:1
`},
		{"before the tag", parsertest.Cut(one, 18), `
transfer 0+18 body 18
transfer 18+22 body 9 2+4:1
`},
		{"byte by byte", parsertest.Cut(one, 1, 2, 5, 9), `
performative 0+1 body 1
performative 1+1 body 1
performative 2+3 body 3
performative 5+4 body 4
transfer 9+31 body 18 8+1:0 11+4:1
`},
		{"disposition", parsertest.Cut(cat(disposition(1, 5, 7), disposition(1, 300, -1))), `
disposition 0+24 body 24 6+2:3 16+1:2 18+1:2
disposition 0+26 body 26 6+2:3 16+4:2
`},
		{"disposition, cut", parsertest.Cut(disposition(1, 5, 7), 15), `
disposition 0+15 body 15
disposition 15+9 body 9 1+1:2 3+1:2
`},
		{"flow, detach", parsertest.Cut(cat(attach(1, 2, yes, "queue", ""), perform(1, Flow, num(1), num(100), num(0), num(100), num(2)), perform(1, Detach, num(2), yes), perform(1, Detach, num(2), yes))), `
attach 0+43 body 43 "queue" 6+2:3
flow 0+23 body 23 "queue" 6+2:3
detach 0+17 body 17 "queue" 6+2:3
detach 0+17 body 17 "#2" 6+2:3
`},
		{"symbol as a descriptor", parsertest.Cut(cat(frame(typeAMQP, 1, []byte{0}, sym("amqp:transfer:list"), list(num(0))), empty())), `
performative 0+33 body 33
empty 0+8 body 8
`},
		{"extended header", parsertest.Cut(cat(u32(80), []byte{20, 0, 0, 0}, make([]byte, 72), empty())), `
empty 0+80 body 80
empty 0+8 body 8
`},
		{"attach that is longer than what is looked at", parsertest.Cut(cat(perform(1, Attach, str("l"), num(0), no, null, null, cat([]byte{codeBinary32}, u32(2000), make([]byte, 2000)), null), one), 700), `
attach 0+700 body 700
attach 700+1333 body 1333
transfer 0+40 body 27 "#2" 6+2:3 17+1:0 20+4:1
`},
	})
}

func TestHoleKinds(t *testing.T) {
	for _, tt := range []struct {
		name string
		tag  string
		want parsers.Hole
	}{
		{"decimal", "1234", parsers.Hole{Off: 20, Len: 4, Kind: parsers.HoleDecimal, Counter: 1, Step: 1}},
		{"leading zero", "01", parsers.Hole{Off: 20, Len: 2, Kind: parsers.HoleBig, Counter: 1, Step: 1}},
		{"number", "\x00\x00\x01\x02", parsers.Hole{Off: 20, Len: 4, Kind: parsers.HoleBig, Counter: 1, Step: 1}},
		{"number turned round", "\x02\x01\x00\x00", parsers.Hole{Off: 20, Len: 1, Kind: parsers.HoleBig, Counter: 1, Step: 1}},
		{"text", "0123456789abcdef", parsers.Hole{Off: 20, Len: 16, Kind: parsers.HoleText, Counter: 1}},
	} {
		sp := NewScanner(testID).Scan(nil, transfer(1, 2, 5, tt.tag, "hello"))[0]
		want := [parsers.MaxHoles]parsers.Hole{
			{Off: 6, Len: 2, Kind: parsers.HoleBig, Counter: 3},
			{Off: 17, Len: 1, Kind: parsers.HoleBig, Counter: 0, Step: 1},
		}
		want[2] = tt.want
		if diff := cmp.Diff(want, sp.Holes); diff != "" || sp.NumHoles != 3 {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestKeys(t *testing.T) {
	key := func(link string, b []byte) uint64 {
		return scanAll(t, NewScanner(testID), attach(1, 2, no, "", link), b)[1].Key
	}
	a := key("a", transfer(1, 2, 5, "t", "1"))
	if a != key("a", transfer(1, 2, 6, "u", "22")) {
		t.Error("delivery and body are in the key")
	}
	parsertest.InKey(t, a, map[string]uint64{
		"address":          key("b", transfer(1, 2, 5, "t", "1")),
		"name":             key("a", perform(1, Detach, num(2))),
		"no address":       key("", transfer(1, 2, 5, "t", "1")),
		"handle":           key("a", transfer(1, 3, 5, "t", "1")),
		"channel":          key("a", transfer(2, 2, 5, "t", "1")),
		"a handle of many": key("a", transfer(1, 999, 5, "t", "1")),
	})
}

func TestLinks(t *testing.T) {
	s := NewScanner(testID)
	event := func(b []byte) string {
		spans := scanAll(t, s, b)
		return string(spans[len(spans)-1].Event)
	}
	use := transfer(1, 2, 5, "t", "1")
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"not known", use, "#2"},
		{"attached", cat(attach(1, 2, no, "", "a"), use), "a"},
		{"again", use, "a"},
		{"another session", transfer(2, 2, 5, "t", "1"), "#2"},
		{"attached again", cat(attach(1, 2, no, "", "b"), use), "b"},
		{"detached", cat(perform(1, Detach, num(2), yes), use), "#2"},
		{"ended", cat(attach(1, 2, no, "", "c"), perform(1, End), use), "#2"},
		{"another session ended", cat(attach(1, 2, no, "", "c"), perform(2, End), use), "c"},
		{"a new connection", cat(head(protocolAMQP), perform(0, Open, str("id")), use), "#2"},
		{"a long address", cat(attach(1, 2, no, "", strings.Repeat("x", 200)), use), strings.Repeat("x", 200)},
		{"without an address", cat(attach(1, 2, no, "", ""), use), "#2"},
	} {
		if got := event(tt.bytes); got != tt.want {
			t.Errorf("%s: event %q, want %q", tt.name, got, tt.want)
		}
	}
	// A split attach names its link too.
	split := attach(1, 2, no, "", "split")
	scanAll(t, s, split[:20], split[20:30], split[30:])
	if got := event(use); got != "split" {
		t.Errorf("event %q, want split", got)
	}
	// Past the bound the oldest gives way.
	for i := range 3 * maxLinks {
		scanAll(t, s, attach(7, i, no, "", "many"))
	}
	if n := len(s.Framer.links.list); n != maxLinks {
		t.Errorf("%d links", n)
	}
	if got := event(transfer(7, 3*maxLinks-1, 5, "t", "1")); got != "many" {
		t.Errorf("event %q of the last link", got)
	}
}

// TestLinkEventsStay attaches a link anew while the old one's event is still
// borrowed.
func TestLinkEventsStay(t *testing.T) {
	s := NewScanner(testID)
	scanAll(t, s, attach(1, 2, no, "", "old"))
	use := transfer(1, 2, 5, "t", "1")
	again := s.Rescan(nil, use)
	spans := s.Scan(nil, cat(use, perform(1, Detach, num(2)), attach(1, 2, no, "", "new"), use))
	if string(again[0].Event) != "old" || string(spans[0].Event) != "old" || string(spans[1].Event) != "old" || string(spans[3].Event) != "new" {
		t.Errorf("events %q, %q, %q, %q", again[0].Event, spans[0].Event, spans[1].Event, spans[3].Event)
	}
}

func TestResync(t *testing.T) {
	long := transfer(1, 2, 5, "t", strings.Repeat("body \x00S", 100))
	next := transfer(1, 3, 5, "t", "next")
	const nextSpan = "transfer 0+36 body 24 \"#3\" 6+2:3 17+1:0 20+1:1\n"
	suite.Resync(t, newScanner, long[:100], parsertest.AfterLoss[[]byte]{
		{"message at the start", next, nextSpan},
		{"empty at the start", empty(), "empty 0+8 body 8\n"},
		{"cut message at the start", long[:100], "transfer 0+100 body 24 \"#2\" 6+2:3 17+1:0 20+1:1\n"},
		{"message inside", cat(long[500:], next), fmt.Sprintf("opaque %d\n", len(long)-500) + nextSpan},
		{"cut message inside", cat(long[500:], next[:13]), fmt.Sprintf("opaque %d\n", len(long)-500) + "transfer 0+13 body 13\n"},
		{"nothing", long[200:500], "opaque 300\n"},
		{"0-9-1", []byte("AMQP\x00\x00\x09\x01"), "opaque 8\n"},
	})
}

// TestGarbage holds that what is no frame is opaque and the next one is found.
func TestGarbage(t *testing.T) {
	good := transfer(1, 3, 5, "t", "good")
	bad := []byte("\x7f\xff\xff\xff garbage")
	suite.Garbage(t, newScanner, good, "#3", map[string][][]byte{
		"own segment":       {good, bad, good},
		"same segment":      {good, cat(bad, good)},
		"after a cut front": {good[:5], bad, good},
	})
}

func TestRescan(t *testing.T) {
	s := NewScanner(testID)
	message := transfer(1, 2, 5, "t", "hello")
	suite.Rescan(t, s, func() any { return s.Framer }, [][]byte{attach(1, 2, no, "", "queue"), message, message[:15]},
		message[:14], message[9:], []byte("\x00"), perform(1, Detach, num(2)), perform(1, End), perform(0, Open))
	suite.Shows(t, s, "transfer 15+22 body 9 2+1:0 5+1:1\n", message[15:])
}

func TestScannerSize(t *testing.T) {
	if n := unsafe.Sizeof(Scanner{}); n > 40 {
		t.Errorf("a Scanner takes %d bytes", n)
	}
}
