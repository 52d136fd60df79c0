package amqp

import (
	"encoding/binary"

	"sheaf/parsers/parsertest"
)

// The tests build frames from these parts.

var cat = parsertest.Cat[[]byte]

func u16(n int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(n)) }
func u32(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
func u64(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

// str is a short string, long a long one or a table.
func str(s string) []byte  { return append([]byte{byte(len(s))}, s...) }
func long(s string) []byte { return append(u32(len(s)), s...) }

func frame(kind byte, channel int, parts ...[]byte) []byte {
	payload := cat(parts...)
	return cat([]byte{kind}, u16(channel), u32(len(payload)), payload, []byte{frameEnd})
}

func method(channel int, name Name, arguments ...[]byte) []byte {
	for i := range methods {
		if m := &methods[i]; m.name == name {
			return frame(typeMethod, channel, u16(int(m.class)), u16(int(m.method)), cat(arguments...))
		}
	}
	panic("no such method")
}

// header is a content header with a content type and a delivery mode.
func header(channel, size int) []byte {
	return frame(typeHeader, channel, u16(60), u16(0), u64(size), u16(0x9000), str("text/plain"), []byte{2})
}

func body(channel int, s string) []byte { return frame(typeBody, channel, []byte(s)) }

// contents is a content header and the body in frames of at most 1,000 bytes.
func contents(channel int, s string) []byte {
	b := header(channel, len(s))
	for len(s) > 0 {
		n := min(len(s), 1000)
		b = append(b, body(channel, s[:n])...)
		s = s[n:]
	}
	return b
}

func deliver(channel int, consumer string, tag int, exchange, key, s string) []byte {
	return cat(method(channel, BasicDeliver, str(consumer), u64(tag), []byte{0}, str(exchange), str(key)), contents(channel, s))
}

func publish(channel int, exchange, key, s string) []byte {
	return cat(method(channel, BasicPublish, u16(0), str(exchange), str(key), []byte{0}), contents(channel, s))
}

func ack(channel, tag int) []byte { return method(channel, BasicAck, u64(tag), []byte{0}) }

func heartbeat() []byte { return frame(typeHeartbeat, 0) }
