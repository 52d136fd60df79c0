package mqttsn

import "encoding/binary"

// A Message is one MQTT-SN message taken apart.
type Message struct {
	Name      Name
	Forwarded bool   // by a forwarder, in a capsule
	Flags     uint8  // where there are any
	Topic     uint16 // topic ID, where there is one
	ID        uint16 // message ID, where there is one
	Text      string // client ID or topic name
	Body      int    // offset of the data; the datagram's length when there is none
}

// QoS returns the quality of service of a PUBLISH, -1 to 2.
func (m *Message) QoS() int {
	if q := m.Flags >> 5 & 3; q != 3 {
		return int(q)
	}
	return -1
}

// Dup says whether a PUBLISH or SUBSCRIBE is marked as sent before.
func (m *Message) Dup() bool { return m.Flags&flagDup != 0 }

// Retain says whether a PUBLISH is marked as retained.
func (m *Message) Retain() bool { return m.Flags&flagRetain != 0 }

// Parse takes apart a message, which is the whole of a datagram and ends where b
// does. The error is a *parsers.Error.
func Parse(b []byte) (Message, error) {
	var f front
	if bad := parseFront(b, &f); bad != ok {
		return Message{}, bad.err(f.body)
	}
	m := Message{Name: f.name, Forwarded: f.capsule > 0, Flags: f.flags, Text: string(f.text.of(b)), Body: f.body}
	if f.topic > 0 {
		m.Topic = binary.BigEndian.Uint16(b[f.topic:])
	}
	if f.id > 0 {
		m.ID = binary.BigEndian.Uint16(b[f.id:])
	}
	return m, nil
}
