package parsers_test

import (
	"encoding/binary"
	"slices"
)

// The tests build packets from these parts.

func ipv4(proto byte, options, rest []byte) []byte {
	b := make([]byte, 20, 20+len(options)+len(rest))
	b[0] = 0x40 | byte(5+len(options)/4)
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(options)+len(rest)))
	b[8], b[9] = 64, proto
	copy(b[12:], []byte{10, 0, 0, 2, 10, 0, 0, 1})
	return append(append(b, options...), rest...)
}

func ipv6(next byte, rest []byte) []byte {
	b := make([]byte, 40, 40+len(rest))
	b[0] = 0x60
	binary.BigEndian.PutUint16(b[4:], uint16(len(rest)))
	b[6], b[7] = next, 64
	b[8], b[23], b[24], b[39] = 0xfd, 2, 0xfd, 1
	return append(b, rest...)
}

// extension is an IPv6 extension header of 8*(1+more) bytes in front of rest.
func extension(next, more byte, rest []byte) []byte {
	b := make([]byte, 8+8*int(more))
	b[0], b[1] = next, more
	b[2], b[3] = 1, byte(len(b)-4) // PadN
	return append(b, rest...)
}

func tcp(srcPort, dstPort uint16, seq uint32, flags byte, options, payload []byte) []byte {
	b := make([]byte, 20, 20+len(options)+len(payload))
	binary.BigEndian.PutUint16(b, srcPort)
	binary.BigEndian.PutUint16(b[2:], dstPort)
	binary.BigEndian.PutUint32(b[4:], seq)
	binary.BigEndian.PutUint32(b[8:], 0x01020304)
	b[12], b[13] = byte(5+len(options)/4)<<4, flags
	return append(append(b, options...), payload...)
}

func udp(srcPort, dstPort uint16, payload []byte) []byte {
	b := make([]byte, 8, 8+len(payload))
	binary.BigEndian.PutUint16(b, srcPort)
	binary.BigEndian.PutUint16(b[2:], dstPort)
	binary.BigEndian.PutUint16(b[4:], uint16(8+len(payload)))
	return append(b, payload...)
}

// timestamps are the TCP options of nearly every segment.
var timestamps = []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}

// set returns a copy of b with one byte changed.
func set(b []byte, at int, value byte) []byte {
	b = slices.Clone(b)
	b[at] = value
	return b
}
