package kafka

import (
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestProbe(t *testing.T) {
	parsertest.Probes[[]byte]{
		{"Produce", produce(3, 5, "c-1", "topic", nil), parsers.Strong},
		{"Fetch", fetch(12, 5, "c-1", "topic", 1, 1), parsers.Strong},
		{"ApiVersions", request(18, 0, 1, "rdkafka"), parsers.Strong},
		{"ApiVersions 3", request(18, 3, 1, "rdkafka", []byte{0}, compactStr("librdkafka"), compactStr("2.3.0"), []byte{0}), parsers.Strong},
		{"ApiVersions and more", request(18, 0, 1, "rdkafka", u16(0)), parsers.Weak},
		{"Metadata", request(3, 0, 2, "client", u32(1), str("topic")), parsers.Strong},
		{"Metadata of all", request(3, 4, 2, "client", u32(1<<32-1), []byte{1}), parsers.Strong},
		{"Metadata 12", request(3, 12, 2, "client", []byte{0, 2}, make([]byte, 16), compactStr("topic"), []byte{0, 1, 0, 0}), parsers.Strong},
		{"Metadata of no topic's name", request(3, 0, 2, "client", u32(1), str("a topic")), parsers.Weak},
		{"two", cat(request(18, 0, 1, "cl"), request(3, 0, 2, "cl", u32(0))), parsers.Strong},
		{"JoinGroup", request(11, 0, 2, "client", str("group"), u32(30000), str(""), str("consumer"), u32(0)), parsers.Strong},
		{"JoinGroup 5", request(11, 5, 2, "client", str("group"), u32(30000), u32(1), str("m"), u16(0xffff), str("consumer"), u32(0)), parsers.Strong},
		{"JoinGroup of no kind", request(11, 0, 2, "client", str("group"), u32(30000), str(""), str(""), u32(0)), parsers.Weak},
		{"Heartbeat", request(12, 0, 2, "client", str("group"), u32(1), str("member")), parsers.Strong},
		{"Heartbeat without a group", request(12, 0, 2, "client", str(""), u32(1), str("member")), parsers.Weak},
		{"Heartbeat of a number below 0", request(12, 0, 2, "client", str("group"), u32(1<<32-1), str("member")), parsers.Weak},
		{"OffsetCommit", request(8, 0, 2, "client", str("group"), u32(0)), parsers.Weak},
		{"OffsetCommit and Metadata", cat(request(8, 0, 2, "client", str("group"), u32(0)), request(3, 0, 3, "client", u32(0))), parsers.Strong},
		{"little text", request(18, 0, 1, "cli"), parsers.Weak},
		{"Produce, cut", produce(3, 5, "c-1", "topic", batch(0, "records"))[:100], parsers.Weak},
		{"Produce, cut in the topic", produce(3, 5, "c-1", "topic", nil)[:34], parsers.None},
		{"response", response(5, "body"), parsers.Weak},
		{"responses", cat(response(5, "body"), response(6, "body")), parsers.Weak},
		{"response, cut", response(5, "body")[:11], parsers.None},
		{"response and a byte", cat(response(5, "body"), []byte{0}), parsers.None},
		{"middle of records", batch(0, strings.Repeat("record ", 20)), parsers.None},
		{"PostgreSQL", msg([]byte("\x00\x03\x00\x00user\x00postgres\x00\x00")), parsers.Weak},
		{"Pulsar", []byte("\x00\x00\x00\x14\x00\x00\x00\x10\x08\x02\x12\x0c\x0a\x062.10.0 \x0f12"), parsers.Weak},
		{"TLS ClientHello", []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), parsers.None},
		{"GET", []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), parsers.None},
		{"telnet", []byte("\xff\xfd\x18\xff\xfd\x20"), parsers.None},
		{"zeroes", make([]byte, 100), parsers.None},
		{"nothing", nil, parsers.None},
	}.Check(t, Probe)
}

func TestProbeRandom(t *testing.T) {
	parsertest.ProbeRandom(t, 200_000, Probe, func(_ int, b []byte) {
		copy(b, "\x00\x00\x00\x3c\x00")
		b[5] &= 63
	})
}
