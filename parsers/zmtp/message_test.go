package zmtp

import (
	"fmt"
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

var messages = []struct {
	name       string
	bytes      []byte
	subscriber bool
	want       string // Parse's unit
	event      string
}{
	{"greeting", greeting("NULL"), false, "GREETING 64", ""},
	{"READY", ready("PUB"), false, "READY 27 4@2+25", ""},
	{"READY with identity", command("READY", property("Socket-Type", "REQ")+property("Identity", "")), false, "READY 40 4@2+38", ""},
	{"READY with much", command("READY", property("Identity", strings.Repeat("i", 400))), false, "READY 428 6@9+419", ""},
	{"HELLO", command("HELLO", "\x05admin\x08password"), false, "HELLO 23 4@2+21", ""},
	{"WELCOME", command("WELCOME", ""), false, "WELCOME 10 4@2+8", ""},
	{"INITIATE", command("INITIATE", property("Socket-Type", "SUB")), false, "INITIATE 30 4@2+28", ""},
	{"ERROR", command("ERROR", "\x03400"), false, "ERROR 12 4@2+10", ""},
	{"SUBSCRIBE", command("SUBSCRIBE", "weather"), false, "SUBSCRIBE 19 4@2+17", "weather"},
	{"SUBSCRIBE to all", command("SUBSCRIBE", ""), false, "SUBSCRIBE 12 4@2+10", ""},
	{"CANCEL", command("CANCEL", strings.Repeat("w", 300)), false, "CANCEL 316 6@9+307", ""},
	{"PING", command("PING", "\x00\x64ctx"), false, "PING 12 4@2+10", ""},
	{"PONG", command("PONG", "ctx"), false, "PONG 10 4@2+8", ""},
	{"JOIN", command("JOIN", "group"), false, "JOIN 12 4@2+10", "group"},
	{"CURVE", command("MESSAGE", "12345678secret"), false, "ENCRYPTED 24 4@2+22", ""},
	{"unknown command", command("NEW", "data"), false, "COMMAND 10 4@2+8", ""},
	{"topic and body", message3("weather", "41"), false, "MESSAGE 13 1@2+7 0@11+2", "weather"},
	{"topic of 256", message3(strings.Repeat("w", 256), "41"), false, "MESSAGE 269 3@9+256 0@267+2", strings.Repeat("w", 256)},
	{"topic of 257", message3(strings.Repeat("w", 257), "41"), false, "MESSAGE 270 3@9+257 0@268+2", ""},
	{"three frames", message3("", "Server", "Hello world"), false, "MESSAGE 23 1@2+0 1@4+6 0@12+11", ""},
	{"large body", message3("a", strings.Repeat("x", 300)), false, "MESSAGE 312 1@2+1 2@12+300", "a"},
	{"one frame", message3("hello"), false, "MESSAGE 7 0@2+5", ""},
	{"empty", message3(""), false, "MESSAGE 2 0@2+0", ""},
	{"heartbeat inside", cat(raw(flagMore, "a"), command("PING", "\x00\x64"), raw(0, "b")), false, "MESSAGE 15 1@2+1 4@5+7 0@14+1", "a"},
	{"subscription of 3.0", message3("\x01weather"), true, "SUBSCRIBE 10 0@2+8", "weather"},
	{"cancellation of 3.0", message3("\x00weather"), true, "CANCEL 10 0@2+8", "weather"},
	{"subscriber's message", message3("weather"), true, "MESSAGE 9 0@2+7", ""},
	{"subscriber's empty message", message3(""), true, "MESSAGE 2 0@2+0", ""},
}

func showUnit(u Unit, _ []byte) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v %d", u.Name, u.Length)
	for _, f := range u.Frames {
		fmt.Fprintf(&s, " %d@%d+%d", f.Flags, f.Off, f.Len)
	}
	return s.String()
}

func TestParse(t *testing.T) {
	for _, tt := range messages {
		t.Run(tt.name, func(t *testing.T) {
			parse := func(b []byte) (Unit, int, error) { return Parse(b, tt.subscriber) }
			parsertest.Parses(t, parse, showUnit, tt.bytes, tt.want)
			parsertest.CutShort(t, parse, tt.bytes)
		})
	}
	b := message3("weather", "41")
	if u, _, err := Parse(b, false); err != nil || string(u.Frames[1].Bytes(b)) != "41" {
		t.Errorf("%v, error %v", u, err)
	}
}

func TestMalformed(t *testing.T) {
	for _, tt := range []struct {
		name, bytes string
		want        fault
		off         int
	}{
		{"flags", "\x08\x00", faultFlags, 0},
		{"command with more", "\x05\x02\x01a", faultFlags, 0},
		{"size", "\x02\x00\x00\x00\x01", faultSize, 0},
		{"later flags", "\x01\x01a\x09", faultFlags, 3},
		{"signature", "\xff123456789", faultSignature, 0},
		{"version 2", "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x02", faultVersion, 0},
		{"command without a name", "\x04\x02\x00a", faultCommand, 0},
		{"command of one byte", "\x04\x01\x01", faultCommand, 0},
		{"command with a long name", "\x04\x02\x02a", faultCommand, 0},
		{"command that is no name", "\x04\x03\x02\x01a", faultCommand, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse([]byte(tt.bytes), false)
			if e := parsertest.Malformed(t, err, faults[tt.want].what); e.Off != tt.off {
				t.Errorf("%v, want it at byte %d", err, tt.off)
			}
		})
	}
}
