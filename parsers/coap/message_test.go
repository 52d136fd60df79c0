package coap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers/parsertest"
)

var messages = []struct {
	name  string
	bytes []byte
	want  string // Parse's message
}{
	{"GET", msg(Confirmable, 1, 0x7d34, "", "", opt{11, "temperature"}), "GET CON 7d34 token 0 body 16 Uri-Path@5+11"},
	{"GET with all", msg(NonConfirmable, 1, 1, "\x20", "", opt{3, "host"}, opt{6, ""}, opt{7, "\x16\x33"}, opt{11, "a"}, opt{11, "b"}, opt{15, "q=1"}, opt{17, "\x32"}),
		"GET NON 0001 token 1 body 24 Uri-Host@6+4 Observe@11+0 Uri-Port@12+2 Uri-Path@15+1 Uri-Path@17+1 Uri-Query@19+3 Accept@23+1"},
	{"PUT", put(2, "ab", "22.3 C", "storage", "one"), "PUT CON 0002 token 2 body 19 Uri-Path@7+7 Uri-Path@15+3"},
	{"long option", msg(Confirmable, 4, 3, "", "", opt{35, strings.Repeat("x", 300)}), "DELETE CON 0003 token 0 body 308 Proxy-Uri@8+300"},
	{"option of a high number", msg(Confirmable, 5, 3, "", "", opt{2049, "y"}), "FETCH CON 0003 token 0 body 8 2049@7+1"},
	{"method of the future", msg(Confirmable, 9, 3, "", ""), "REQUEST CON 0003 token 0 body 4"},
	{"piggybacked", msg(Acknowledgement, content, 0x7d34, "", "22.3 C"), "2.05 Content ACK 7d34 token 0 body 5"},
	{"notification", notification(9, "\x8d\x43", "\x01\x02", "21.5"), "2.05 Notification NON 0009 token 2 body 12 Observe@7+2 Content-Format@10+1"},
	{"created", msg(Acknowledgement, 0x41, 1, "", "", opt{8, "storage"}, opt{8, "one"}), "2.01 Created ACK 0001 token 0 body 16 Location-Path@5+7 Location-Path@13+3"},
	{"not found", msg(NonConfirmable, 0x84, 1, "t", ""), "4.04 Not Found NON 0001 token 1 body 5"},
	{"ACK", msg(Acknowledgement, 0, 0x14ef, "", ""), "ACK ACK 14ef token 0 body 4"},
	{"RST", msg(Reset, 0, 1, "", ""), "RST RST 0001 token 0 body 4"},
	{"ping", msg(Confirmable, 0, 1, "", ""), "PING CON 0001 token 0 body 4"},
}

func show(m Message) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v %v %04x token %d body %d", m.Name, m.Type, m.ID, m.TokenLen, m.Body)
	for _, o := range m.Options {
		name := fmt.Sprint(o.Number)
		if o.Number < len(knownOptions) && knownOptions[o.Number].name != "" {
			name = knownOptions[o.Number].name
		}
		fmt.Fprintf(&s, " %s@%d+%d", name, o.Off, o.Len)
	}
	return s.String()
}

func TestParse(t *testing.T) {
	for _, tt := range messages {
		m, err := Parse(tt.bytes)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if diff := cmp.Diff(tt.want, show(m)); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	m, err := Parse(put(2, "ab", "22.3 C", "storage", "one"))
	if o, found := m.Option(11); err != nil || !found || string(o.Bytes(put(2, "ab", "22.3 C", "storage", "one"))) != "storage" {
		t.Errorf("path %v, error %v", o, err)
	}
	if _, found := m.Option(6); found {
		t.Error("an option that is not there")
	}
}

func TestMalformed(t *testing.T) {
	for _, tt := range []struct {
		name, bytes string
		want        fault
	}{
		{"nothing", "", faultHeader},
		{"short", "\x40\x01\x00", faultHeader},
		{"version 0", "\x00\x01\x00\x01", faultVersion},
		{"version 2", "\x80\x01\x00\x01", faultVersion},
		{"token of 9", "\x49\x01\x00\x01123456789", faultTokenLength},
		{"cut token", "\x44\x01\x00\x01123", faultToken},
		{"class 1", "\x40\x21\x00\x01", faultCode},
		{"class 7", "\x40\xe1\x00\x01", faultCode},
		{"request in an ACK", "\x60\x01\x00\x01", faultType},
		{"response in a RST", "\x70\x45\x00\x01", faultType},
		{"empty NON", "\x50\x00\x00\x01", faultType},
		{"empty with a token", "\x61\x00\x00\x01t", faultEmpty},
		{"empty with a token that is not there", "\x41\x00\x00\x01", faultEmpty},
		{"empty with a byte", "\x60\x00\x00\x01t", faultEmpty},
		{"marker without a payload", "\x40\x01\x00\x01\xff", faultPayload},
		{"delta 15", "\x40\x01\x00\x01\xf0", faultOption},
		{"length 15", "\x40\x01\x00\x01\xbf", faultOption},
		{"cut delta", "\x40\x01\x00\x01\xd0", faultOptionLength},
		{"cut length", "\x40\x01\x00\x01\xbe\x00", faultOptionLength},
		{"cut value", "\x40\x01\x00\x01\xb4abc", faultOptionLength},
		{"number too large", "\x40\x01\x00\x01\xe0\xff\xff\xe0\xff\xff", faultOption},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.bytes))
			if e := parsertest.Malformed(t, err, faults[tt.want].what); e.Off > len(tt.bytes)+8 {
				t.Errorf("%v: of %d bytes", err, len(tt.bytes))
			}
		})
	}
}
