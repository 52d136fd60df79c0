package websocket

import (
	"encoding/binary"
	"fmt"

	"sheaf/parsers"
	"sheaf/parsers/mqtt"
	"sheaf/parsers/parsertest"
)

// The tests build messages from these parts. What is inside is MQTT.

var cat = parsertest.Cat[[]byte]

const testID = parsertest.ID

var inner = mqtt.Protocol()

var suite = parsertest.Suite[[]byte]{
	Name: func(name uint8) string { return Over(inner).MessageNames[name] },
	Hole: func(h parsers.Hole, _ []byte) string {
		if h.Kind == parsers.HoleMask {
			return fmt.Sprintf("mask %d+%d phase %d", h.Off, h.Len, h.Phase)
		}
		return fmt.Sprintf("hole %d counter %d", h.Off, h.Counter)
	},
	Piece: func(sp, whole parsers.Span, _ int) bool {
		return sp.Key != whole.Key || sp.Name == whole.Name && sp.Class == whole.Class
	},
}

var scanAll, checkSpans, showSpans = suite.ScanAll, suite.CheckSpans, suite.Show

func newScanner() parsers.Scanner { return NewScanner(testID, &inner) }

func newBare() parsers.Scanner { return NewScanner(testID, nil) }

func atBoundary(s parsers.Scanner) bool { return s.(*Scanner).state == boundary }

// frame is a frame that a server sends: first is its first byte.
func frame(first byte, data []byte) []byte {
	b := []byte{first}
	switch n := len(data); {
	case n < 126:
		b = append(b, byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(n))
	}
	return append(b, data...)
}

// masked is what a client sends: the frame with a key.
func masked(key uint32, b []byte) []byte {
	var h head
	if parseHead(b, &h) != ok {
		panic("no frame")
	}
	m := append([]byte(nil), b[:h.size]...)
	m[1] |= flagMasked
	m = binary.BigEndian.AppendUint32(m, key)
	return parsers.Mask(m, b[h.size:], key, 0)
}

// publish is an MQTT PUBLISH; id is there when it is not 0.
func publish(topic string, id int, body string) []byte {
	first, n := byte(0x30), 2+len(topic)+len(body)
	if id > 0 {
		first, n = 0x32, n+2
	}
	b := binary.AppendUvarint([]byte{first}, uint64(n))
	b = append(binary.BigEndian.AppendUint16(b, uint16(len(topic))), topic...)
	if id > 0 {
		b = binary.BigEndian.AppendUint16(b, uint16(id))
	}
	return append(b, body...)
}

const connect = "\x10\x14\x00\x04MQTT\x04\x02\x00\x3c\x00\x08sensor-1"

func request(protocols string) []byte {
	return []byte("GET /mqtt HTTP/1.1\r\nHost: broker:9001\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + protocolField(protocols) + "Sec-WebSocket-Version: 13\r\n\r\n")
}

func answer(protocols string) []byte {
	return []byte("HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" + protocolField(protocols) + "\r\n")
}

func protocolField(protocols string) string {
	if protocols == "" {
		return ""
	}
	return "Sec-WebSocket-Protocol: " + protocols + "\r\n"
}

// bare is the suite of WebSocket without an inner protocol.
var bare = func() parsertest.Suite[[]byte] {
	u := suite
	u.Name = func(name uint8) string { return Name(name).String() }
	return u
}()
