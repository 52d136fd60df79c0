package aggregate

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sheaf/engine/wire"
)

func TestRuns(t *testing.T) {
	tcp := func(options ...byte) []byte { return append(segment{}.packet()[:40], options...) }
	six := append(ipv6tcp()[:40], make([]byte, 16)...)
	for _, tt := range []struct {
		name string
		h    []byte
		ip   int
		tcp  bool
		want []run
	}{
		{"no options", tcp(), 20, true, nil},
		{"a SYN's", syn(), 20, true, nil},
		{"a timestamp", tcp(1, 1, 8, 10, 9, 9, 9, 9, 9, 9, 9, 9), 20, true, nil},
		{"a second one", tcp(8, 10, 9, 9, 9, 9, 9, 9, 9, 9, 8, 10, 9, 9, 9, 9, 9, 9, 9, 9), 20, true, []run{{52, 60}}},
		{"of another length", tcp(8, 6, 9, 9, 9, 9, 1, 1), 20, true, []run{{42, 46}}},
		{"SACK", tcp(1, 1, 5, 10, 9, 9, 9, 9, 9, 9, 9, 9), 20, true, nil},
		{"MD5", tcp(append([]byte{1, 1, 19, 18}, make([]byte, 16)...)...), 20, true, []run{{44, 60}}},
		{"two", tcp(30, 6, 9, 9, 9, 9, 2, 4, 5, 180, 29, 4, 7, 7), 20, true, []run{{42, 46}, {52, 54}}},
		{"MSS and window scale of other lengths", tcp(2, 3, 5, 3, 5, 7, 7, 7), 20, true, []run{{42, 43}, {45, 48}}},
		{"padding", tcp(0, 7, 7, 7), 20, true, []run{{41, 44}}},
		{"an end at the end", tcp(1, 1, 1, 0), 20, true, nil},
		{"a length of 0", tcp(19, 0, 7, 7), 20, true, nil},
		{"a length of 1", tcp(19, 1, 7, 7), 20, true, nil},
		{"a length past the end", tcp(19, 5, 7, 7), 20, true, nil},
		{"a length of 255", tcp(19, 255, 7, 7), 20, true, nil},
		{"a timestamp past the end", tcp(1, 1, 8, 10), 20, true, nil},
		{"IPv4 options", append(tcp()[:20], 148, 4, 0, 0), 24, false, []run{{20, 24}}},
		{"IPv6 extension headers", six, 56, false, []run{{40, 56}}},
	} {
		if got := appendRuns(nil, tt.h, tt.ip, tt.tcp); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		h := slices.Clone(tt.h)
		b := cut(nil, h, tt.want)
		if again := appendRuns(nil, h, tt.ip, tt.tcp); !slices.Equal(again, tt.want) {
			t.Errorf("%s: %v once they are cut out", tt.name, again)
		}
		if paste(h, b, tt.want); !slices.Equal(h, tt.h) {
			t.Errorf("%s: % x came back as % x", tt.name, tt.h, h)
		}
	}
}

// with returns the packet of a segment with other TCP options.
func (s segment) with(options ...byte) []byte {
	s.options = options
	return s.packet()
}

// A changing packet has something in its headers that is another in each one.
type changing struct {
	name  string
	bytes int // of it
	next  func(s segment) []byte
}

