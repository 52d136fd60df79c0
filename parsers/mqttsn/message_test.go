package mqttsn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

// msg is a message with its length, as short as can be.
func msg(name Name, body string) []byte {
	if n := len(body) + 2; n < 256 {
		return append([]byte{byte(n), byte(name - 1)}, body...)
	}
	b := binary.BigEndian.AppendUint16([]byte{1}, uint16(len(body)+4))
	return append(append(b, byte(name-1)), body...)
}

// capsule is a message in what a forwarder wraps around it.
func capsule(node string, message []byte) []byte {
	b := append([]byte{byte(3 + len(node)), encapsulated, 1}, node...)
	return append(b, message...)
}

func publish(flags byte, topic, id int, body string) []byte {
	return msg(PUBLISH, string([]byte{flags, byte(topic >> 8), byte(topic), byte(id >> 8), byte(id)})+body)
}

var messages = []struct {
	name  string
	bytes []byte
	want  string // Parse's message
	event string
}{
	{"ADVERTISE", msg(ADVERTISE, "\x01\x03\x84"), "ADVERTISE flags 00 topic 0 id 0 text \"\" body 5", ""},
	{"SEARCHGW", msg(SEARCHGW, "\x01"), "SEARCHGW flags 00 topic 0 id 0 text \"\" body 3", ""},
	{"GWINFO", msg(GWINFO, "\x01addr"), "GWINFO flags 00 topic 0 id 0 text \"\" body 3", ""},
	{"CONNECT", msg(CONNECT, "\x04\x01\x00\x3csensor-1"), "CONNECT flags 04 topic 0 id 0 text \"sensor-1\" body 14", ""},
	{"CONNACK", msg(CONNACK, "\x00"), "CONNACK flags 00 topic 0 id 0 text \"\" body 3", ""},
	{"WILLTOPICREQ", msg(WILLTOPICREQ, ""), "WILLTOPICREQ flags 00 topic 0 id 0 text \"\" body 2", ""},
	{"WILLTOPIC", msg(WILLTOPIC, "\x00will"), "WILLTOPIC flags 00 topic 0 id 0 text \"\" body 2", ""},
	{"WILLMSG", msg(WILLMSG, "gone"), "WILLMSG flags 00 topic 0 id 0 text \"\" body 2", ""},
	{"REGISTER", msg(REGISTER, "\x00\x00\x00\x05sensors/1"), "REGISTER flags 00 topic 0 id 5 text \"sensors/1\" body 15", "sensors/1"},
	{"REGACK", msg(REGACK, "\x00\x07\x00\x05\x00"), "REGACK flags 00 topic 7 id 5 text \"\" body 7", ""},
	{"PUBLISH", publish(0x20, 7, 6, "21.5"), "PUBLISH flags 20 topic 7 id 6 text \"\" body 7", "\x00\x07"},
	{"PUBLISH at QoS 0", publish(0, 7, 0, "21.5"), "PUBLISH flags 00 topic 7 id 0 text \"\" body 7", "\x00\x07"},
	{"PUBLISH at QoS -1", publish(0x62, 0x6162, 0, ""), "PUBLISH flags 62 topic 24930 id 0 text \"\" body 7", "ab"},
	{"long PUBLISH", publish(0x20, 7, 6, strings.Repeat("x", 300)), "PUBLISH flags 20 topic 7 id 6 text \"\" body 9", "\x00\x07"},
	{"forwarded PUBLISH", capsule("node", publish(0x20, 7, 6, "21.5")), "PUBLISH flags 20 topic 7 id 6 text \"\" body 14 forwarded", "\x00\x07"},
	{"PUBACK", msg(PUBACK, "\x00\x07\x00\x06\x00"), "PUBACK flags 00 topic 7 id 6 text \"\" body 7", ""},
	{"PUBREC", msg(PUBREC, "\x00\x06"), "PUBREC flags 00 topic 0 id 6 text \"\" body 4", ""},
	{"PUBREL", msg(PUBREL, "\x00\x06"), "PUBREL flags 00 topic 0 id 6 text \"\" body 4", ""},
	{"PUBCOMP", msg(PUBCOMP, "\x00\x06"), "PUBCOMP flags 00 topic 0 id 6 text \"\" body 4", ""},
	{"SUBSCRIBE", msg(SUBSCRIBE, "\x20\x00\x08sensors/#"), "SUBSCRIBE flags 20 topic 0 id 8 text \"sensors/#\" body 14", "sensors/#"},
	{"SUBSCRIBE to a short name", msg(SUBSCRIBE, "\x22\x00\x08ab"), "SUBSCRIBE flags 22 topic 0 id 8 text \"ab\" body 7", "ab"},
	{"SUBSCRIBE to a number", msg(SUBSCRIBE, "\x21\x00\x08\x00\x07"), "SUBSCRIBE flags 21 topic 7 id 8 text \"\" body 7", "\x00\x07"},
	{"SUBACK", msg(SUBACK, "\x20\x00\x07\x00\x08\x00"), "SUBACK flags 20 topic 7 id 8 text \"\" body 8", ""},
	{"UNSUBSCRIBE", msg(UNSUBSCRIBE, "\x00\x00\x09a"), "UNSUBSCRIBE flags 00 topic 0 id 9 text \"a\" body 6", "a"},
	{"UNSUBACK", msg(UNSUBACK, "\x00\x09"), "UNSUBACK flags 00 topic 0 id 9 text \"\" body 4", ""},
	{"PINGREQ", msg(PINGREQ, "sensor-1"), "PINGREQ flags 00 topic 0 id 0 text \"sensor-1\" body 10", ""},
	{"PINGRESP", msg(PINGRESP, ""), "PINGRESP flags 00 topic 0 id 0 text \"\" body 2", ""},
	{"DISCONNECT", msg(DISCONNECT, ""), "DISCONNECT flags 00 topic 0 id 0 text \"\" body 2", ""},
	{"DISCONNECT for a while", msg(DISCONNECT, "\x00\x3c"), "DISCONNECT flags 00 topic 0 id 0 text \"\" body 2", ""},
	{"WILLMSGRESP", msg(WILLMSGRESP, "\x00"), "WILLMSGRESP flags 00 topic 0 id 0 text \"\" body 3", ""},
}

