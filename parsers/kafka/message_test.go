package kafka

import (
	"fmt"
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

var messages = []struct {
	name  string
	bytes []byte
	want  string // Parse's message
}{
	{"Produce 0", produce(0, 5, "c-1", "topic", oldMessage(0, "value")), `Produce v0 id 5 client "c-1" topic "topic" batch 0 codec 0 records 1`},
	{"Produce 2", produce(2, 5, "", "topic", cat(oldMessage(1, "a"), oldMessage(1, "b"))), `Produce v2 id 5 client "" topic "topic" batch 1 codec 0 records 1 batch 1 codec 0 records 1`},
	{"Produce 3", produce(3, 5, "c-1", "topic", batch(0, "records")), `Produce v3 id 5 client "c-1" topic "topic" batch 2 codec 0 records 1`},
	{"Produce 7, zstd", produce(7, 5, "c-1", "to.p_i-c", batch(4, "records")), `Produce v7 id 5 client "c-1" topic "to.p_i-c" batch 2 codec 4 records 1`},
	{"Produce 9", produce(9, 5, "c-1", "topic", cat(batch(0, "r"), batch(1, "r"))), `Produce v9 id 5 client "c-1" topic "topic" batch 2 codec 0 records 1 batch 2 codec 1 records 1`},
	{"Produce 13", produce(13, 5, "c-1", "0123456789abcdef", batch(0, "r")), `Produce v13 id 5 client "c-1" topic "0123456789abcdef" batch 2 codec 0 records 1`},
	{"Produce without records", produce(3, 5, "c-1", "topic", nil), `Produce v3 id 5 client "c-1" topic "topic"`},
	{"Fetch 0", fetch(0, 6, "c-1", "topic", 0, 0), `Fetch v0 id 6 client "c-1" topic "topic"`},
	{"Fetch 7", fetch(7, 6, "c-1", "topic", 77, 8), `Fetch v7 id 6 client "c-1" topic "topic"`},
	{"Fetch 12", fetch(12, 6, "c-1", "topic", 77, 8), `Fetch v12 id 6 client "c-1" topic "topic"`},
	{"Fetch 12, nothing new", fetch(12, 6, "c-1", "", 77, 9), `Fetch v12 id 6 client "c-1" topic ""`},
	{"ApiVersions", request(18, 3, 2, "adminclient-1", []byte{0}, compactStr("apache-kafka-java"), compactStr("3.0.0"), []byte{0}), `ApiVersions v3 id 2 client "adminclient-1" topic ""`},
	{"Heartbeat", request(12, 4, 2, "c-1", []byte("\x00\x06group\x00\x00\x00\x01\x07member\x00\x00")), `Heartbeat v4 id 2 client "c-1" topic ""`},
	{"unknown API", request(80, 0, 2, "c-1", []byte{0}), `REQUEST v0 id 2 client "c-1" topic ""`},
	{"no client ID", msg(u16(18), u16(0), u32(3), u16(0xffff)), `ApiVersions v0 id 3 client "" topic ""`},
	{"response", response(70000, "body"), `RESPONSE v0 id 70000 client "" topic ""`},
	{"empty response", response(7, ""), `RESPONSE v0 id 7 client "" topic ""`},
	{"response to Produce 2", msg(u32(2), u32(1), str("topic"), u32(1), u32(0), u16(0), u32(0), u32(9), u32(0)), `RESPONSE v0 id 2 client "" topic ""`},
	{"response to Produce 2, partition 1", msg(u32(2), u32(1), str("topic"), u32(1), u32(1), u16(0), u32(0), u32(9), u32(0)), `RESPONSE v0 id 2 client "" topic ""`},
}

func show(m Message, b []byte) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v v%d id %d client %q topic %q", m.Name, m.Version, m.Correlation, m.Client.Bytes(b), m.Topic.Bytes(b))
	for _, batch := range m.Batches {
		fmt.Fprintf(&s, " batch %d codec %d records %d", batch.Magic, batch.Codec, batch.Records)
	}
	return s.String()
}

func TestParse(t *testing.T) {
	parse := func(b []byte) (Message, int, error) { return Parse(b, false) }
	for _, tt := range messages {
		t.Run(tt.name, func(t *testing.T) {
			if m := parsertest.Parses(t, parse, show, tt.bytes, tt.want); m.Length != len(tt.bytes) {
				t.Errorf("Length %d, want %d", m.Length, len(tt.bytes))
			}
			parsertest.CutShort(t, parse, tt.bytes)
			if m, _, err := Parse(tt.bytes, true); err != nil || m.Name != Response {
				t.Errorf("as a response: %v, error %v", m.Name, err)
			}
		})
	}
}

func TestMalformed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  fault
	}{
		{"too large", []byte{0x11}, faultSize},
		{"too small", u32(3), faultSize},
		{"negative", msg(u32(1<<31), u16(0)), faultCorrelation},
		{"batch past its partition", produce(3, 5, "c", "t", batch(0, "records")[:62]), faultBatch},
		{"batch of nothing", produce(3, 5, "c", "t", []byte("short")), faultBatch},
		{"batch of version 3", produce(3, 5, "c", "t", oldMessage(3, "v")), faultBatch},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse(tt.bytes, false)
			parsertest.Malformed(t, err, faults[tt.want])
		})
	}
}

// TestNoRequests holds that what is not right in every field is no request.
func TestNoRequests(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  fault
	}{
		{"API", request(100, 0, 1, "c"), faultAPI},
		{"version", request(3, 24, 1, "c"), faultVersion},
		{"correlation", request(3, 0, -1, "c"), faultCorrelation},
		{"too short", msg(u16(3), u16(0), u32(1)), faultTooShort},
		{"client ID past the end", msg(u16(3), u16(0), u32(1), u16(9), []byte("client")), faultTooShort},
		{"client ID", request(3, 0, 1, "c\x00"), faultText},
		{"long client ID", request(3, 0, 1, strings.Repeat("c", 513)), faultText},
		{"acks", request(0, 0, 1, "c", u16(2), u32(1), u32(1), str("t")), faultNumber},
		{"timeout", request(0, 0, 1, "c", u16(1), u32(-2), u32(1), str("t")), faultNumber},
		{"no topics", request(0, 0, 1, "c", u16(1), u32(1), u32(0), str("t")), faultCount},
		{"many topics", request(0, 0, 1, "c", u16(1), u32(1), u32(100), str("t")), faultCount},
		{"topic", request(0, 0, 1, "c", u16(1), u32(1), u32(1), str("a/b")), faultTopic},
		{"empty topic", request(0, 0, 1, "c", u16(1), u32(1), u32(1), str("")), faultTopic},
		{"replica", request(1, 0, 1, "c", u32(-3), u32(1), u32(1), u32(1), str("t")), faultNumber},
		{"isolation", request(1, 4, 1, "c", u32(-1), u32(1), u32(1), u32(1), []byte{2}, u32(1), str("t")), faultNumber},
		{"endless number", request(0, 9, 1, "c", []byte("\x80\x80\x80\x80\x80\x80")), faultNumber},
	} {
		var f front
		if bad := parseFront(tt.bytes, requests, &f); bad != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, faults[bad], faults[tt.want])
		}
	}
}