func allChanging(r *rand.Rand) []changing {
	random := func(n int, before ...byte) []byte {
		for range n {
			before = append(before, byte(r.Uint32()))
		}
		return before
	}
	return []changing{
		{"MD5 signature", 16, func(s segment) []byte { return s.with(random(16, 1, 1, 19, 18)...) }},
		{"authentication", 14, func(s segment) []byte { return s.with(random(12, 29, 16, 3, 4)...) }},
		{"multipath", 20, func(s segment) []byte {
			return s.with(append(random(18, 30, 20), []byte{8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1}...)...)
		}},
		{"unknown, longest", 38, func(s segment) []byte { return s.with(random(38, 254, 40)...) }},
		{"padding", 7, func(s segment) []byte { return s.with(random(7, 0)...) }},
		{"IPv4 option", 8, func(s segment) []byte {
			b := s.packet()
			b = append(b[:20:20], append(random(6, 68, 8), b[20:]...)...)
			b[0] = 0x47
			binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
			b[10], b[11] = 0, 0
			binary.BigEndian.PutUint16(b[10:], ^sum16(b[:28]))
			return b
		}},
		{"IPv6 destination option", 16, func(s segment) []byte {
			b := ipv6tcp()
			b = append(b[:40:40], append(random(12, 6, 1, 30, 12), b[40:]...)...)
			b[6] = 60
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
			return b
		}},
		{"IPv6 fragment", 8, func(s segment) []byte {
			b := ipv6tcp()
			b = append(b[:40:40], append(random(6, 6, 0), b[40:]...)...)
			b[6] = 44
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
			return b
		}},
	}
}

// What is another in each segment costs what it has, no more, and does not push
// out what others have in common: a lone flow's segments, a frame for each.
func TestChangingBytesCostThemselves(t *testing.T) {
	for _, tt := range allChanging(rand.New(rand.NewPCG(1, 2))) {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t, Config{Window: -1})
			w := &p.ends[0].Merger.writer
			s := segment{client: 1, flags: 0x10, window: 5, seq: 9}
			var shape *layout
			plain := 0
			const warm, rounds = 100, 400
			for n := range warm + rounds {
				if n == warm {
					shape, plain, p.bytes[0] = w.flows[0].layout, 0, 0
				}
				b := tt.next(s)
				plain += len(b)
				p.run(0, time.Duration(n)*time.Second, b)
			}
			if got := p.ends[0].Merger.Stats().Verbatim; got != 0 {
				t.Errorf("%d packets went as they are", got)
			}
			if len(w.flows) == 1 && w.flows[0].layout != shape {
				t.Error("the flow's layout is another")
			}
			if got, limit := float64(p.bytes[0])/rounds, float64(tt.bytes)+7.5; got > limit {
				t.Errorf("%.1f bytes a frame, %.1f at most for %d that change", got, limit, tt.bytes)
			} else {
				t.Logf("%.1f bytes a frame for %d that change, %.1f on a plain link", got, tt.bytes, float64(plain)/rounds)
			}
		})
	}
}

// Options that stay as they are cost nothing, and those of a new flow that are
// like the last one's neither.
func TestConstantOptionsCostNothing(t *testing.T) {
	cost := func(options ...byte) int {
		p := newPair(t, Config{Window: -1})
		for n := range 200 {
			s := segment{client: n / 4, flags: 0x10, window: 5, seq: uint32(n), id: uint16(n / 4)}
			p.run(0, time.Duration(n)*time.Second, s.with(options...))
		}
		return p.bytes[0]
	}
	none := cost()
	if got := cost(254, 16, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14); got > none+60 {
		t.Errorf("%d bytes with the same option in each of 200 segments, %d without", got, none)
	}
}

// Members of a group that have runs and such that have none come through
// together, and so do flows that go from the one to the other.
func TestRunsComeAndGo(t *testing.T) {
	for _, limits := range []wire.Limits{wire.DefaultLimits, small(3)} {
		p := newPair(t, Config{Limits: limits})
		r := rand.New(rand.NewPCG(3, 4))
		for round := range 40 {
			for client := range 8 {
				s := data(client, fmt.Sprint("round ", round))
				s.seq = uint32(round * 100)
				var options []byte
				if n := r.IntN(5) * 4; n > 0 {
					options = append([]byte{254, byte(n)}, make([]byte, n-2)...)
					options[len(options)-1] = byte(r.IntN(2))
				}
				p.run(0, time.Duration(round)*time.Second, s.with(options...))
			}
			p.due(time.Duration(round)*time.Second + time.Second/2)
		}
	}
}
