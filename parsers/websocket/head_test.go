package websocket

import (
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   string
		want Message
		err  string // a part of it; empty when there is none
	}{
		// The examples of RFC 6455, 5.7.
		{"text", "\x81\x05Hello", Message{Name: Text, Length: 7, Fin: true, Body: 2}, ""},
		{"text, masked", "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", Message{Name: Text, Length: 11, Fin: true, Masked: true, Key: 0x37fa213d, Body: 6}, ""},
		{"fragment", "\x01\x03Hel", Message{Name: Text, Length: 5, Body: 2}, ""},
		{"last fragment", "\x80\x02lo", Message{Name: Continuation, Length: 4, Fin: true, Body: 2}, ""},
		{"256 bytes", "\x82\x7e\x01\x00" + strings.Repeat("x", 256), Message{Name: Binary, Length: 260, Fin: true, Body: 4}, ""},
		{"64 KiB", "\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00" + strings.Repeat("x", 65536), Message{Name: Binary, Length: 65546, Fin: true, Body: 10}, ""},
		{"compressed", "\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00", Message{Name: Text, Length: 9, Fin: true, Compressed: true, Body: 2}, ""},

		{"nothing", "", Message{}, "cut"},
		{"cut header", "\x82\x7e\x01", Message{}, "cut"},
		{"cut key", "\x82\x81\x01", Message{}, "cut"},
		{"cut payload", "\x82\x02a", Message{}, "cut"},
		{"cut head", "GET / HTTP/1.1\r\n", Message{}, "cut"},
		{"reserved bits", "\xa2\x00", Message{}, "reserved bits"},
		{"compressed ping", "\xc9\x00", Message{}, "reserved bits"},
		{"opcode 3", "\x83\x00", Message{}, "opcode"},
		{"fragmented ping", "\x09\x00", Message{}, "control"},
		{"long ping", "\x89\x7e\x01\x00", Message{}, "control"},
		{"long form of a length", "\x82\x7e\x00\x7d", Message{}, "shortest"},
		{"longest form of a length", "\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff", Message{}, "shortest"},
		{"terabytes", "\x82\x7f\x00\x00\x01\x00\x00\x00\x00\x00", Message{}, "larger"},
		{"negative length", "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", Message{}, "larger"},
		{"other method", "HEAD / HTTP/1.1\r\n\r\n", Message{}, "GET"},
		{"other answer", "HTTP/1.1 404 Not Found\r\n\r\n", Message{}, "101"},
		{"no upgrade", "GET / HTTP/1.1\r\n\r\n", Message{}, "upgrade"},
		{"endless head", "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", maxUpgrade), Message{}, "no end"},
	} {
		m, n, err := Parse([]byte(tt.in))
		switch {
		case err == nil && tt.err == "":
			if m != tt.want || n != len(tt.in) {
				t.Errorf("%s: %+v of %d bytes, want %+v", tt.name, m, n, tt.want)
			}
		case err == nil || tt.err == "" || !strings.Contains(err.Error(), tt.err):
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.err)
		default:
			parsertest.Typed(t, err)
		}
	}
}
