package amqp10

import (
	"encoding/binary"

	"sheaf/parsers/parsertest"
)

// The tests build frames from these parts.

var cat = parsertest.Cat[[]byte]

func u16(n int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(n)) }
func u32(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }

// The values: null, yes and no; num is a uint in as few bytes as can be.
var (
	null = []byte{codeNull}
	yes  = []byte{codeTrue}
	no   = []byte{codeFalse}
)

func num(n int) []byte {
	switch {
	case n == 0:
		return []byte{codeUint0}
	case n < 256:
		return []byte{codeUint8, byte(n)}
	}
	return cat([]byte{codeUint32}, u32(n))
}

func str(s string) []byte { return cat([]byte{codeString8, byte(len(s))}, []byte(s)) }
func sym(s string) []byte { return cat([]byte{codeSymbol8, byte(len(s))}, []byte(s)) }
func bin(s string) []byte { return cat([]byte{codeBinary8, byte(len(s))}, []byte(s)) }

func list(values ...[]byte) []byte {
	b := cat(values...)
	switch {
	case len(values) == 0:
		return []byte{codeList0}
	case len(b) < 255:
		return cat([]byte{codeList8, byte(len(b) + 1), byte(len(values))}, b)
	}
	return cat([]byte{codeList32}, u32(len(b)+4), u32(len(values)), b)
}

func described(code byte, v []byte) []byte {
	return cat([]byte{codeDescribed, codeUlong8, code}, v)
}

func frame(kind byte, channel int, parts ...[]byte) []byte {
	b := cat(parts...)
	return cat(u32(frameHead+len(b)), []byte{2, kind}, u16(channel), b)
}

func perform(channel int, name Name, fields ...[]byte) []byte {
	return frame(typeAMQP, channel, described(0x10+byte(name-Open), list(fields...)))
}

func sasl(name Name, fields ...[]byte) []byte {
	return frame(typeSASL, 0, described(0x40+byte(name-SASLMechanisms), list(fields...)))
}

func head(protocol byte) []byte { return cat([]byte("AMQP"), []byte{protocol, 1, 0, 0}) }

// data is a message with a body.
func data(s string) []byte {
	return cat([]byte{codeDescribed, codeUlong8, 0x75, codeBinary32}, u32(len(s)), []byte(s))
}

// attach attaches a link: the peer sends where receiver is no.
func attach(channel, handle int, receiver []byte, source, target string) []byte {
	terminus := func(code byte, address string) []byte {
		if address == "" {
			return described(code, list())
		}
		return described(code, list(str(address), num(0)))
	}
	return perform(channel, Attach, str("link"), num(handle), receiver, null, null, terminus(0x28, source), terminus(0x29, target))
}

func transfer(channel, handle, id int, tag, s string) []byte {
	return frame(typeAMQP, channel, described(0x14, list(num(handle), num(id), bin(tag), num(0), yes, no)), data(s))
}

func disposition(channel, first, last int) []byte {
	l := null
	if last >= 0 {
		l = num(last)
	}
	return perform(channel, Disposition, yes, num(first), l, yes, described(0x24, list()))
}

func empty() []byte { return frame(typeAMQP, 0) }
