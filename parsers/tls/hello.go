package tls

import "encoding/binary"

// RandomLen is the length of a hello's random, bytes (RFC 8446 section 4.1.2).
const RandomLen = 32

// The parts of a hello that are read here:
//
//	record's head(5) type(1) length(3) version(2) random(32) ...
//
// and in a ServerHello (RFC 8446 section 4.1.3):
//
//	... session id length(1) session id(0..32) suite(2)
const (
	randomAt  = headSize + 4 + 2
	sessionAt = randomAt + RandomLen

	clientHelloType, serverHelloType = 1, 2

	maxSession = 32 // bytes

	// What the messages have at least behind their type and length: of a ClientHello one
	// suite and one compression method, of a ServerHello the same without lengths.
	minClientHello = 2 + RandomLen + 1 + 2 + 2 + 1 + 1
	minServerHello = 2 + RandomLen + 1 + 2 + 1
)

// retryRandom is the random of a ServerHello that is a HelloRetryRequest: the SHA-256 of
// that word (RFC 8446 section 4.1.3).
var retryRandom = [RandomLen]byte{
	0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91,
	0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
}

// ClientRandom returns the random of the ClientHello that the record begins with which b
// begins with. b may end anywhere behind the random: with a key share of ML-KEM a
// ClientHello is longer than a segment.
func ClientRandom(b []byte) (random [RandomLen]byte, ok bool) {
	if !isHello(b, clientHelloType, minClientHello) {
		return random, false
	}
	return [RandomLen]byte(b[randomAt:]), true
}

// ServerHello returns the random and the cipher suite of the ServerHello that the record
// begins with which b begins with, and whether it is a HelloRetryRequest, behind which
// another ServerHello follows. b may end anywhere behind the suite.
func ServerHello(b []byte) (random [RandomLen]byte, suite uint16, retry, ok bool) {
	if !isHello(b, serverHelloType, minServerHello) || len(b) <= sessionAt || b[sessionAt] > maxSession {
		return random, 0, false, false
	}
	suiteAt := sessionAt + 1 + int(b[sessionAt])
	if len(b) < suiteAt+2 || recordEnd(b) < suiteAt+2 {
		return random, 0, false, false
	}
	random = [RandomLen]byte(b[randomAt:])
	return random, binary.BigEndian.Uint16(b[suiteAt:]), random == retryRandom, true
}

// isHello says whether b begins with a handshake record with a message of a type and of at
// least so many bytes, and goes on to the end of its random at least.
func isHello(b []byte, typ byte, least int) bool {
	if len(b) < sessionAt {
		return false
	}
	h, bad := parseHead(b)
	length := int(b[6])<<16 | int(b[7])<<8 | int(b[8])
	return bad == ok && h.name == Handshake && recordEnd(b) >= sessionAt &&
		b[headSize] == typ && length >= least && b[9] == major
}

// recordEnd returns where the record ends that b begins with.
func recordEnd(b []byte) int { return headSize + int(binary.BigEndian.Uint16(b[3:])) }
