package amqp_test

import (
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/amqp"
	"sheaf/parsers/amqp10"
	"sheaf/parsers/parsertest"
)

// TestSharedPort holds that on the port that both versions have the content
// decides, from the preamble on and in the middle of a connection.
func TestSharedPort(t *testing.T) {
	for _, reg := range []*parsers.Registry{
		parsers.NewRegistry(amqp.Protocol(), amqp10.Protocol()),
		parsers.NewRegistry(amqp10.Protocol(), amqp.Protocol()),
	} {
		for payload, want := range map[string]string{
			"AMQP\x00\x00\x09\x01": "amqp",
			"AMQP\x00\x01\x00\x00": "amqp10",
			"AMQP\x03\x01\x00\x00": "amqp10",
			"AMQP\x01\x01\x00\x0a": "opaque",
			"\x01\x00\x01\x00\x00\x00\x0d\x00\x3c\x00\x50\x00\x00\x00\x00\x00\x00\x00\x01\x00\xce": "amqp",
			"\x08\x00\x00\x00\x00\x00\x00\xce":                                             "amqp",
			"\x00\x00\x00\x10\x02\x00\x00\x01\x00\x53\x14\xc0\x03\x02\x43\x43":             "amqp10",
			"\x00\x00\x00\x10\x02\x00\x00\x01\x00\x53\x14\xc0\x03\x02\x43\x43\x00\x00\x00": "amqp10",
		} {
			var d parsers.Decoder
			var st parsers.Stream
			var seg parsers.Segment
			if err := d.Decode(parsertest.TCPPacket(5672, payload), &seg); err != nil {
				t.Fatal(err)
			}
			st.Scan(reg, &seg, nil)
			if got := reg.Name(st.Protocol()); got != want {
				t.Errorf("%q is %s, want %s", payload, got, want)
			}
		}
	}
}
