package aggregate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sheaf/engine/wire"
)

// A lengthField says what the length field of a packet that sized makes holds.
type lengthField int

const (
	lengthRight lengthField = iota
	lengthZero              // as in jumbograms and super-segments
	lengthWrong
	lengthModulo // the low 16 bits of what it should be
	numLengthFields
)

// sized returns n bytes that are a packet of TCP or UDP, or the beginning of one,
// from a client of its own.
func sized(client, n int, v6, tcp bool, field lengthField) []byte {
	b := make([]byte, max(n, 80))
	at, proto, length := 20, byte(17), n
	if tcp {
		proto = 6
	}
	if v6 {
		at, length = 40, n-40
		b[0], b[6], b[7] = 0x60, proto, 64
		b[8], b[24], b[23], b[39] = 0xfd, 0xfd, byte(client), 9
	} else {
		b[0], b[8], b[9] = 0x45, 64, proto
		b[12], b[15], b[16], b[19] = 10, byte(client), 10, 200
	}
	t := b[at:]
	t[0], t[1], t[2], t[3] = 0x40, byte(client), 7, 0x5b
	if tcp {
		t[12], t[13] = 0x50, 0x18
	} else {
		binary.BigEndian.PutUint16(t[4:], uint16(n-at))
	}
	value := min(length, 0xffff)
	switch field {
	case lengthZero:
		value = 0
	case lengthWrong:
		value ^= 0x11
	case lengthModulo:
		value = length & 0xffff
	}
	if v6 {
		binary.BigEndian.PutUint16(b[4:], uint16(value))
	} else {
		binary.BigEndian.PutUint16(b[2:], uint16(value))
	}
	return b[:n]
}

// lengths are those at which something changes, and beyond.
var lengths = []int{
	0, 1, 19, 20, 21, 27, 28, 39, 40, 41, 47, 48, 59, 60, 61, 1500, 1 << 14, 65495, 65496, 65515,
	65534, 65535, 65536, 65537, 65574, 65575, 65576, 65577, 70_000, 1 << 17, 16 << 20,
}

// Whatever its length and whatever it says that it is, a packet of 1 to 65575
// bytes comes through, by itself and among its like, and any other is refused and
// counted. No length is a fault of the lane.
func TestLengths(t *testing.T) {
	for _, window := range []time.Duration{-1, 5 * time.Millisecond} {
		for _, limits := range []wire.Limits{wire.DefaultLimits, {Flows: 8, Templates: 4, Bodies: 1 << 12, Packets: 8, Bytes: wire.MaxPacket}} {
			p := newPair(t, Config{Window: window, Limits: limits})
			now := time.Duration(0)
			for _, n := range lengths {
				for v := range 4 * int(numLengthFields) {
					v6, tcp, field := v&1 != 0, v&2 != 0, lengthField(v/4)
					now += time.Second
					for client := range 5 { // the first one by itself
						p.offer(0, now, sized(client, n, v6, tcp, field))
						if client == 0 {
							p.due(now + time.Second/2)
						}
					}
					p.due(now + time.Second/2)
				}
			}
			refused := 0
			for _, n := range lengths {
				if n == 0 || n > 65575 {
					refused += 5 * 4 * int(numLengthFields)
				}
			}
			if got := p.ends[0].Merger.Stats().Refused; got != uint64(refused) {
				t.Errorf("%d packets refused, expected %d", got, refused)
			}
		}
	}
}

// offer adds a packet if it has the length of one, and holds that it is refused
// if it has not.
func (p *pair) offer(d int, now time.Duration, packet []byte) {
	p.t.Helper()
	if len(packet) > 0 && len(packet) <= 65575 {
		p.run(d, now, packet)
		return
	}
	m := &p.ends[d].Merger
	before := m.Pending()
	if err := m.Add(now, packet); !errors.Is(err, ErrLength) || m.Pending() != before {
		p.t.Fatalf("%d bytes: %v, and %d packets wait", len(packet), err, m.Pending()-before)
	}
}

// What is as long as a packet can be is taken apart like any other.
func TestLongestPacketsAreMerged(t *testing.T) {
	for _, tt := range []struct {
		n        int
		v6       bool
		verbatim uint64
	}{
		{65535, false, 0}, {65536, false, 3},
		{65535, true, 0}, {65536, true, 0}, {65575, true, 0},
	} {
		for _, tcp := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.n, " IPv6 ", tt.v6, " TCP ", tcp), func(t *testing.T) {
				p := newPair(t, Config{})
				for client := range 3 {
					p.add(0, 0, sized(client, tt.n, tt.v6, tcp, lengthRight))
				}
				p.flush(0, 0)
				if got := p.ends[0].Merger.Stats().Verbatim; got != tt.verbatim {
					t.Errorf("%d of 3 packets went as they are, expected %d", got, tt.verbatim)
				}
			})
		}
	}
}

// A frame takes packets as long as it has room for the longest one.
func TestFrameHasRoomForTheLongest(t *testing.T) {
	for first, full := range map[int]bool{100: false, 101: true} {
		p := newPair(t, Config{Limits: wire.Limits{Flows: 9, Templates: 9, Bodies: 999, Packets: 9, Bytes: wire.MaxPacket + 100}})
		p.add(0, 0, sized(1, first, true, false, lengthRight))
		if _, why, _ := p.ends[0].Merger.Deadline(); (why == FlushFull) != full {
			t.Errorf("%d bytes wait: due for %v", first, why)
		}
		if !full {
			p.add(0, 0, sized(1, 65575, true, false, lengthRight))
		}
		p.flush(0, 0)
	}
}

// Packets of all lengths, in any order, come through or are refused.
func TestAnyLength(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{Window: time.Duration(rapid.SampledFrom([]int{-1, 5}).Draw(rt, "window")) * time.Millisecond}
		cfg.Limits = wire.Limits{Flows: 3, Templates: 2, Bodies: 1 << 17, Packets: 4, Bytes: wire.MaxPacket + 1<<15}
		p := newPair(rt, cfg)
		length := rapid.OneOf(rapid.IntRange(0, 100), rapid.IntRange(65480, 65600), rapid.IntRange(0, 1<<18))
		for i := range rapid.IntRange(1, 12).Draw(rt, "packets") {
			b := sized(rapid.IntRange(0, 4).Draw(rt, "client"), length.Draw(rt, "length"), rapid.Bool().Draw(rt, "v6"),
				rapid.Bool().Draw(rt, "tcp"), lengthField(rapid.IntRange(0, int(numLengthFields)-1).Draw(rt, "field")))
			p.offer(0, time.Duration(i)*time.Millisecond, b)
		}
		p.due(time.Hour)
	})
}
