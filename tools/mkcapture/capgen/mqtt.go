package capgen

import "encoding/binary"

// First bytes of MQTT 3.1.1 control packets (section 2.2).
const (
	mqttConnect    = 0x10
	mqttConnAck    = 0x20
	mqttPublish    = 0x30
	mqttPubAck     = 0x40
	mqttSubscribe  = 0x82
	mqttSubAck     = 0x90
	mqttPingReq    = 0xc0
	mqttPingResp   = 0xd0
	mqttDisconnect = 0xe0
)

// appendConnect appends a CONNECT with a clean session (section 3.1).
func appendConnect(dst []byte, clientID string, keepAlive uint16) []byte {
	dst = appendMQTTHeader(dst, mqttConnect, 12+len(clientID))
	dst = append(dst, 0, 4, 'M', 'Q', 'T', 'T', 4, 2)
	dst = binary.BigEndian.AppendUint16(dst, keepAlive)
	return appendMQTTString(dst, clientID)
}

func appendConnAck(dst []byte) []byte { return append(dst, mqttConnAck, 2, 0, 0) }

// appendSubscribe appends a SUBSCRIBE to topics, all at one QoS (section 3.8).
func appendSubscribe(dst []byte, id uint16, qos byte, topics []string) []byte {
	size := 2
	for _, topic := range topics {
		size += 2 + len(topic) + 1
	}
	dst = appendMQTTHeader(dst, mqttSubscribe, size)
	dst = binary.BigEndian.AppendUint16(dst, id)
	for _, topic := range topics {
		dst = append(appendMQTTString(dst, topic), qos)
	}
	return dst
}

// appendSubAck appends a SUBACK that grants n topics one QoS (section 3.9).
func appendSubAck(dst []byte, id uint16, qos byte, n int) []byte {
	dst = appendMQTTHeader(dst, mqttSubAck, 2+n)
	dst = binary.BigEndian.AppendUint16(dst, id)
	for range n {
		dst = append(dst, qos)
	}
	return dst
}

// appendPublish appends a PUBLISH; it has an id only with QoS 1 (section 3.3).
func appendPublish(dst []byte, topic string, qos byte, id uint16, body []byte) []byte {
	size := 2 + len(topic) + len(body)
	if qos > 0 {
		size += 2
	}
	dst = appendMQTTHeader(dst, mqttPublish|qos<<1, size)
	dst = appendMQTTString(dst, topic)
	if qos > 0 {
		dst = binary.BigEndian.AppendUint16(dst, id)
	}
	return append(dst, body...)
}

func appendPubAck(dst []byte, id uint16) []byte {
	return append(dst, mqttPubAck, 2, byte(id>>8), byte(id))
}

// appendMQTTHeader appends the fixed header with the remaining length, seven
// bits a byte, low ones first (section 2.2.3).
func appendMQTTHeader(dst []byte, first byte, n int) []byte {
	dst = append(dst, first)
	for n >= 0x80 {
		dst = append(dst, byte(n)|0x80)
		n >>= 7
	}
	return append(dst, byte(n))
}

func appendMQTTString(dst []byte, s string) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(s)))
	return append(dst, s...)
}
