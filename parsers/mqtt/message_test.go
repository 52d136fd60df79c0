package mqtt

import (
	"fmt"
	"strings"
	"testing"

	"sheaf/parsers/parsertest"
)

// messages holds every packet type in every version that has it, and the fields
// to be found in it.
var messages = []struct {
	name    string
	version uint8 // given to Parse
	bytes   []byte
	want    string // NAME version: kind=value ...
}{
	{"connect 3.1", 0, connect(3), `CONNECT 3: name="MQIsdp" level="\x03" flags="\x02" keepalive="\x00<" client="sensor-1"`},
	{"connect 3.1.1", 0, connect(4), `CONNECT 4: name="MQTT" level="\x04" flags="\x02" keepalive="\x00<" client="sensor-1"`},
	{"connect 5", 0, connect(5), `CONNECT 5: name="MQTT" level="\x05" flags="\x02" keepalive="\x00<" client="sensor-1"`},
	{"connect 3.1 without the user it announces", 0,
		msg(0x10, str("MQIsdp"), []byte{3, 0xc2}, u16(60), str("c")),
		`CONNECT 3: name="MQIsdp" level="\x03" flags="\xc2" keepalive="\x00<" client="c"`},
	{"connect 3.1.1 of a bridge, will, user, password", 0,
		msg(0x10, str("MQTT"), []byte{0x84, 0xee}, u16(1), str(""), str("w/t"), str("gone"), str("u"), str("p")),
		`CONNECT 4: name="MQTT" level="\x84" flags="\xee" keepalive="\x00\x01" client="" willTopic="w/t" willPayload="gone" user="u" password="p"`},
	{"connect 5 with all properties of the will", 0,
		msg(0x10, str("MQTT"), []byte{5, 0x66}, u16(1),
			props([]byte{0x11, 0, 0, 0, 9}, []byte{0x21, 0, 5}, []byte{0x19, 1}, userProperty("a", "b")), str("c"),
			props([]byte{0x18, 0, 0, 0, 1}, cat([]byte{0x03}, str("text"))), str("w"), str("x"), str("p")),
		`CONNECT 5: name="MQTT" level="\x05" flags="f" keepalive="\x00\x01" p11="\x00\x00\x00\t" p21="\x00\x05" p19="\x01" p26="\x00\x01a\x00\x01b" client="c" w18="\x00\x00\x00\x01" w03="\x00\x04text" willTopic="w" willPayload="x" password="p"`},

	{"connack 3.1.1", 0, msg(0x20, []byte{1, 0}), `CONNACK 4: ackFlags="\x01" reason="\x00"`},
	{"connack 3.1", 3, msg(0x20, []byte{0, 5}), `CONNACK 4: ackFlags="\x00" reason="\x05"`},
	{"connack 5", 0, msg(0x20, []byte{0, 0}, props([]byte{0x22, 0, 10}, cat([]byte{0x12}, str("id")))),
		`CONNACK 5: ackFlags="\x00" reason="\x00" p22="\x00\n" p12="\x00\x02id"`},

	{"publish QoS 0", 0, publish(0, "a/b", 0, "21.5"), `PUBLISH 4: topic="a/b" payload="21.5"`},
	{"publish QoS 1, 3.1", 3, publish(1, "a/b", 7, "21.5"), `PUBLISH 3: topic="a/b" id="\x00\a" payload="21.5"`},
	{"publish QoS 2, retained, again", 4, msg(0x3d, str("ä"), u16(513), []byte("x")), `PUBLISH 4: topic="ä" id="\x02\x01" payload="x"`},
	{"publish 5", 5, publish5(1, "t", 1, props(topicAlias(3), []byte{0x0b, 0x81, 1}, []byte{0x0b, 2}), "p"),
		`PUBLISH 5: topic="t" id="\x00\x01" p23="\x00\x03" p0b="\x81\x01" p0b="\x02" payload="p"`},
	{"publish 5 by alias, version unknown", 0, publish5(0, "", 0, props(topicAlias(3)), "p"), `PUBLISH 5: topic="" p23="\x00\x03" payload="p"`},
	{"publish without a payload", 4, publish(0, "clear", 0, ""), `PUBLISH 4: topic="clear" payload=""`},

	{"puback", 4, msg(0x40, u16(9)), `PUBACK 4: id="\x00\t"`},
	{"puback 5, reason", 0, msg(0x40, u16(9), []byte{0x10}), `PUBACK 5: id="\x00\t" reason="\x10"`},
	{"puback 5, properties", 5, msg(0x40, u16(9), []byte{0x87}, props(cat([]byte{0x1f}, str("no")))), `PUBACK 5: id="\x00\t" reason="\x87" p1f="\x00\x02no"`},
	{"pubrec", 3, msg(0x50, u16(9)), `PUBREC 3: id="\x00\t"`},
	{"pubrec 5", 5, msg(0x50, u16(9), []byte{0}, props()), `PUBREC 5: id="\x00\t" reason="\x00"`},
	{"pubrel", 4, msg(0x62, u16(9)), `PUBREL 4: id="\x00\t"`},
	{"pubrel 3.1, again", 3, msg(0x6a, u16(9)), `PUBREL 3: id="\x00\t"`},
	{"pubrel 5", 5, msg(0x62, u16(9), []byte{0x92}), `PUBREL 5: id="\x00\t" reason="\x92"`},
	{"pubcomp", 4, msg(0x70, u16(9)), `PUBCOMP 4: id="\x00\t"`},
	{"pubcomp 5", 5, msg(0x70, u16(9), []byte{0x92}), `PUBCOMP 5: id="\x00\t" reason="\x92"`},

	{"subscribe", 4, msg(0x82, u16(1), str("a/#"), []byte{1}, str("+/b"), []byte{0}), `SUBSCRIBE 4: id="\x00\x01" filter="a/#" options="\x01" filter="+/b" options="\x00"`},
	{"subscribe 5", 5, msg(0x82, u16(1), props([]byte{0x0b, 5}), str("a/#"), []byte{0x2d}), `SUBSCRIBE 5: id="\x00\x01" p0b="\x05" filter="a/#" options="-"`},
	{"subscribe 5, version unknown", 0, msg(0x82, u16(1), props(), str("a/#"), []byte{0x2d}), `SUBSCRIBE 5: id="\x00\x01" filter="a/#" options="-"`},
	{"suback", 3, msg(0x90, u16(1), []byte{2}), `SUBACK 3: id="\x00\x01" reason="\x02"`},
	{"suback 3.1.1, refused", 4, msg(0x90, u16(1), []byte{1, 0x80}), `SUBACK 4: id="\x00\x01" reason="\x01" reason="\x80"`},
	{"suback 5", 5, msg(0x90, u16(1), props(), []byte{0x9e}), `SUBACK 5: id="\x00\x01" reason="\x9e"`},
	{"unsubscribe", 4, msg(0xa2, u16(2), str("a"), str("b")), `UNSUBSCRIBE 4: id="\x00\x02" filter="a" filter="b"`},
	{"unsubscribe 5", 5, msg(0xa2, u16(2), props(userProperty("k", "v")), str("a")), `UNSUBSCRIBE 5: id="\x00\x02" p26="\x00\x01k\x00\x01v" filter="a"`},
	{"unsuback", 4, msg(0xb0, u16(2)), `UNSUBACK 4: id="\x00\x02"`},
	{"unsuback 5", 0, msg(0xb0, u16(2), props(), []byte{0, 0x11}), `UNSUBACK 5: id="\x00\x02" reason="\x00" reason="\x11"`},

	{"pingreq", 4, msg(0xc0), `PINGREQ 4:`},
	{"pingresp", 5, msg(0xd0), `PINGRESP 5:`},
	{"disconnect", 4, msg(0xe0), `DISCONNECT 4:`},
	{"disconnect 5", 0, msg(0xe0, []byte{0x8e}, props([]byte{0x11, 0, 0, 0, 0})), `DISCONNECT 5: reason="\x8e" p11="\x00\x00\x00\x00"`},
	{"auth", 0, msg(0xf0), `AUTH 5:`},
	{"auth with data", 5, msg(0xf0, []byte{0x18}, props(cat([]byte{0x15}, str("GS2")), cat([]byte{0x16}, str("\x00\x01")))), `AUTH 5: reason="\x18" p15="\x00\x03GS2" p16="\x00\x02\x00\x01"`},
}

