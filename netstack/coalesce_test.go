package netstack

import (
	"bytes"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// segments returns n segments of one flow, each with size bytes, as a host sends
// them one after the other.
func segments(n, size int, change func(i int, s *testSegment)) [][]byte {
	packets := make([][]byte, n)
	for i := range packets {
		s := testSegment{
			id: uint16(0xFFFE + i), seq: uint32(1000 + i*size), ack: 77, window: 501, flags: header.TCPFlagAck,
			options: []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}, payload: bytes.Repeat([]byte{byte('a' + i)}, size),
		}
		if change != nil {
			change(i, &s)
		}
		packets[i] = s.bytes()
	}
	return packets
}

// Each rule of splittable, with one packet of four that breaks it: how many may
// still go together.
func TestSplittable(t *testing.T) {
	second := func(change func(s *testSegment)) func(int, *testSegment) {
		return func(i int, s *testSegment) {
			if i == 1 {
				change(s)
			}
		}
	}
	all := func(change func(i int, s *testSegment)) func(int, *testSegment) { return change }
	v6 := func(i int, s *testSegment) { s.src, s.dst, s.flow = client6, server6, 0x12345 }
	tests := []struct {
		name   string
		change func(int, *testSegment)
		want   int
	}{
		{"alike", nil, 4},
		{"IPv6", v6, 4},
		{"identification zero, as many hosts send", all(func(i int, s *testSegment) { s.id = 0 }), 1},
		{"identification jumps", second(func(s *testSegment) { s.id += 5 }), 1},
		{"acknowledgement", second(func(s *testSegment) { s.ack++ }), 1},
		{"window", second(func(s *testSegment) { s.window++ }), 1},
		{"TTL", second(func(s *testSegment) { s.ttl = 63 }), 1},
		{"ECN", second(func(s *testSegment) { s.tos = 3 }), 1},
		{"no DF", second(func(s *testSegment) { s.noDF = true }), 1},
		{"fragment", second(func(s *testSegment) { s.more = true }), 1},
		{"timestamps", second(func(s *testSegment) { s.options = []byte{1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 2} }), 1},
		{"options longer", second(func(s *testSegment) { s.options = append(s.options, 1, 1, 1, 0) }), 1},
		{"sequence gap", second(func(s *testSegment) { s.seq++ }), 1},
		{"sequence back", all(func(i int, s *testSegment) { s.seq = uint32(5000 - i*100) }), 1},
		{"other flow", second(func(s *testSegment) { s.src = gateway4 }), 1},
		{"no payload", second(func(s *testSegment) { s.payload = nil }), 1},
		{"larger", second(func(s *testSegment) { s.payload = append(s.payload, 'x') }), 1},
		{"smaller ends it", second(func(s *testSegment) { s.payload = s.payload[1:] }), 2},
		{"PSH ends it", second(func(s *testSegment) { s.flags |= header.TCPFlagPsh }), 2},
		{"FIN", second(func(s *testSegment) { s.flags |= header.TCPFlagFin }), 1},
		{"CWR", second(func(s *testSegment) { s.flags |= 0x80 }), 1},
		{"first PSH", all(func(i int, s *testSegment) { s.flags |= header.TCPFlagPsh }), 1},
		{"flow label", func(i int, s *testSegment) {
			v6(i, s)
			if i == 1 {
				s.flow++
			}
		}, 1},
		{"hop limit", func(i int, s *testSegment) {
			v6(i, s)
			if i == 1 {
				s.ttl = 9
			}
		}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := splittable(segments(4, 100, tt.change)); got != tt.want {
				t.Errorf("%d of 4 go together, want %d", got, tt.want)
			}
		})
	}
	edit := func(name string, want int, change func(p []byte)) {
		t.Run(name, func(t *testing.T) {
			p := segments(4, 100, nil)
			change(p[1])
			if got := splittable(p); got != want {
				t.Errorf("%d of 4 go together, want %d", got, want)
			}
		})
	}
	edit("IP checksum wrong", 1, func(p []byte) { p[10]++ })
	edit("TCP checksum 0x0000", 1, func(p []byte) { p[36], p[37] = 0, 0 })
	edit("TCP checksum 0xFFFF", 1, func(p []byte) { p[36], p[37] = 0xFF, 0xFF })
	edit("urgent pointer", 1, func(p []byte) { p[39]++ })
	edit("length disagrees", 1, func(p []byte) { p[3]-- })
	edit("IPv4 options", 1, func(p []byte) { p[0] = 0x46 })
	t.Run("65,535 bytes", func(t *testing.T) {
		if got := splittable(segments(50, 1448, nil)); got != 45 { // 52 + 45*1448 = 65,212
			t.Errorf("%d go together, want 45", got)
		}
	})
}

func FuzzSplittable(f *testing.F) {
	p := segments(2, 20, nil)
	f.Add(p[0], p[1])
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if n := splittable([][]byte{a, b, a}); n < 1 || n > 3 {
			t.Errorf("%d of 3", n)
		}
	})
}
