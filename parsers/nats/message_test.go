package nats

import (
	"fmt"
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

const (
	info    = `INFO {"server_id":"NA","max_payload":1048576} ` + "\r\n"
	connect = `CONNECT {"verbose":false,"pedantic":false}` + "\r\n"
	ackTo   = "$JS.ACK.ORDERS.worker.1.1052.17.1700000000000000000.3"
)

// messages holds every operation, the fields to be found in it, and its span.
var messages = []struct {
	name, text string
	want       string // NAME: kind=value ...
	span       string
}{
	{"info", info, `INFO: options="{\"server_id\":\"NA\",\"max_payload\":1048576} "`, `INFO 0+48 body 5`},
	{"connect", connect, `CONNECT: options="{\"verbose\":false,\"pedantic\":false}"`, `CONNECT 0+44 body 8`},
	{"pub", "PUB a.b 5\r\nhello\r\n", `PUB: subject="a.b" payload="hello"`, `PUB 0+18 body 11 "a.b"`},
	{"pub of nothing", "PUB a 0\r\n\r\n", `PUB: subject="a" payload=""`, `PUB 0+11 body 9 "a"`},
	{"pub in lower case, blanks, bare line feed", "pub \ta.b\t 5 \nhello\r\n", `PUB: subject="a.b" payload="hello"`, `PUB 0+20 body 13 "a.b"`},
	{"pub of CR LF", "PUB a 4\r\n\r\n\r\n\r\n", `PUB: subject="a" payload="\r\n\r\n"`, `PUB 0+15 body 9 "a"`},
	{"pub with an inbox that counts", "PUB a _INBOX.RC0CSH.17 2\r\nhi\r\n", `PUB: subject="a" reply="_INBOX.RC0CSH.17" payload="hi"`,
		`PUB 0+30 body 26 "a" @1=_INBOX.RC0CSH +#2=17`},
	{"pub with an inbox at random", "PUB a _INBOX.RC0CSH.x8Zq 2\r\nhi\r\n", `PUB: subject="a" reply="_INBOX.RC0CSH.x8Zq" payload="hi"`,
		`PUB 0+32 body 28 "a" @1=_INBOX.RC0CSH`},
	{"pub with an inbox of one token", "PUB a _INBOX.RC0CSH 2\r\nhi\r\n", `PUB: subject="a" reply="_INBOX.RC0CSH" payload="hi"`,
		`PUB 0+27 body 23 "a" @1=_INBOX.RC0CSH`},
	{"pub with another reply", "PUB a b.c 2\r\nhi\r\n", `PUB: subject="a" reply="b.c" payload="hi"`, `PUB 0+17 body 13 "a"`},
	{"pub to an inbox", "PUB _INBOX.RC0CSH.17 2\r\nhi\r\n", `PUB: subject="_INBOX.RC0CSH.17" payload="hi"`, `PUB 0+28 body 24 "_INBOX"`},
	{"pub to an inbox of one's own", "PUB _INBOX_me.17 2\r\nhi\r\n", `PUB: subject="_INBOX_me.17" payload="hi"`, `PUB 0+24 body 20 "_INBOX_me"`},
	{"acknowledgement", "PUB " + ackTo + " 4\r\n+ACK\r\n", `PUB: subject="` + ackTo + `" payload="+ACK"`,
		`PUB 0+67 body 61 "$JS.ACK.ORDERS" @2=worker +#2=17 #3=3`},
	{"acknowledgement with a domain", "PUB $JS.ACK._.acc.ORDERS.worker.1.1052.17.1700000000000000000.3.x8 0\r\n\r\n",
		`PUB: subject="$JS.ACK._.acc.ORDERS.worker.1.1052.17.1700000000000000000.3.x8" payload=""`,
		`PUB 0+72 body 70 "$JS.ACK._.acc.ORDERS" @2=worker +#2=17 #3=3`},
	{"acknowledgement of another kind", "PUB $JS.ACK.ORDERS.worker.17 0\r\n\r\n", `PUB: subject="$JS.ACK.ORDERS.worker.17" payload=""`,
		`PUB 0+34 body 32 "$JS.ACK.ORDERS.worker.17"`},
	{"hpub", "HPUB a 22 27\r\nNATS/1.0\r\nBar: Baz\r\n\r\nhello\r\n", `HPUB: subject="a" name="Bar" value="Baz" payload="hello"`, `HPUB 0+43 body 36 "a"`},
	{"hpub with a reply", "HPUB a b 12 12\r\nNATS/1.0\r\n\r\n\r\n", `HPUB: subject="a" reply="b" payload=""`, `HPUB 0+30 body 28 "a"`},
	{"sub", "SUB a.* 17\r\n", `SUB: subject="a.*" sid="17"`, `SUB 0+12 body 12 +#0=17`},
	{"sub, two blanks", "SUB a.>  1\r\n", `SUB: subject="a.>" sid="1"`, `SUB 0+12 body 12 +#0=1`},
	{"sub of a queue", "SUB a workers alice\r\n", `SUB: subject="a" queue="workers" sid="alice"`, `SUB 0+21 body 21 @0=alice`},
	{"sub to an inbox", "SUB _INBOX.RC0CSH.*  1\r\n", `SUB: subject="_INBOX.RC0CSH.*" sid="1"`, `SUB 0+24 body 24 @1=_INBOX.RC0CSH +#0=1`},
	{"unsub", "UNSUB 1\r\n", `UNSUB: sid="1"`, `UNSUB 0+9 body 9 +#1=1`},
	{"unsub after", "UNSUB alice 5\r\n", `UNSUB: sid="alice" max="5"`, `UNSUB 0+15 body 15 @0=alice`},
	{"msg", "MSG plant.4.alarms 17 5\r\nhello\r\n", `MSG: subject="plant.4.alarms" sid="17" payload="hello"`, `MSG 0+32 body 25 "plant.4.alarms" #1=17`},
	{"msg to an alias", "MSG a alice 5\r\nhello\r\n", `MSG: subject="a" sid="alice" payload="hello"`, `MSG 0+22 body 15 "a" @0=alice`},
	{"msg, sid with a zero in front", "MSG a 017 5\r\nhello\r\n", `MSG: subject="a" sid="017" payload="hello"`, `MSG 0+20 body 13 "a" @0=017`},
	{"msg, sid too long", "MSG a " + strings.Repeat("x", 65) + " 0\r\n\r\n", `MSG: subject="a" sid="` + strings.Repeat("x", 65) + `" payload=""`, `MSG 0+77 body 75 "a"`},
	{"msg with a reply", "MSG a 9 _INBOX.RC0CSH.17 2\r\nhi\r\n", `MSG: subject="a" sid="9" reply="_INBOX.RC0CSH.17" payload="hi"`, `MSG 0+32 body 28 "a" #0=9`},
	{"msg to an inbox", "MSG _INBOX.RC0CSH.17 1 2\r\nhi\r\n", `MSG: subject="_INBOX.RC0CSH.17" sid="1" payload="hi"`,
		`MSG 0+30 body 26 "_INBOX" @1=_INBOX.RC0CSH +#2=17 #1=1`},
	{"msg of a stream", "MSG a 9 " + ackTo + " 2\r\nhi\r\n", `MSG: subject="a" sid="9" reply="` + ackTo + `" payload="hi"`,
		`MSG 0+69 body 65 "a" #0=9 @2=worker +#2=17 #3=3`},
	{"hmsg", "HMSG a 9 22 27\r\nNATS/1.0\r\nBar:Baz \r\n\r\nhello\r\n", `HMSG: subject="a" sid="9" name="Bar" value="Baz " payload="hello"`, `HMSG 0+45 body 38 "a" #0=9`},
	{"hmsg with a status", "HMSG a 9 b 33 33\r\nNATS/1.0 503 No Responders \r\n\r\n\r\n",
		`HMSG: subject="a" sid="9" reply="b" status="503 No Responders " payload=""`, ``},
	{"ping", "PING\r\n", `PING:`, `PING 0+6 body 6`},
	{"pong", "pong \r\n", `PONG:`, `PONG 0+7 body 7`},
	{"ok", "+OK\r\n", `+OK:`, `+OK 0+5 body 5`},
	{"error", "-ERR 'Unknown Protocol Operation'\r\n", `-ERR: error="'Unknown Protocol Operation'"`, `-ERR 0+35 body 5`},
}

var fieldNames = [...]string{
	FieldOptions: "options", FieldError: "error", FieldSubject: "subject", FieldSID: "sid", FieldQueue: "queue",
	FieldReply: "reply", FieldMax: "max", FieldStatus: "status", FieldHeaderName: "name", FieldHeaderValue: "value",
	FieldPayload: "payload",
}

func show(m Message, b []byte) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v:", m.Name)
	for _, f := range m.Fields {
		fmt.Fprintf(&s, " %s=%q", fieldNames[f.Kind], f.Bytes(b))
	}
	return s.String()
}

