package kafka

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
		spans := scanAll(t, s, cat(tt.bytes, tt.bytes))
		m, _, err := Parse(tt.bytes, false)
		if len(spans) != 2 || err != nil {
			t.Errorf("%s: error %v, spans:\n%s", tt.name, err, showSpans(spans))
			continue
		}
		sp := spans[1]
		if Name(sp.Name) != m.Name || sp.At != 0 || sp.Len != m.Length || string(sp.Event) != string(m.Topic.Bytes(tt.bytes)) || sp.Body != m.Body {
			t.Errorf("%s: span %+v of %v", tt.name, sp, m)
		}
		want := parsers.ClassData
		if tt.name == "ApiVersions" || tt.name == "Heartbeat" || tt.name == "no client ID" {
			want = parsers.ClassUrgent
		}
		if sp.Class != want {
			t.Errorf("%s: class %d, want %d", tt.name, sp.Class, want)
		}
	}
}

func TestHoles(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"Produce", produce(3, 5, "c-1", "topic", nil), `Produce 48+0 body 36 "topic" hole 8+4 counter 0 hole 14+3 counter 1`},
		{"Produce 9", produce(9, 5, "", "topic", nil), `Produce 38+0 body 29 "topic" hole 8+4 counter 0`},
		{"Fetch", fetch(12, 5, "c-1", "topic", 1, 2), `Fetch 71+0 body 50 "topic" hole 8+4 counter 0 hole 14+3 counter 1 hole 35+4 counter 2 hole 39+4 counter 3`},
		{"long client ID", request(3, 1, 5, strings.Repeat("c", 65)), `Metadata 79+0 body 79 hole 8+4 counter 0`},
		{"response", response(5, "body"), `RESPONSE 12+0 body 8 hole 4+4 counter 0`},
	} {
		sp := NewScanner(testID).Scan(nil, tt.bytes)
		sp[0].At, sp[0].Len = sp[0].Len, sp[0].At
		if diff := cmp.Diff(tt.want+"\n", showSpans(sp)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestScanSplits(t *testing.T) {
	m := produce(3, 5, "c-1", "topic", batch(0, "records"))
	suite.Scans(t, newScanner, parsertest.Streams[[]byte]{
		{"in the records", cut(m, 60), `
Produce 0+60 body 36 "topic" hole 8+4 counter 0 hole 14+3 counter 1
Produce 60+56 body 0
`},
		{"in the topic", cut(m, 34), `
Produce 0+34 body 34
Produce 34+82 body 2
`},
		{"in the client ID", cut(m, 2, 13, 15), `
REQUEST 0+2 body 2
Produce 2+11 body 11
Produce 13+2 body 2
Produce 15+101 body 21
`},
		{"a response", cut(response(70000, "body"), 2, 6), `
REQUEST 0+2 body 2
RESPONSE 2+4 body 4
RESPONSE 6+6 body 2
`},
	})
}

func TestKeys(t *testing.T) {
	key := func(b []byte) uint64 { return NewScanner(testID).Scan(nil, b)[0].Key }
	a := key(produce(3, 1, "c-1", "a", nil))
	if a != key(produce(9, 2, "c-22", "a", batch(0, "r"))) {
		t.Error("version, IDs or records are in the key")
	}
	parsertest.InKey(t, a, map[string]uint64{
		"topic":    key(produce(3, 1, "c-1", "b", nil)),
		"name":     key(fetch(7, 1, "c-1", "a", 1, 1)),
		"protocol": NewScanner(testID+1).Scan(nil, produce(3, 1, "c-1", "a", nil))[0].Key,
	})
}

func TestResync(t *testing.T) {
	long := produce(3, 100, "client-1", "topic", batch(0, strings.Repeat("record ", 200)))
	next := produce(3, 101, "client-1", "topic", nil)
	answer := response(100, strings.Repeat("body ", 200))
	suite.Resync(t, newScanner, long[:300], parsertest.AfterLoss[[]byte]{
		{"request at the start", next, "Produce 0+53 body 41 \"topic\" hole 8+4 counter 0 hole 14+8 counter 1\n"},
		{"cut request at the start", long[:400], "Produce 0+400 body 41 \"topic\" hole 8+4 counter 0 hole 14+8 counter 1\n"},
		{"request inside", cat(long[500:], next), "opaque 1014\nProduce 0+53 body 41 \"topic\" hole 8+4 counter 0 hole 14+8 counter 1\n"},
		{"nothing", long[500:700], "opaque 200\n"},
	})
	suite.Resync(t, newScanner, answer[:300], parsertest.AfterLoss[[]byte]{
		{"response at the start", response(102, "body"), "RESPONSE 0+12 body 8 hole 4+4 counter 0\n"},
		{"cut response at the start", response(103, "body, long")[:12], "RESPONSE 0+12 body 8 hole 4+4 counter 0\n"},
		{"cut response of another connection", response(99, "body, long")[:12], "opaque 12\n"},
		{"response inside is no evidence", cat(answer[900:], response(101, "body")), "opaque 120\n"},
	})
}

// TestChance holds that a flow of responses of which the first could be a
// request is found to be one of responses.
func TestChance(t *testing.T) {
	s := NewScanner(testID)
	like := response(3<<16|5, "\x00\x00\x00\x00\x00\x02ab")
	spans := scanAll(t, s, like, response(3<<16|6, "\xff\xff\xff\xffbody"), response(3<<16|7, "\xff\xff\xff\xffbody"))
	if last := spans[2]; Name(last.Name) != Response || Name(spans[0].Name) == Response {
		t.Errorf("spans:\n%s", showSpans(spans))
	}
}

func TestRescan(t *testing.T) {
	s := NewScanner(testID)
	cutOff := produce(3, 8, "c-1", "topic", nil)
	suite.Rescan(t, s, func() any { return s.Framer },
		[][]byte{fetch(12, 6, "c-1", "topic", 77, 8), produce(3, 7, "c-1", "topic", batch(0, "r")), cutOff[:10]}, []byte{0})
	suite.Shows(t, s, "Produce 10+38 body 26 hole 4+3 counter 1\n", cutOff[10:])
}