var fieldNames = map[FieldKind]string{
	FieldProtocolName: "name", FieldLevel: "level", FieldConnectFlags: "flags", FieldKeepAlive: "keepalive",
	FieldClientID: "client", FieldWillTopic: "willTopic", FieldWillPayload: "willPayload", FieldUser: "user",
	FieldPassword: "password", FieldAckFlags: "ackFlags", FieldReason: "reason", FieldPacketID: "id",
	FieldTopic: "topic", FieldFilter: "filter", FieldOptions: "options", FieldPayload: "payload",
}

func show(m Message, b []byte) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%v %d:", m.Name, m.Version)
	for _, f := range m.Fields {
		name := fieldNames[f.Kind]
		switch f.Kind {
		case FieldProperty:
			name = fmt.Sprintf("p%02x", f.Property)
		case FieldWillProperty:
			name = fmt.Sprintf("w%02x", f.Property)
		}
		fmt.Fprintf(&s, " %s=%q", name, f.Bytes(b))
	}
	return s.String()
}

func TestParse(t *testing.T) {
	for _, tt := range messages {
		t.Run(tt.name, func(t *testing.T) {
			parse := func(b []byte) (Message, int, error) { return Parse(b, tt.version) }
			if m := parsertest.Parses(t, parse, show, tt.bytes, tt.want); m.Length != len(tt.bytes) {
				t.Errorf("Length %d, want %d", m.Length, len(tt.bytes))
			}
			parsertest.CutShort(t, parse, tt.bytes)
		})
	}
}

