package amqp10

import (
	"fmt"
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

// frames holds every kind of frame, and the fields to be found in it.
var frames = []struct {
	name  string
	bytes []byte
	want  string // NAME channel: field=value ...
}{
	{"preamble", head(protocolAMQP), `protocol-header 0:`},
	{"preamble, SASL", head(protocolSASL), `protocol-header 0:`},
	{"preamble, TLS", head(protocolTLS), `protocol-header 0:`},
	{"empty", empty(), `empty 0:`},
	{"mechanisms", sasl(SASLMechanisms, sym("ANONYMOUS")), `sasl-mechanisms 0: sasl-server-mechanisms="ANONYMOUS"`},
	{"init", sasl(SASLInit, sym("PLAIN"), bin("\x00u\x00p")), `sasl-init 0: mechanism="PLAIN" initial-response="\x00u\x00p"`},
	{"challenge", sasl(SASLChallenge, bin("c")), `sasl-challenge 0: challenge="c"`},
	{"response", sasl(SASLResponse, bin("r")), `sasl-response 0: response="r"`},
	{"outcome", sasl(SASLOutcome, []byte{0x50, 0}), `sasl-outcome 0: code="\x00"`},
	{"open", perform(0, Open, str("id"), null, num(65536)), `open 0: container-id="id" max-frame-size="\x00\x01\x00\x00"`},
	{"begin", perform(1, Begin, null, num(0), num(100), num(200)), `begin 1: next-outgoing-id="" incoming-window="d" outgoing-window="\xc8"`},
	{"attach, sender", attach(1, 2, no, "", "queue"), `attach 1: name="link" handle="\x02" role="" source="" target="\xa1\x05queueC" address=queue`},
	{"attach, sender of a broker", attach(1, 2, no, "queue", ""), `attach 1: name="link" handle="\x02" role="" source="\xa1\x05queueC" target="" address=queue`},
	{"attach, receiver", attach(1, 2, yes, "queue", "mine"), `attach 1: name="link" handle="\x02" role="" source="\xa1\x05queueC" target="\xa1\x04mineC" address=queue`},
	{"attach, role in a byte", perform(1, Attach, str("l"), num(0), []byte{codeBool, 1}, null, null, described(0x28, list(str("q"))), null),
		`attach 1: name="l" handle="" role="\x01" source="\xa1\x01q" address=q`},
	{"flow", perform(1, Flow, num(1), num(100), num(0), num(100), num(2), num(5), num(10)),
		`flow 1: next-incoming-id="\x01" incoming-window="d" next-outgoing-id="" outgoing-window="d" handle="\x02" delivery-count="\x05" link-credit="\n"`},
	{"flow of a session", perform(1, Flow, num(1), num(100), num(0), num(100)),
		`flow 1: next-incoming-id="\x01" incoming-window="d" next-outgoing-id="" outgoing-window="d"`},
	{"transfer", transfer(1, 2, 300, "tag", "hello"),
		`transfer 1: handle="\x02" delivery-id="\x00\x00\x01," delivery-tag="tag" message-format="" settled="" more="" payload="\x00Su\xb0\x00\x00\x00\x05hello"`},
	{"transfer that goes on", frame(typeAMQP, 1, described(0x14, list(num(2))), data("more")), `transfer 1: handle="\x02" payload="\x00Su\xb0\x00\x00\x00\x04more"`},
	{"transfer in a long list", frame(typeAMQP, 1, []byte{0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x14, 0xd0}, u32(4+9), u32(3), num(2), num(4), bin("abc")),
		`transfer 1: handle="\x02" delivery-id="\x04" delivery-tag="abc"`},
	{"disposition", disposition(1, 5, 7), `disposition 1: role="" first="\x05" last="\a" settled="" state=""`},
	{"disposition of one", disposition(1, 5, -1), `disposition 1: role="" first="\x05" settled="" state=""`},
	{"detach", perform(1, Detach, num(2), yes), `detach 1: handle="\x02" closed=""`},
	{"end", perform(1, End), `end 1:`},
	{"close", perform(0, Close, described(0x1d, list(sym("amqp:not-found")))), `close 0: error="\xa3\x0eamqp:not-found"`},
	{"not known", frame(typeAMQP, 1, described(0x19, list(num(1)))), `performative 1:`},
}

func show(f Frame, b []byte) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v %d:", f.Name, f.Channel)
	for _, field := range f.Fields {
		fmt.Fprintf(&s, " %s=%q", field.Name, field.Bytes(b))
	}
	if f.Address.Len > 0 {
		fmt.Fprintf(&s, " address=%s", f.Address.Bytes(b))
	}
	return s.String()
}

