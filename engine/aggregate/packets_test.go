package aggregate

import (
	"encoding/binary"
)

func fixIP(b []byte) {
	b[10], b[11] = 0, 0
	binary.BigEndian.PutUint16(b[10:], ^sum16(b[:20]))
}

func udp() []byte {
	b := segment{client: 4, payload: []byte("datagram")}.packet()
	b[9] = 17
	b = append(b[:28], "datagram"...)
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	binary.BigEndian.PutUint16(b[24:], uint16(len(b)-20))
	b[26], b[27] = 0, 0
	fixIP(b)
	return b
}

func icmp() []byte {
	b := udp()
	b[9], b[20], b[21] = 1, 8, 0
	fixIP(b)
	return b
}

func ipv6tcp() []byte {
	v4 := segment{client: 1, flags: 0x18, seq: 5, ack: 6, window: 7, tsval: 8, tsecr: 9, payload: publish("six", "hello", 0)}.packet()
	b := make([]byte, 40, 40+len(v4)-20)
	b[0], b[3], b[6], b[7] = 0x60, 0x42, 6, 64
	binary.BigEndian.PutUint16(b[4:], uint16(len(v4)-20))
	b[8], b[23], b[24], b[39] = 0xfd, 1, 0xfd, 2
	b = append(b, v4[20:]...)
	t := b[40:]
	t[16], t[17] = 0, 0
	sum := sum16(b[8:40]) // carries are folded by adding halves
	total := uint32(sum) + 6 + uint32(len(t)) + uint32(sum16(t))
	for total>>16 != 0 {
		total = total&0xffff + total>>16
	}
	binary.BigEndian.PutUint16(t[16:], ^uint16(total))
	return b
}

// with returns the packet of a segment with other TCP options.
func (s segment) with(options ...byte) []byte {
	s.options = options
	return s.packet()
}

// sum16 is the sum of the Internet checksum (RFC 1071), written apart from the one
// under test.
func sum16(b []byte) uint16 {
	n := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		n += uint32(b[i])<<8 | uint32(b[i+1])
	}
	if len(b)%2 == 1 {
		n += uint32(b[len(b)-1]) << 8
	}
	for n>>16 != 0 {
		n = n&0xffff + n>>16
	}
	return uint16(n)
}
