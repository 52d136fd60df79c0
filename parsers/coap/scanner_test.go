package coap

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestScan(t *testing.T) {
	long := strings.Repeat("p", 150)
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"GET", msg(Confirmable, 1, 5, "", "", opt{11, "temperature"}), `GET 16 body 16 "temperature" hole 2+2 counter 0`},
		{"GET of all", msg(Confirmable, 1, 5, "", ""), `GET 4 body 4 hole 2+2 counter 0`},
		{"observe", msg(Confirmable, 1, 5, "to", "", opt{6, "\x01"}, opt{11, "a"}, opt{11, "bc"}, opt{15, "q"}), `GET 15 body 15 "a/bc" hole 2+2 counter 0 hole 4+2 counter 1`},
		{"PUT", put(5, "token", "body", "a", "", "c"), `PUT 19 body 15 "a//c" hole 2+2 counter 0 hole 4+5 counter 1`},
		{"long path", put(5, "", "b", long, long), `PUT 310 body 309 hole 2+2 counter 0`},
		{"path of 256", put(5, "", "b", long, long[:105]), `PUT 265 body 264 "` + long + "/" + long[:105] + `" hole 2+2 counter 0`},
		{"notification", notification(5, "to", "\x01\x02", "21.5"), `2.05 Notification 16 body 12 "to" hole 2+2 counter 0 hole 4+2 counter 1 hole 7+2 counter 2`},
		{"first notification", notification(5, "to", "", "21.5"), `2.05 Notification 14 body 10 "to" hole 2+2 counter 0 hole 4+2 counter 1`},
		{"piggybacked", msg(Acknowledgement, content, 5, "to", "21"), `2.05 Content 9 body 7 hole 2+2 counter 3 hole 4+2 counter 1`},
		{"a response's path", msg(Acknowledgement, changed, 5, "to", "", opt{11, "odd"}), `2.04 Changed 10 body 10 hole 2+2 counter 3 hole 4+2 counter 1`},
		{"ACK", msg(Acknowledgement, 0, 5, "", ""), `ACK 4 body 4 hole 2+2 counter 3`},
		{"ping", msg(Confirmable, 0, 5, "", ""), `PING 4 body 4 hole 2+2 counter 0`},
		{"garbage", []byte("garbage"), `opaque 7`},
		{"nothing", nil, ``},
	} {
		s := NewScanner(testID)
		got := strings.TrimSuffix(showSpans(scanAll(t, s, tt.bytes)), "\n")
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
		if again := strings.TrimSuffix(showSpans(s.Rescan(nil, tt.bytes)), "\n"); again != got {
			t.Errorf("%s: Rescan says %s", tt.name, again)
		}
	}
}

func TestClasses(t *testing.T) {
	for _, tt := range messages {
		want := parsers.ClassData
		switch tt.name {
		case "ACK", "RST":
			want = parsers.ClassAck
		case "ping":
			want = parsers.ClassUrgent
		}
		if sp := NewScanner(testID).Scan(nil, tt.bytes)[0]; sp.Class != want {
			t.Errorf("%s: class %d, want %d", tt.name, sp.Class, want)
		}
	}
}

func TestKeys(t *testing.T) {
	key := func(b []byte) uint64 { return NewScanner(testID).Scan(nil, b)[0].Key }
	a := key(put(1, "", "1", "a", "b"))
	if a != key(put(9, "token", "22", "a", "b")) || a != key(put(9, "", "", "a/b")) {
		t.Error("message ID, token, body or how the path is cut are in the key")
	}
	long := strings.Repeat("p", 255)
	parsertest.InKey(t, a, map[string]uint64{
		"path":     key(put(1, "", "1", "a", "c")),
		"name":     key(msg(Confirmable, 1, 1, "", "", opt{11, "a/b"})),
		"protocol": NewScanner(testID+1).Scan(nil, put(1, "", "1", "a/b"))[0].Key,
	})
	if key(put(1, "", "1", long, long)) == key(put(1, "", "1", long, long, "x")) {
		t.Error("the length of a long path is not in the key")
	}
	if key(notification(1, "a", "\x01", "1")) != key(notification(1, "bc", "\x01", "1")) {
		t.Error("a notification's token is in the key")
	}
}

// TestEventsStay holds that an event stays as it is while an older datagram is
// scanned again.
func TestEventsStay(t *testing.T) {
	s := NewScanner(testID)
	spans := s.Scan(nil, put(1, "", "1", "new", "path"))
	again := s.Rescan(nil, put(1, "", "1", "old", "path"))
	if string(spans[0].Event) != "new/path" || string(again[0].Event) != "old/path" {
		t.Errorf("events %q and %q", spans[0].Event, again[0].Event)
	}
}

// TestAny holds that drawn messages are scanned as Parse takes them apart,
// whatever else was scanned, lost or scanned again before.
func TestAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewScanner(testID)
		for range rapid.IntRange(1, 8).Draw(t, "datagrams") {
			switch rapid.IntRange(0, 3).Draw(t, "before") {
			case 0:
				s.Lost()
			case 1:
				scanAll(t, s, rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"))
			}
			number := 0
			var list []opt
			for range rapid.IntRange(0, 5).Draw(t, "options") {
				number += rapid.SampledFrom([]int{0, 1, 5, 6, 11, 12, 13, 269, 5000}).Draw(t, "delta")
				list = append(list, opt{number, strings.Repeat("v", rapid.SampledFrom([]int{0, 1, 2, 12, 13, 200, 268, 269, 400}).Draw(t, "length"))})
			}
			code := rapid.SampledFrom([]uint8{1, 2, 3, 4, 5, 0x41, 0x44, 0x45, 0x84, 0xa0}).Draw(t, "code")
			token := strings.Repeat("t", rapid.IntRange(0, 8).Draw(t, "token"))
			b := msg(Type(rapid.IntRange(0, 1).Draw(t, "type")), code, rapid.IntRange(0, 65535).Draw(t, "id"), token, rapid.StringN(0, 20, 40).Draw(t, "body"), list...)
			m, err := Parse(b)
			if err != nil {
				t.Fatalf("%x: %v", b, err)
			}
			checkSpans(t, s.Rescan(nil, b), b)
			spans := scanAll(t, s, b)
			if len(spans) != 1 || Name(spans[0].Name) != m.Name || spans[0].Body != m.Body || len(m.Options) != len(list) {
				t.Fatalf("%x: spans %s of %s", b, showSpans(spans), show(m))
			}
			for i, o := range m.Options {
				if o.Number != list[i].number || string(o.Bytes(b)) != list[i].value {
					t.Fatalf("option %d is %v", i, o)
				}
			}
		}
	})
}