func TestParsePublish(t *testing.T) {
	b := msg(0x3d, str("t"), u16(3), []byte("xy"))
	m, _, err := Parse(b, 4)
	if err != nil {
		t.Fatal(err)
	}
	if m.QoS() != 2 || !m.Dup() || !m.Retain() {
		t.Errorf("QoS %d, Dup %v, Retain %v", m.QoS(), m.Dup(), m.Retain())
	}
	if f, found := m.Field(FieldPayload); !found || string(f.Bytes(b)) != "xy" {
		t.Errorf("payload %v", f)
	}
	if _, found := m.Field(FieldUser); found {
		t.Error("a PUBLISH with a user")
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		name    string
		version uint8
		bytes   []byte
		want    fault
	}{
		{"reserved type", 0, msg(0x00), faultFirstByte},
		{"QoS 3", 4, msg(0x36, str("t"), u16(1)), faultFirstByte},
		{"flags of a SUBSCRIBE", 4, msg(0x80, u16(1), str("a"), []byte{0}), faultFirstByte},
		{"length of five bytes", 4, []byte{0x30, 0x80, 0x80, 0x80, 0x80, 1}, faultLength},
		{"PINGREQ with bytes", 4, msg(0xc0, []byte{0}), faultTooLong},
		{"PUBLISH of one byte", 4, msg(0x30, []byte{0}), faultTooShort},
		{"topic past the end", 4, msg(0x30, u16(5), []byte("abc")), faultTopicLength},
		{"identifier past the end", 4, msg(0x32, str("abc"), []byte{1}), faultTopicLength},
		{"NUL in a topic", 4, publish(0, "a\x00", 0, ""), faultTopicText},
		{"topic not UTF-8", 4, publish(0, "a\xff", 0, ""), faultTopicText},
		{"surrogate in a topic", 4, publish(0, "a\xed\xa0\x80", 0, ""), faultTopicText},
		{"wildcard in a topic", 4, publish(0, "a/#", 0, ""), faultTopicWildcard},
		{"identifier 0", 4, publish(1, "a", 0, ""), faultZeroID},
		{"PUBACK of identifier 0", 4, msg(0x40, u16(0)), faultZeroID},
		{"properties past the end", 5, msg(0x30, str("a"), []byte{9}), faultPropertyLength},
		{"no properties", 5, msg(0x30, str("a")), faultPropertyLength},
		{"property past the end", 5, publish5(0, "a", 0, props([]byte{0x02, 0}), ""), faultPropertyLength},
		{"unknown property", 5, publish5(0, "a", 0, props([]byte{0x7f, 0}), ""), faultPropertyID},
		{"property of another message", 5, publish5(0, "a", 0, props([]byte{0x11, 0, 0, 0, 0}), ""), faultPropertyPlace},
		{"property twice", 5, publish5(0, "a", 0, props(topicAlias(1), topicAlias(1)), ""), faultPropertyTwice},
		{"protocol name", 0, msg(0x10, str("MQTX"), []byte{4, 2}, u16(1), str("c")), faultProtocolName},
		{"protocol level", 0, msg(0x10, str("MQTT"), []byte{6, 2}, u16(1), str("c")), faultLevel},
		{"reserved connect flag", 0, msg(0x10, str("MQTT"), []byte{4, 3}, u16(1), str("c")), faultConnectFlags},
		{"will QoS without a will", 0, msg(0x10, str("MQTT"), []byte{4, 0x0a}, u16(1), str("c")), faultConnectFlags},
		{"password without a user", 0, msg(0x10, str("MQTT"), []byte{4, 0x42}, u16(1), str("c"), str("p")), faultConnectFlags},
		{"bytes after a CONNECT", 0, msg(0x10, str("MQTT"), []byte{4, 2}, u16(1), str("c"), str("x")), faultTooLong},
		{"acknowledge flags", 0, msg(0x20, []byte{2, 0}), faultAckFlags},
		{"SUBSCRIBE to nothing", 4, msg(0x82, u16(1), str(""), []byte{0}, []byte{}), faultTooShort},
		{"SUBSCRIBE, QoS 3", 4, msg(0x82, u16(1), str("abc"), []byte{3}), faultOptions},
		{"SUBACK code", 4, msg(0x90, u16(1), []byte{3}), faultReason},
		{"PUBREL reason", 5, msg(0x62, u16(1), []byte{0x10}), faultReason},
		{"PUBACK with a reason", 4, msg(0x40, u16(1), []byte{0}), faultTooLong},
		{"AUTH", 4, msg(0xf0), faultVersion},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Parse(tt.bytes, tt.version)
			parsertest.Malformed(t, err, faults[tt.want].what)
		})
	}
}

func TestNonMinimalLength(t *testing.T) {
	// 3.1.1 does not forbid a length in more bytes than it needs.
	b := []byte{0x40, 0x82, 0x00, 0, 1}
	if _, n, err := Parse(b, 4); n != 5 || err != nil {
		t.Errorf("n %d, error %v", n, err)
	}
}