func TestParse(t *testing.T) {
	for _, tt := range messages {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "hmsg with a status" { // its sizes are counted here
				head := len("NATS/1.0 503 No Responders \r\n\r\n")
				tt.text = strings.ReplaceAll(tt.text, "33", fmt.Sprint(head))
			}
			if m := parsertest.Parses(t, Parse, show, tt.text, tt.want); m.Length != len(tt.text) {
				t.Errorf("Length %d, want %d", m.Length, len(tt.text))
			}
			parsertest.CutShort(t, Parse, tt.text)
			if tt.span == "" {
				return
			}
			// The spans of two in a row are those of one.
			suite.Shows(t, newScanner(), tt.span+"\n"+tt.span+"\n", tt.text+tt.text)
		})
	}
}

func TestHeader(t *testing.T) {
	b := []byte("HPUB a 30 30\r\nNATS/1.0\r\nA: 1\r\nKV-Op: DEL\r\n\r\n\r\n")
	m, _, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if f, found := m.Header(b, "KV-Op"); !found || string(f.Bytes(b)) != "DEL" {
		t.Errorf("header %v, found %v", f, found)
	}
	if _, found := m.Header(b, "B"); found {
		t.Error("a header that is not there")
	}
	if _, found := m.Field(FieldSID); found {
		t.Error("a PUB with a sid")
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       fault
	}{
		{"verb", "DEADBEEF\r\n", faultVerb},
		{"verb that goes on", "PUBLISH a 1\r\nx\r\n", faultVerb},
		{"HTTP", "PUT / HTTP/1.1\r\n", faultVerb},
		{"HTTP CONNECT", "CONNECT a:80 HTTP/1.1\r\n", faultLine},
		{"STOMP CONNECT", "CONNECT\nlogin:a\n\n\x00", faultVerb},
		{"PING with something", "PING 1\r\n", faultVerb},
		{"PING that does not end", "PING                   ", faultLine},
		{"too few fields", "PUB 5\r\nhello\r\n", faultFields},
		{"too many fields", "PUB a b c 5\r\nhello\r\n", faultFields},
		{"far too many", "HMSG a b c d e f\r\n", faultFields},
		{"size", "PUB a b\r\n", faultNumber},
		{"negative size", "PUB a -1\r\n", faultNumber},
		{"huge size", "PUB a 67108865\r\n", faultSize},
		{"ten digits", "PUB a 1000000000\r\n", faultNumber},
		{"headers past the payload", "HPUB a 13 12\r\nNATS/1.0\r\n\r\n\r\n", faultHeaders},
		{"header size", "HPUB a x 12\r\n", faultNumber},
		{"headers that are none", "HPUB a 5 5\r\nhello\r\n", faultHeaders},
		{"header without a colon", "HPUB a 15 15\r\nNATS/1.0\r\na\r\n\r\n\r\n", faultHeaders},
		{"headers without an end", "HPUB a 10 10\r\nNATS/1.0\r\n\r\n", faultHeaders},
		{"payload too long", "PUB a 1\r\nhello\r\n", faultEnd},
		{"control character", "PUB a\x01 1\r\nx\r\n", faultLine},
		{"control character, cut", "PUB a\x01", faultLine},
		{"max", "UNSUB 1 x\r\n", faultNumber},
		{"endless line", "PUB " + strings.Repeat("a", 2000), faultLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse([]byte(tt.text))
			parsertest.Malformed(t, err, faults[tt.want])
		})
	}
}
