package tls

import (
	"errors"
	"strings"
	"testing"

	"sheaf/parsers"
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
	{"sealed alert", sealedAlert, Alert, 0x0303},
	{"heartbeat", heartbeat, Heartbeat, 0x0303},
}

func TestParse(t *testing.T) {
	for _, tt := range records {
		r, n, err := Parse(cat(tt.bytes, []byte{0}))
		if err != nil || n != len(tt.bytes) || r != (Record{Name: tt.want, Version: tt.version, Length: n}) {
			t.Errorf("%s: %+v of %d bytes, error %v", tt.name, r, n, err)
			continue
		}
		if got := r.Fragment(tt.bytes); string(got) != string(tt.bytes[5:]) {
			t.Errorf("%s: fragment %x", tt.name, got)
		}
		for _, i := range []int{0, 1, 2, 3, 4, len(tt.bytes) - 1} {
			if _, _, err := Parse(tt.bytes[:i]); err != parsers.ErrCut {
				t.Errorf("%s: %d bytes of it: error %v", tt.name, i, err)
			}
		}
	}
}

// TestMalformed holds that what is wrong is seen as soon as it is there.
func TestMalformed(t *testing.T) {
	for _, tt := range []struct{ name, bytes, want string }{
		{"type 19", "\x13", "type"},
		{"type 25", "\x19", "type"},
		{"major version", "\x17\x02", "version"},
		{"SSL 3.0", "\x17\x03\x00", "version"},
		{"version after 1.3", "\x17\x03\x05", "version"},
		{"length in its first byte", "\x17\x03\x03\x42", "larger"},
		{"length in its second byte", "\x17\x03\x03\x41\x01", "larger"},
		{"ChangeCipherSpec of two", "\x14\x03\x03\x00\x02", "fragment"},
		{"alert of three", "\x15\x03\x03\x00\x03", "fragment"},
		{"handshake of three", "\x16\x03\x03\x00\x03", "fragment"},
		{"heartbeat without padding", "\x18\x03\x03\x00\x03", "fragment"},
		{"DTLS", "\x16\xfe\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x40", "version"},
	} {
		_, _, err := Parse([]byte(tt.bytes))
		var e *parsers.Error
		if !errors.As(err, &e) || !errors.Is(err, parsers.ErrMalformed) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
		if _, _, err := Parse([]byte(tt.bytes[:len(tt.bytes)-1])); tt.name != "DTLS" && err != parsers.ErrCut {
			t.Errorf("%s: without its last byte: error %v", tt.name, err)
		}
	}
}