func TestParse(t *testing.T) {
	for _, tt := range frames {
		t.Run(tt.name, func(t *testing.T) {
			if f := parsertest.Parses(t, Parse, show, tt.bytes, tt.want); f.Length != len(tt.bytes) {
				t.Errorf("Length %d, want %d", f.Length, len(tt.bytes))
			}
			parsertest.CutShort(t, Parse, tt.bytes)
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  fault
	}{
		{"preamble of 0-9-1", []byte("AMQP\x00\x00\x09\x01"), faultPreamble},
		{"preamble of 0-10", []byte("AMQP\x01\x01\x00\x0a"), faultPreamble},
		{"a gigabyte", []byte{0x40, 0, 0, 0, 2, 0, 0, 0}, faultSize},
		{"seven bytes", []byte{0, 0, 0, 7, 2, 0, 0, 0}, faultSize},
		{"offset in the header", []byte{0, 0, 0, 9, 1, 0, 0, 0, 0}, faultOffset},
		{"offset behind the frame", []byte{0, 0, 0, 9, 3, 0, 0, 0, 0}, faultOffset},
		{"type 2", frame(2, 0, described(0x10, list(str("id")))), faultType},
		{"empty SASL", frame(typeSASL, 0), faultEmpty},
		{"no descriptor", frame(typeAMQP, 0, list()), faultDescriptor},
		{"descriptor is a string", frame(typeAMQP, 0, []byte{0}, str("x"), list()), faultDescriptor},
		{"descriptor is described", frame(typeAMQP, 0, []byte{0, 0}, list()), faultDescriptor},
		{"nothing described", frame(typeAMQP, 0, []byte{0, 0x53, 0x10}), faultTooShort},
		{"a map", frame(typeAMQP, 0, described(0x10, []byte{0xc1, 1, 0})), faultList},
		{"list past the end", frame(typeAMQP, 0, described(0x10, []byte{0xc0, 9, 0})), faultTooLong},
		{"list without a count", frame(typeAMQP, 0, described(0x10, []byte{0xc0, 0})), faultTooShort},
		{"bytes after an open", frame(typeAMQP, 0, described(0x10, list(str("id"))), data("x")), faultTooLong},
		{"constructor", perform(1, Transfer, []byte{0x30, 0}), faultConstructor},
		{"too many fields", perform(1, Detach, num(0), yes, null, null), faultFields},
		{"transfer without a handle", perform(1, Transfer), faultFields},
		{"attach without a handle", perform(1, Attach, str("l")), faultFields},
		{"attach without a name", perform(1, Attach, null, num(0), no), faultField},
		{"disposition without a first", perform(1, Disposition, yes), faultFields},
		{"handle is a string", perform(1, Transfer, str("x")), faultField},
		{"tag is a string", perform(1, Transfer, num(0), num(0), str("x")), faultField},
		{"more elements than the list has bytes for", frame(typeAMQP, 1, described(0x14, []byte{0xc0, 2, 3, 0x43})), faultTooShort},
		{"fewer", frame(typeAMQP, 1, described(0x14, []byte{0xc0, 3, 1, 0x43, 0x43})), faultTooLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse(tt.bytes)
			parsertest.Malformed(t, err, faults[tt.want].what)
		})
	}
}

func TestNames(t *testing.T) { parsertest.Names(t, ProtocolHeader, numNames) }

// TestQuick holds that the short way sees what the long one does.
func TestQuick(t *testing.T) {
	found := 0
	for _, tt := range frames {
		var f, slow front
		if bad := parseFront(tt.bytes, &f); bad != ok {
			t.Fatal(bad)
		}
		if f.fields.code == 0 {
			continue
		}
		slow = front{name: f.name, preamble: f.preamble, sasl: f.sasl, channel: f.channel, size: f.size, body: f.body, fields: f.fields}
		fast := slow
		if bad := slow.lookSlowly(tt.bytes); bad != ok {
			t.Fatal(bad)
		}
		if fast.quick(tt.bytes[:f.fields.end]) {
			found++
			if fast != slow {
				t.Errorf("%s: %+v, want %+v", tt.name, fast, slow)
			}
		}
		if f != slow {
			t.Errorf("%s: %+v, want %+v", tt.name, f, slow)
		}
	}
	if found < 5 {
		t.Errorf("%d frames the short way", found)
	}
}
