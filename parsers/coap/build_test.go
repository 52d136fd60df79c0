package coap

import (
	"encoding/binary"

	"sheaf/parsers/parsertest"
)

// The tests build messages from these parts.

var cat = parsertest.Cat[[]byte]

// opt is an option with its number.
type opt struct {
	number int
	value  string
}

// nibble returns the four bits of a delta or length and the bytes that follow.
func nibble(n int) (byte, []byte) {
	switch {
	case n < 13:
		return byte(n), nil
	case n < 269:
		return 13, []byte{byte(n - 13)}
	}
	return 14, binary.BigEndian.AppendUint16(nil, uint16(n-269))
}

// msg is a message; its options are in order of number.
func msg(kind Type, code uint8, id int, token string, body string, list ...opt) []byte {
	b := []byte{1<<6 | byte(kind)<<4 | byte(len(token)), code, byte(id >> 8), byte(id)}
	b = append(b, token...)
	before := 0
	for _, o := range list {
		delta, more := nibble(o.number - before)
		length, rest := nibble(len(o.value))
		b = cat(b, []byte{delta<<4 | length}, more, rest, []byte(o.value))
		before = o.number
	}
	if body != "" {
		b = append(append(b, payloadMarker), body...)
	}
	return b
}

const (
	content = 0x45
	changed = 0x44
)

func notification(id int, token, observe, body string) []byte {
	return msg(NonConfirmable, content, id, token, body, opt{optionObserve, observe}, opt{12, "\x32"})
}

func put(id int, token, body string, path ...string) []byte {
	var list []opt
	for _, p := range path {
		list = append(list, opt{optionURIPath, p})
	}
	return msg(Confirmable, 3, id, token, body, list...)
}
