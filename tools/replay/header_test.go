package replay

import (
	"encoding/binary"
	"testing"

	"sheaf/parsers/ip"
)

// withTimestamps returns a segment with the timestamps option.
func withTimestamps(id uint16, seq, ack, tsval, tsecr uint32, body int) []byte {
	p := make([]byte, 52+body)
	p[0], p[8], p[9], p[32], p[33] = 0x45, 64, ip.TCP, 0x80, 16
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	binary.BigEndian.PutUint16(p[4:], id)
	copy(p[12:], []byte{10, 1, 1, 1, 10, 2, 0, 10, 0x90, 0, 7, 91})
	binary.BigEndian.PutUint32(p[24:], seq)
	binary.BigEndian.PutUint32(p[28:], ack)
	copy(p[40:], []byte{1, 1, 8, 10})
	binary.BigEndian.PutUint32(p[44:], tsval)
	binary.BigEndian.PutUint32(p[48:], tsecr)
	return p
}

func TestHeaderModel(t *testing.T) {
	m := newHeaderModel()
	syn := withTimestamps(8, 2000, 500, 3000, 90, 0)
	syn[33] = 0x02
	ttl := withTimestamps(9, 2001, 500, 3000, 90, 0)
	ttl[8] = 63
	options := withTimestamps(10, 2001, 500, 3000, 90, 0)
	options[8], options[41] = 63, 0
	fragment := withTimestamps(1, 1, 1, 1, 1, 0)
	fragment[7] = 8
	for _, test := range []struct {
		name   string
		packet []byte
		want   int
	}{
		{"first packet", withTimestamps(1, 1000, 500, 70, 80, 100), 2 + 152},
		{"as foreseen", withTimestamps(2, 1100, 500, 70, 80, 100), 1 + 2 + 2 + 100},
		{"timestamps", withTimestamps(3, 1200, 500, 71, 81, 0), 1 + 2 + 2 + 2},
		{"far timestamps", withTimestamps(4, 1200, 500, 71+1<<20, 81, 0), 1 + 2 + 2 + 4},
		{"acknowledgement", withTimestamps(5, 1200, 700, 71+1<<20, 81, 0), 1 + 2 + 2 + 2},
		{"sequence number", withTimestamps(6, 1000, 700, 71+1<<20, 81, 0), 1 + 2 + 2 + 2},
		{"identification", withTimestamps(600, 1000, 700, 71+1<<20, 81, 0), 1 + 2 + 2 + 2},
		{"a SYN, which is 1 long", syn, 1 + 2 + 2 + 2 + 2 + 2 + 1 + 3 + 1},
		{"behind it, TTL and flags", ttl, 1 + 2 + 2 + 1 + 1},
		{"other options", options, 1 + 2 + 2 + 1 + 12},
		{"fragment", fragment, 1 + 52},
		{"malformed", fragment[:30], 1 + 30},
		{"UDP, first", udp(1, "one"), 2 + 31},
		{"UDP", udp(1, "two"), 1 + 2 + 3},
	} {
		if got := m.cost(test.packet); got != test.want {
			t.Errorf("%s takes %d bytes, want %d", test.name, got, test.want)
		}
	}
}

func TestHeaderModelCountsContexts(t *testing.T) {
	m := newHeaderModel()
	for i := range 129 {
		m.cost(udp(byte(i), ""))
	}
	if few, many := m.cost(udp(127, "")), m.cost(udp(128, "")); few != 3 || many != 4 {
		t.Errorf("contexts 127 and 128 take %d and %d bytes, want 3 and 4", few, many)
	}
}
