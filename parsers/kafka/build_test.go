package kafka

import (
	"encoding/binary"
	"slices"
)

// The tests build messages from these parts.

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }

func u16(n int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(n)) }

func u32(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

func str(s string) []byte { return append(u16(len(s)), s...) }

func compactStr(s string) []byte { return append(binary.AppendUvarint(nil, uint64(len(s)+1)), s...) }

// msg is a message with its size.
func msg(parts ...[]byte) []byte {
	b := cat(parts...)
	return cat(u32(len(b)), b)
}

func request(key, version, id int, client string, parts ...[]byte) []byte {
	return msg(u16(key), u16(version), u32(id), str(client), cat(parts...))
}

func response(id int, body string) []byte { return msg(u32(id), []byte(body)) }

// batch is a record batch of version 2.
func batch(codec byte, records string) []byte {
	head := make([]byte, 61)
	binary.BigEndian.PutUint32(head[8:], uint32(61-12+len(records)))
	head[16], head[22], head[60] = 2, codec, 1
	return cat(head, []byte(records))
}

// oldMessage is a message of version 0 or 1, the old ones.
func oldMessage(magic byte, value string) []byte {
	head := make([]byte, 26)
	binary.BigEndian.PutUint32(head[8:], uint32(26-12+len(value)))
	head[16] = magic
	return cat(head, []byte(value))
}

// produce is a Produce request to the first partition of a topic.
func produce(version, id int, client, topic string, records []byte) []byte {
	if version >= produceCompact {
		name := compactStr(topic)
		if version >= topicNumbers {
			name = []byte(topic)
		}
		return request(0, version, id, client, []byte{0, 0}, u16(0xffff), u32(5000), []byte{2}, name,
			[]byte{2}, u32(0), binary.AppendUvarint(nil, uint64(len(records)+1)), records, []byte{0, 0, 0})
	}
	var transaction []byte
	if version >= 3 {
		transaction = u16(0xffff)
	}
	return request(0, version, id, client, transaction, u16(1), u32(5000), u32(1), str(topic), u32(1), u32(0), u32(len(records)), records)
}

// fetch is a Fetch request of version 12, 7 or 0, for one topic or none.
func fetch(version, id int, client, topic string, session, epoch int) []byte {
	tail := make([]byte, 20)
	switch {
	case version >= fetchCompact && topic == "":
		return request(1, version, id, client, []byte{0}, u32(1<<32-1), u32(500), u32(1), u32(50<<20), []byte{0}, u32(session), u32(epoch), []byte{1, 1, 1, 0})
	case version >= fetchCompact:
		return request(1, version, id, client, []byte{0}, u32(1<<32-1), u32(500), u32(1), u32(50<<20), []byte{0}, u32(session), u32(epoch), []byte{2}, compactStr(topic), []byte{2}, tail)
	case version >= 7:
		return request(1, version, id, client, u32(1<<32-1), u32(500), u32(1), u32(50<<20), []byte{1}, u32(session), u32(epoch), u32(1), str(topic), u32(1), tail)
	}
	return request(1, version, id, client, u32(1<<32-1), u32(500), u32(1), u32(1), str(topic), u32(1), tail)
}
