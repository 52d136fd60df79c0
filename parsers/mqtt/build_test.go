package mqtt

import (
	"encoding/binary"

	"sheaf/parsers/parsertest"
)

// The tests build messages from these parts.

var cat = parsertest.Cat[[]byte]

func u16(n int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(n)) }

func str(s string) []byte { return append(u16(len(s)), s...) }

// varint is the variable byte integer of 1.5.5.
func varint(n int) (b []byte) {
	for {
		c := byte(n & 0x7f)
		if n >>= 7; n > 0 {
			b = append(b, c|0x80)
			continue
		}
		return append(b, c)
	}
}

// msg is a message with its fixed header.
func msg(first byte, parts ...[]byte) []byte {
	body := cat(parts...)
	return cat([]byte{first}, varint(len(body)), body)
}

// props is a list of properties with its length.
func props(parts ...[]byte) []byte {
	body := cat(parts...)
	return cat(varint(len(body)), body)
}

func topicAlias(n int) []byte { return cat([]byte{propTopicAlias}, u16(n)) }

func userProperty(name, value string) []byte { return cat([]byte{propUser}, str(name), str(value)) }

func connect(version byte) []byte {
	flags := []byte{0x02}
	switch version {
	case 3:
		return msg(0x10, str("MQIsdp"), []byte{3}, flags, u16(60), str("sensor-1"))
	case 4:
		return msg(0x10, str("MQTT"), []byte{4}, flags, u16(60), str("sensor-1"))
	}
	return msg(0x10, str("MQTT"), []byte{5}, flags, u16(60), props(), str("sensor-1"))
}

// publish is a PUBLISH of 3.1 or 3.1.1; id is there when qos is not 0.
func publish(qos byte, topic string, id int, payload string) []byte {
	if qos == 0 {
		return msg(0x30, str(topic), []byte(payload))
	}
	return msg(0x30|qos<<1, str(topic), u16(id), []byte(payload))
}

// publish5 is a PUBLISH of version 5.
func publish5(qos byte, topic string, id int, properties []byte, payload string) []byte {
	if qos == 0 {
		return msg(0x30, str(topic), properties, []byte(payload))
	}
	return msg(0x30|qos<<1, str(topic), u16(id), properties, []byte(payload))
}
