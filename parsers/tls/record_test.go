package tls

import (
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

var records = []struct {
	name    string
	bytes   []byte
	want    Name
	version uint16
}{
	{"ClientHello", clientHello, Handshake, 0x0301},
	{"ServerHello", serverHello, Handshake, 0x0303},
	{"ChangeCipherSpec", change, ChangeCipherSpec, 0x0303},
	{"Finished", finished, Handshake, 0x0303},
	{"data", data(150), ApplicationData, 0x0303},
	{"data of TLS 1.1", version(2, data(64)), ApplicationData, 0x0302},
	{"no data", record(ApplicationData, ""), ApplicationData, 0x0303},
	{"the longest", data(maxFragment), ApplicationData, 0x0303},
	{"close_notify", closeNotify, Alert, 0x0303},
	{"encrypted alert", encryptedAlert, Alert, 0x0303},
	{"heartbeat", heartbeat, Heartbeat, 0x0303},
}

func TestParse(t *testing.T) {
	for _, tt := range records {
		t.Run(tt.name, func(t *testing.T) {
			r, n, err := Parse(cat(tt.bytes, []byte{0}))
			if err != nil || n != len(tt.bytes) || r != (Record{Name: tt.want, Version: tt.version, Length: n}) {
				t.Fatalf("%+v of %d bytes, error %v", r, n, err)
			}
			if got := r.Fragment(tt.bytes); string(got) != string(tt.bytes[5:]) {
				t.Errorf("fragment %x", got)
			}
			parsertest.CutShort(t, Parse, tt.bytes)
		})
	}
}

// TestMalformed holds that what is wrong is seen as soon as it is there.
func TestMalformed(t *testing.T) {
	for _, tt := range []struct {
		name, bytes string
		want        fault
	}{
		{"type 19", "\x13", faultType},
		{"type 25", "\x19", faultType},
		{"major version", "\x17\x02", faultVersion},
		{"SSL 3.0", "\x17\x03\x00", faultVersion},
		{"version after 1.3", "\x17\x03\x05", faultVersion},
		{"length in its first byte", "\x17\x03\x03\x42", faultLarge},
		{"length in its second byte", "\x17\x03\x03\x41\x01", faultLarge},
		{"ChangeCipherSpec of two", "\x14\x03\x03\x00\x02", faultLength},
		{"alert of three", "\x15\x03\x03\x00\x03", faultLength},
		{"handshake of three", "\x16\x03\x03\x00\x03", faultLength},
		{"heartbeat without padding", "\x18\x03\x03\x00\x03", faultLength},
		{"DTLS", "\x16\xfe\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40", faultVersion},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse([]byte(tt.bytes))
			parsertest.Malformed(t, err, faults[tt.want])
			if _, _, err := Parse([]byte(tt.bytes[:len(tt.bytes)-1])); tt.name != "DTLS" && err != parsers.ErrCut {
				t.Errorf("without its last byte: error %v", err)
			}
		})
	}
}
