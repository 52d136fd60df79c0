package stomp

import (
	"fmt"
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

const rabbitID = "T_sub-1@@session-x4Hq0g@@"

// messages holds every command, the headers to be found in it, and its span.
var messages = []struct {
	name, text string
	want       string // NAME: header=value ... (body)
	span       string
}{
	{"connect", "CONNECT\naccept-version:1.2\nhost:/\n\n\x00", `CONNECT: accept-version="1.2" host="/" ("")`, `CONNECT 0+36 body 35`},
	{"stomp, CR LF", "STOMP\r\naccept-version:1.2\r\n\r\n\x00", `STOMP: accept-version="1.2" ("")`, `STOMP 0+30 body 29`},
	{"connected", "CONNECTED\nversion:1.1\nheart-beat:100,100\n\n\x00", `CONNECTED: version="1.1" heart-beat="100,100" ("")`, `CONNECTED 0+43 body 42`},
	{"send", "SEND\ndestination:/queue/a\n\nhello\x00", `SEND: destination="/queue/a" ("hello")`, `SEND 0+33 body 27 "/queue/a"`},
	{"send with a length", "SEND\ndestination:/queue/a\ncontent-length:3\n\na\x00b\x00", `SEND: destination="/queue/a" content-length="3" ("a\x00b")`, `SEND 0+48 body 44 "/queue/a"`},
	{"send, blank before the length", "SEND\ndestination: a\ncontent-length: 1\n\nx\x00", `SEND: destination=" a" content-length=" 1" ("x")`, `SEND 0+41 body 39 " a"`},
	{"send, a line end behind", "SEND\ndestination:a\n\nx\x00\n", `SEND: destination="a" ("x")`, `SEND 0+23 body 20 "a"`},
	{"send with a receipt", "SEND\ndestination:a\nreceipt:msg-017\n\n\x00", `SEND: destination="a" receipt="msg-017" ("")`, `SEND 0+37 body 36 "a" @1=msg-0 +#1=17`},
	{"subscribe", "SUBSCRIBE\nid:0\ndestination:/topic/a\nack:auto\n\n\x00", `SUBSCRIBE: id="0" destination="/topic/a" ack="auto" ("")`, `SUBSCRIBE 0+47 body 46 "/topic/a" #0=0`},
	{"unsubscribe", "UNSUBSCRIBE\nid:sub-0\n\n\x00", `UNSUBSCRIBE: id="sub-0" ("")`, `UNSUBSCRIBE 0+23 body 22 @0=sub-0`},
	{"ack 1.1", "ACK\nsubscription:7\nmessage-id:" + rabbitID + "17\n\n\x00", `ACK: subscription="7" message-id="` + rabbitID + `17" ("")`,
		`ACK 0+60 body 59 #0=7 @3=` + rabbitID + ` +#3=17`},
	{"ack 1.2", "ACK\nid:17\n\n\x00", `ACK: id="17" ("")`, `ACK 0+12 body 11 +#3=17`},
	{"nack", "NACK\nid:a-b\n\n\x00", `NACK: id="a-b" ("")`, `NACK 0+14 body 13 @3=a-b`},
	{"begin", "BEGIN\ntransaction:t1\n\n\x00", `BEGIN: transaction="t1" ("")`, `BEGIN 0+23 body 22`},
	{"commit", "COMMIT\ntransaction:t1\n\n\x00", `COMMIT: transaction="t1" ("")`, `COMMIT 0+24 body 23`},
	{"abort", "ABORT\ntransaction:t1\n\n\x00", `ABORT: transaction="t1" ("")`, `ABORT 0+23 body 22`},
	{"disconnect", "DISCONNECT\nreceipt:77\n\n\x00", `DISCONNECT: receipt="77" ("")`, `DISCONNECT 0+24 body 23 +#1=77`},
	{"message", "MESSAGE\nsubscription:0\nmessage-id:007\ndestination:/queue/a\n\nhello\x00",
		`MESSAGE: subscription="0" message-id="007" destination="/queue/a" ("hello")`, `MESSAGE 0+66 body 60 "/queue/a" #0=0`},
	{"message of RabbitMQ", "MESSAGE\nsubscription:sub-1\ndestination:/topic/a\nmessage-id:" + rabbitID + "17\nack:" + rabbitID + "17\ncontent-length:2\n\nhi\x00\n",
		`MESSAGE: subscription="sub-1" destination="/topic/a" message-id="` + rabbitID + `17" ack="` + rabbitID + `17" content-length="2" ("hi")`,
		`MESSAGE 0+141 body 137 "/topic/a" @0=sub-1 @2=` + rabbitID + ` +#2=17 @3=` + rabbitID + ` +#3=17`},
	{"message of ActiveMQ", "MESSAGE\nmessage-id:ID\\chost-1-17\\c1\nack:ID\\chost-9\ndestination:/topic/a\nsubscription:0x\n\nhi\x00",
		`MESSAGE: message-id="ID\\chost-1-17\\c1" ack="ID\\chost-9" destination="/topic/a" subscription="0x" ("hi")`,
		`MESSAGE 0+92 body 89 "/topic/a" @3=ID\chost- +#3=9 @0=0x`},
	{"message, ack in zeros", "MESSAGE\nmessage-id:1\nack:000\ndestination:a\n\n\x00", `MESSAGE: message-id="1" ack="000" destination="a" ("")`, `MESSAGE 0+45 body 44 "a" @3=00 +#3=0`},
	{"message, ack too long", "MESSAGE\nmessage-id:1\nack:" + strings.Repeat("x", 65) + "\ndestination:a\n\n\x00", `MESSAGE: message-id="1" ack="` + strings.Repeat("x", 65) + `" destination="a" ("")`, `MESSAGE 0+107 body 106 "a"`},
	{"message, empty values", "MESSAGE\nmessage-id:\nack:\nsubscription:\ndestination:\n\n\x00", `MESSAGE: message-id="" ack="" subscription="" destination="" ("")`, `MESSAGE 0+54 body 53`},
	{"message, a header twice", "MESSAGE\ndestination:a\ndestination:b\n\n\x00", `MESSAGE: destination="a" destination="b" ("")`, `MESSAGE 0+38 body 37 "a"`},
	{"message in lower case", "message\ncontent-length:5\ndestination:/queue/a\n\nhello\x00", `MESSAGE: content-length="5" destination="/queue/a" ("hello")`, `MESSAGE 0+53 body 47 "/queue/a"`},
	{"receipt", "RECEIPT\nreceipt-id:77\n\n\x00", `RECEIPT: receipt-id="77" ("")`, `RECEIPT 0+24 body 23 +#1=77`},
	{"error", "ERROR\nmessage:no\n\nThe frame:\n\x00", `ERROR: message="no" ("The frame:\n")`, `ERROR 0+30 body 18`},
	{"no headers", "SEND\n\n\x00", `SEND: ("")`, `SEND 0+7 body 6`},
}

func show(m Message, b []byte) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v:", m.Name)
	for _, f := range m.Fields {
		switch f.Kind {
		case FieldHeaderName:
			fmt.Fprintf(&s, " %s=", f.Bytes(b))
		case FieldHeaderValue:
			fmt.Fprintf(&s, "%q", f.Bytes(b))
		case FieldBody:
			fmt.Fprintf(&s, " (%q)", f.Bytes(b))
		}
	}
	return s.String()
}

