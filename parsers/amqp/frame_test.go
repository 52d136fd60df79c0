package amqp

import (
	"fmt"
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

// frames holds frames of every class and type, and the fields to be found in
// them.
var frames = []struct {
	name  string
	bytes []byte
	want  string // NAME channel: field=value ...
}{
	{"preamble", []byte(preamble), `protocol-header 0:`},
	{"heartbeat", heartbeat(), `heartbeat 0:`},
	{"start", method(0, ConnectionStart, []byte{0, 9}, long(""), long("PLAIN"), long("en_US")),
		`connection.start 0: version-major="\x00" version-minor="\t" server-properties="" mechanisms="PLAIN" locales="en_US"`},
	{"start-ok", method(0, ConnectionStartOK, long("\x01aI\x00\x00\x00\x01"), str("PLAIN"), long("\x00u\x00p"), str("en_US")),
		`connection.start-ok 0: client-properties="\x01aI\x00\x00\x00\x01" mechanism="PLAIN" response="\x00u\x00p" locale="en_US"`},
	{"tune", method(0, ConnectionTune, u16(2047), u32(131072), u16(60)), `connection.tune 0: channel-max="\a\xff" frame-max="\x00\x02\x00\x00" heartbeat="\x00<"`},
	{"open", method(0, ConnectionOpen, str("/"), str(""), []byte{0}), `connection.open 0: virtual-host="/" capabilities="" insist="\x00"`},
	{"close", method(0, ConnectionClose, u16(320), str("CONNECTION_FORCED"), u16(0), u16(0)),
		`connection.close 0: reply-code="\x01@" reply-text="CONNECTION_FORCED" class-id="\x00\x00" method-id="\x00\x00"`},
	{"blocked", method(0, ConnectionBlocked, str("memory")), `connection.blocked 0: reason="memory"`},
	{"channel.open", method(1, ChannelOpen, str("")), `channel.open 1: out-of-band=""`},
	{"channel.open-ok", method(1, ChannelOpenOK, long("")), `channel.open-ok 1: channel-id=""`},
	{"channel.close", method(1, ChannelClose, u16(404), str("NOT_FOUND"), u16(60), u16(40)),
		`channel.close 1: reply-code="\x01\x94" reply-text="NOT_FOUND" class-id="\x00<" method-id="\x00("`},
	{"exchange.declare", method(1, ExchangeDeclare, u16(0), str("x"), str("topic"), []byte{2}, long("")),
		`exchange.declare 1: ticket="\x00\x00" exchange="x" type="topic" bits="\x02" arguments=""`},
	{"queue.declare-ok", method(1, QueueDeclareOK, str("q"), u32(3), u32(1)),
		`queue.declare-ok 1: queue="q" message-count="\x00\x00\x00\x03" consumer-count="\x00\x00\x00\x01"`},
	{"queue.bind", method(1, QueueBind, u16(0), str("q"), str("x"), str("#"), []byte{0}, long("")),
		`queue.bind 1: ticket="\x00\x00" queue="q" exchange="x" routing-key="#" bits="\x00" arguments=""`},
	{"qos", method(1, BasicQos, u32(0), u16(10), []byte{0}), `basic.qos 1: prefetch-size="\x00\x00\x00\x00" prefetch-count="\x00\n" global="\x00"`},
	{"consume", method(1, BasicConsume, u16(0), str("q"), str("tag"), []byte{0}, long("")),
		`basic.consume 1: ticket="\x00\x00" queue="q" consumer-tag="tag" bits="\x00" arguments=""`},
	{"consume-ok", method(1, BasicConsumeOK, str("tag")), `basic.consume-ok 1: consumer-tag="tag"`},
	{"publish", method(1, BasicPublish, u16(0), str("x"), str("a.b"), []byte{1}), `basic.publish 1: ticket="\x00\x00" exchange="x" routing-key="a.b" bits="\x01"`},
	{"return", method(1, BasicReturn, u16(312), str("NO_ROUTE"), str("x"), str("a")),
		`basic.return 1: reply-code="\x018" reply-text="NO_ROUTE" exchange="x" routing-key="a"`},
	{"deliver", method(3, BasicDeliver, str("tag"), u64(7), []byte{0}, str("x"), str("a")),
		`basic.deliver 3: consumer-tag="tag" delivery-tag="\x00\x00\x00\x00\x00\x00\x00\a" redelivered="\x00" exchange="x" routing-key="a"`},
	{"get-ok", method(1, BasicGetOK, u64(7), []byte{1}, str(""), str("q"), u32(9)),
		`basic.get-ok 1: delivery-tag="\x00\x00\x00\x00\x00\x00\x00\a" redelivered="\x01" exchange="" routing-key="q" message-count="\x00\x00\x00\t"`},
	{"ack", ack(1, 7), `basic.ack 1: delivery-tag="\x00\x00\x00\x00\x00\x00\x00\a" multiple="\x00"`},
	{"nack", method(1, BasicNack, u64(7), []byte{3}), `basic.nack 1: delivery-tag="\x00\x00\x00\x00\x00\x00\x00\a" bits="\x03"`},
	{"reject", method(1, BasicReject, u64(7), []byte{1}), `basic.reject 1: delivery-tag="\x00\x00\x00\x00\x00\x00\x00\a" requeue="\x01"`},
	{"confirm.select", method(1, ConfirmSelect, []byte{0}), `confirm.select 1: no-wait="\x00"`},
	{"tx.commit", method(1, TxCommit), `tx.commit 1:`},
	{"not known", frame(typeMethod, 1, u16(200), u16(200), []byte("xyz")), `method 1: arguments="xyz"`},
	{"content header", header(1, 5), `content-header 1: body-size="\x00\x00\x00\x00\x00\x00\x00\x05" property-flags="\x90\x00" content-type="text/plain" delivery-mode="\x02"`},
	{"all properties", frame(typeHeader, 1, u16(60), u16(0), u64(5), u16(0xfffc), str("t"), str("e"), long("\x01aI\x00\x00\x00\x01"), []byte{1, 2},
		str("c"), str("r"), str("x"), str("m"), u64(1), str("y"), str("u"), str("a"), str("l")),
		`content-header 1: body-size="\x00\x00\x00\x00\x00\x00\x00\x05" property-flags="\xff\xfc" content-type="t" content-encoding="e" headers="\x01aI\x00\x00\x00\x01" delivery-mode="\x01" priority="\x02" correlation-id="c" reply-to="r" expiration="x" message-id="m" timestamp="\x00\x00\x00\x00\x00\x00\x00\x01" type="y" user-id="u" app-id="a" cluster-id="l"`},
	{"content body", body(1, "hello"), `content-body 1: body="hello"`},
}

func show(f Frame, b []byte) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v %d:", f.Name, f.Channel)
	for _, field := range f.Fields {
		fmt.Fprintf(&s, " %s=%q", field.Name, field.Bytes(b))
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
	noEnd := ack(1, 1)
	noEnd[len(noEnd)-1] = 0
	for _, tt := range []struct {
		name  string
		bytes []byte
		want  fault
	}{
		{"preamble of 1.0", []byte("AMQP\x00\x01\x00\x00"), faultPreamble},
		{"preamble of 0-9", []byte("AMQP\x01\x01\x00\x09"), faultPreamble},
		{"type 4", frame(4, 1, u32(0)), faultType},
		{"a gigabyte", []byte{1, 0, 1, 0x40, 0, 0, 0}, faultSize},
		{"heartbeat on a channel", frame(typeHeartbeat, 1), faultChannel},
		{"heartbeat with bytes", frame(typeHeartbeat, 0, []byte{1}), faultTooLong},
		{"body on channel 0", body(0, "x"), faultChannel},
		{"header on channel 0", header(0, 1), faultChannel},
		{"connection.tune on a channel", method(1, ConnectionTune, u16(0), u32(0), u16(0)), faultChannel},
		{"basic.publish on channel 0", method(0, BasicPublish, u16(0), str("x"), str("a"), []byte{1}), faultChannel},
		{"method of three bytes", frame(typeMethod, 1, []byte{0, 60, 0}), faultTooShort},
		{"basic.ack of four bytes", method(1, BasicAck, u32(1)), faultTooShort},
		{"tx.commit with arguments", method(1, TxCommit, u32(1)), faultTooLong},
		{"exchange past the end", method(1, BasicPublish, u16(0), []byte{9, 'x'}), faultString},
		{"no routing key", method(1, BasicPublish, u16(0), str("x")), faultString},
		{"table past the end", method(1, ExchangeDeclare, u16(0), str("x"), str("topic"), []byte{2}, u32(9)), faultString},
		{"small header", frame(typeHeader, 1, u16(60), u16(0), u64(5)), faultTooShort},
		{"header of another class", frame(typeHeader, 1, u16(50), u16(0), u64(5), u16(0)), faultClass},
		{"weight", frame(typeHeader, 1, u16(60), u16(1), u64(5), u16(0)), faultWeight},
		{"content of exabytes", frame(typeHeader, 1, u16(60), u16(0), u64(-1), u16(0)), faultSize},
		{"more property flags", frame(typeHeader, 1, u16(60), u16(0), u64(5), u16(1), u16(0)), faultFlags},
		{"property past the end", frame(typeHeader, 1, u16(60), u16(0), u64(5), u16(0x8000), []byte{3, 'x'}), faultString},
		{"no property", frame(typeHeader, 1, u16(60), u16(0), u64(5), u16(0x1000)), faultTooShort},
		{"no end", noEnd, faultEnd},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse(tt.bytes)
			parsertest.Malformed(t, err, faults[tt.want].what)
		})
	}
}

func TestNames(t *testing.T) { parsertest.Names(t, ProtocolHeader, numNames) }
