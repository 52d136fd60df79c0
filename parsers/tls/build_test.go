package tls

import (
	"encoding/binary"
	"strings"

	"sheaf/parsers/parsertest"
)

// The tests build records from these parts.

var cat = parsertest.Cat[[]byte]

// record is a record of TLS 1.2 and 1.3.
func record(name Name, fragment string) []byte {
	b := []byte{byte(name), 3, 3}
	b = binary.BigEndian.AppendUint16(b, uint16(len(fragment)))
	return append(b, fragment...)
}

// version is a record of another version.
func version(minor byte, b []byte) []byte {
	b[2] = minor
	return b
}

// message is a handshake message.
func message(typ byte, n int) string {
	return string([]byte{typ, byte(n >> 16), byte(n >> 8), byte(n), 3, 3}) + strings.Repeat("h", n-2)
}

// data is a record of n bytes that look encrypted.
func data(n int) []byte {
	b := make([]byte, n)
	x := uint32(n)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return record(ApplicationData, string(b))
}

var (
	clientHello    = version(1, record(Handshake, message(1, 240)))
	serverHello    = record(Handshake, message(2, 118))
	change         = record(ChangeCipherSpec, "\x01")
	finished       = record(Handshake, strings.Repeat("\xa5", 40))
	closeNotify    = record(Alert, "\x01\x00")
	encryptedAlert = record(Alert, strings.Repeat("\x5a", 26))
	heartbeat      = record(Heartbeat, strings.Repeat("\x01", 19))
)
