package zmtp

import (
	"encoding/binary"

	"sheaf/parsers/parsertest"
)

// The tests build messages from these parts.

var cat = parsertest.Cat[[]byte]

func raw(flags byte, body string) []byte {
	if len(body) > 255 {
		return append(binary.BigEndian.AppendUint64([]byte{flags | flagLong}, uint64(len(body))), body...)
	}
	return append([]byte{flags, byte(len(body))}, body...)
}

// message3 is a message of frames.
func message3(frames ...string) (b []byte) {
	for i, f := range frames {
		flags := byte(flagMore)
		if i == len(frames)-1 {
			flags = 0
		}
		b = append(b, raw(flags, f)...)
	}
	return b
}

func command(name, data string) []byte {
	return raw(flagCommand, string(rune(len(name)))+name+data)
}

func property(name, value string) string {
	return string(rune(len(name))) + name + string(binary.BigEndian.AppendUint32(nil, uint32(len(value)))) + value
}

func ready(socket string) []byte { return command("READY", property("Socket-Type", socket)) }

func greeting(mechanism string) []byte {
	b := make([]byte, greetingSize)
	copy(b, "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x01"+mechanism)
	return b
}