func TestParse(t *testing.T) {
	for _, tt := range messages {
		t.Run(tt.name, func(t *testing.T) {
			if m := parsertest.Parses(t, Parse, show, tt.text, tt.want); m.Length != len(tt.text) {
				t.Errorf("Length %d, want %d", m.Length, len(tt.text))
			}
			parsertest.CutShort(t, Parse, tt.text[:strings.LastIndexByte(tt.text, 0)+1])
			// The spans of two in a row are those of one.
			suite.Shows(t, newScanner(), tt.span+"\n"+tt.span+"\n", tt.text+tt.text)
		})
	}
}

func TestHeartBeat(t *testing.T) {
	m, n, err := Parse([]byte("\n\r\nSEND"))
	if err != nil || n != 3 || m.Name != HeartBeat || m.Length != 3 || m.Body().Len != 0 {
		t.Errorf("message %+v, n %d, error %v", m, n, err)
	}
}

func TestHeader(t *testing.T) {
	b := []byte("MESSAGE\nid:1\nx:\nid:2\n\nbody\x00")
	m, _, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if f, found := m.Header(b, "id"); !found || string(f.Bytes(b)) != "1" {
		t.Errorf("header %v, found %v", f, found)
	}
	if _, found := m.Header(b, "y"); found {
		t.Error("a header that is not there")
	}
	if f := m.Body(); string(f.Bytes(b)) != "body" {
		t.Errorf("body %v", f)
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       fault
	}{
		{"command", "PUT\n\n\x00", faultCommand},
		{"command that goes on", "SENDER\n\n\x00", faultCommand},
		{"long command", strings.Repeat("A", 20), faultCommand},
		{"HTTP", "CONNECT a:80 HTTP/1.1\r\n", faultCommand},
		{"NATS", "CONNECT {}\r\n", faultCommand},
		{"mixed case", "Send\n\n\x00", faultCommand},
		{"lower case that is none", "sender\n\n\x00", faultCommand},
		{"binary", "\x00\x01", faultCommand},
		{"header without a colon", "SEND\nabc\n\n\x00", faultHeader},
		{"header without a name", "SEND\n:abc\n\n\x00", faultHeader},
		{"control character", "SEND\na\x01b:c\n\n\x00", faultHeader},
		{"control character, cut", "SEND\na\x01", faultHeader},
		{"NUL in a header", "SEND\na:\x00\n\n\x00", faultHeader},
		{"NUL in a header, cut", "SEND\na:\x00", faultHeader},
		{"length", "SEND\ncontent-length:x\n\n\x00", faultLength},
		{"no length", "SEND\ncontent-length:\n\n\x00", faultLength},
		{"huge length", "SEND\ncontent-length:268435457\n\n\x00", faultLength},
		{"body too long", "SEND\ncontent-length:1\n\nxx\x00", faultEnd},
		{"endless headers", "SEND\n" + strings.Repeat("a:b\n", 2000), faultLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse([]byte(tt.text))
			parsertest.Malformed(t, err, faults[tt.want])
		})
	}
}