func show(m Message) string {
	s := fmt.Sprintf("%v flags %02x topic %d id %d text %q body %d", m.Name, m.Flags, m.Topic, m.ID, m.Text, m.Body)
	if m.Forwarded {
		s += " forwarded"
	}
	return s
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
		if m, err := Parse(append(tt.bytes[:len(tt.bytes):len(tt.bytes)], 0)); !errors.Is(err, parsers.ErrMalformed) {
			t.Errorf("%s and a byte: %s, error %v", tt.name, show(m), err)
		}
	}
	for flags, want := range map[byte]int{0: 0, 0x20: 1, 0x40: 2, 0x60: -1} {
		m, err := Parse(publish(flags, 1, 1, ""))
		if err != nil || m.QoS() != want || m.Dup() || m.Retain() {
			t.Errorf("flags %02x: QoS %d, error %v", flags, m.QoS(), err)
		}
	}
	if m, err := Parse(publish(0x90, 1, 1, "")); err != nil || !m.Dup() || !m.Retain() {
		t.Errorf("flags %02x, error %v", m.Flags, err)
	}
}

func TestMalformed(t *testing.T) {
	for _, tt := range []struct {
		name, bytes string
		want        fault
	}{
		{"nothing", "", faultLength},
		{"a byte", "\x02", faultLength},
		{"length 0", "\x00\x18", faultLength},
		{"cut long length", "\x01\x00\x18", faultLength},
		{"long length 2", "\x01\x00\x02\x18", faultLength},
		{"too short", "\x03\x18", faultLength},
		{"too long", "\x02\x18\x00", faultLength},
		{"type 3", "\x02\x03", faultType},
		{"type 0x1e", "\x02\x1e", faultType},
		{"type 0xff", "\x02\xff", faultType},
		{"PINGRESP with a byte", "\x03\x17\x00", faultSize},
		{"short PUBLISH", "\x06\x0c\x00\x00\x01\x00", faultSize},
		{"DISCONNECT with a byte", "\x03\x18\x00", faultSize},
		{"REGISTER of nothing", "\x06\x0a\x00\x00\x00\x01", faultSize},
		{"SUBSCRIBE to a short number", "\x06\x12\x01\x00\x01\x01", faultSize},
		{"protocol 2", "\x07\x04\x00\x02\x00\x01c", faultProtocol},
		{"topic type", "\x07\x0c\x03\x00\x01\x00\x01", faultTopicType},
		{"text", "\x07\x0a\x00\x00\x00\x01\xff", faultText},
		{"capsule of nothing", "\x04\xfe\x01n", faultCapsule},
		{"capsule without control", "\x02\xfe\x02\x17", faultCapsule},
		{"capsule in a capsule", "\x04\xfe\x01n\x04\xfe\x01n", faultCapsule},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(tt.bytes))
			parsertest.Malformed(t, err, faults[tt.want].what)
		})
	}
}
