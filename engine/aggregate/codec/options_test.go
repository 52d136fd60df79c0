package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
)

func TestRuns(t *testing.T) {
	tcp := func(options ...byte) []byte { return append(codectest.Segment{}.Packet()[:40], options...) }
	six := append(codectest.IPv6TCP()[:40], make([]byte, 16)...)
	for _, tt := range []struct {
		name string
		h    []byte
		ip   int
		tcp  bool
		want []run
	}{
		{"no options", tcp(), 20, true, nil},
		{"a SYN's", codectest.SYN(), 20, true, nil},
		{"a timestamp", tcp(1, 1, 8, 10, 9, 9, 9, 9, 9, 9, 9, 9), 20, true, nil},
		{"a second one", tcp(8, 10, 9, 9, 9, 9, 9, 9, 9, 9, 8, 10, 9, 9, 9, 9, 9, 9, 9, 9), 20, true, []run{{52, 60}}},
		{"of another length", tcp(8, 6, 9, 9, 9, 9, 1, 1), 20, true, []run{{42, 46}}},
		{"SACK", tcp(1, 1, 5, 10, 9, 9, 9, 9, 9, 9, 9, 9), 20, true, nil},
		{"a second SACK", tcp(5, 10, 9, 9, 9, 9, 9, 9, 9, 9, 5, 10, 9, 9, 9, 9, 9, 9, 9, 9), 20, true, []run{{52, 60}}},
		{"SACK without blocks", tcp(5, 2, 5, 10, 9, 9, 9, 9, 9, 9, 9, 9), 20, true, nil},
		{"SACK of another length", tcp(5, 9, 9, 9, 9, 9, 9, 9, 9, 1, 1, 1), 20, true, []run{{42, 49}}},
		{"MD5", tcp(append([]byte{1, 1, 19, 18}, make([]byte, 16)...)...), 20, true, []run{{44, 60}}},
		{"two", tcp(30, 6, 9, 9, 9, 9, 2, 4, 5, 180, 29, 4, 7, 7), 20, true, []run{{42, 46}, {52, 54}}},
		{"MSS and window scale", tcp(2, 4, 5, 5, 3, 3, 7, 0), 20, true, nil},
		{"MSS and window scale of other lengths", tcp(2, 3, 5, 3, 5, 7, 7, 7), 20, true, []run{{42, 43}, {45, 48}}},
		{"of two bytes", tcp(4, 2, 99, 2), 20, true, nil},
		{"padding", tcp(0, 7, 7, 7), 20, true, []run{{41, 44}}},
		{"an end at the end", tcp(1, 1, 1, 0), 20, true, nil},
		{"a length of 0", tcp(19, 0, 7, 7), 20, true, nil},
		{"a length of 1", tcp(19, 1, 7, 7), 20, true, nil},
		{"a length to the end", tcp(19, 4, 7, 7), 20, true, []run{{42, 44}}},
		{"a length past the end", tcp(19, 5, 7, 7), 20, true, nil},
		{"a length of 255", tcp(19, 255, 7, 7), 20, true, nil},
		{"a timestamp past the end", tcp(1, 1, 8, 10), 20, true, nil},
		{"IPv4 options", append(tcp()[:20], 148, 4, 0, 0), 24, false, []run{{20, 24}}},
		{"IPv6 extension headers", six, 56, false, []run{{40, 56}}},
		{"IPv6", six[:40], 40, false, nil},
	} {
		if got := appendRuns(nil, tt.h, tt.ip, tt.tcp); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		h := slices.Clone(tt.h)
		b := cut([]byte("x"), h, tt.want)
		for _, r := range tt.want {
			if string(h[r.from:r.to]) != string(make([]byte, r.to-r.from)) {
				t.Errorf("%s: % x is left in a run", tt.name, h)
			}
		}
		if again := appendRuns(nil, h, tt.ip, tt.tcp); !slices.Equal(again, tt.want) {
			t.Errorf("%s: %v once they are cut out", tt.name, again)
		}
		if paste(h, b[1:], tt.want); !slices.Equal(h, tt.h) {
			t.Errorf("%s: % x came back as % x", tt.name, tt.h, h)
		}
	}
}

// The first timestamps and the first SACK option with blocks have columns of their own.
func TestOptionsOf(t *testing.T) {
	ts := func(v byte) []byte { return []byte{8, 10, v, v, v, v, v, v, v, v} }
	for _, tt := range []struct {
		name    string
		options []byte
		want    options
	}{
		{"none", nil, options{}},
		{"timestamps", append([]byte{1, 1}, ts(1)...), options{tsval: 24}},
		{"two of them", append(ts(1), ts(2)...), options{tsval: 22}},
		{"of another length", []byte{8, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, options{}},
		{"SACK", codectest.SACKOption([2]uint32{1, 2}, [2]uint32{3, 4}), options{sack: 24, blocks: 2}},
		{"without blocks, then with one", append([]byte{5, 2}, codectest.SACKOption([2]uint32{1, 2})...), options{sack: 26, blocks: 1}},
		{"both", append(ts(0), codectest.SACKOption([2]uint32{1, 2})...), options{tsval: 22, sack: 34, blocks: 1}},
		{"behind the end", append([]byte{0}, ts(1)...), options{}},
		{"behind one of length 1", append([]byte{9, 1}, ts(1)...), options{}},
		{"behind another", append([]byte{9, 2}, ts(1)...), options{tsval: 24}},
		{"as long as there is", ts(1)[:10], options{tsval: 22}},
		{"longer than there is", ts(1)[:9], options{}},
		{"a kind without a length", []byte{8}, options{}},
	} {
		if got := optionsOf(append(make([]byte, tcpLen), tt.options...)); got != tt.want {
			t.Errorf("%s: %+v, expected %+v", tt.name, got, tt.want)
		}
	}
}

// The flow's own last bytes come before those that were the last of all, and only as
// many bytes as are asked for are a prediction.
func TestPredictOpaque(t *testing.T) {
	s := &state{newestOpaque: []byte("newest")}
	own := &context{odd: &oddities{opaque: []byte("mine")}}
	for _, tt := range []struct {
		f    *context
		n    int
		want string
	}{{own, 4, "mine"}, {own, 6, "newest"}, {own, 5, ""}, {&context{}, 6, "newest"}, {&context{}, 4, ""}, {&context{odd: &oddities{}}, 6, "newest"}} {
		if got := s.predictOpaque(tt.f, tt.n); string(got) != tt.want || (got == nil) != (tt.want == "") {
			t.Errorf("%d bytes of %v: %q, expected %q", tt.n, tt.f.odd, got, tt.want)
		}
	}
}

// opaqueLayout returns a layout with n opaque bytes.
func opaqueLayout(t tester, n int) *layout {
	option := make([]byte, n+2)
	option[0], option[1] = 254, byte(n+2)
	f, _ := describe(t, codectest.Segment{TSval: 1}.With(option...))
	return f.layout
}

// Opaque bytes as last time take next to nothing; others what they have.
func TestCodeOpaque(t *testing.T) {
	p := newTwins(t, 3)
	l := opaqueLayout(t, 6)
	p.both(func(s *state) {
		for _, f := range s.contexts[:2] {
			f.layout = l
		}
	})
	fill := func(texts ...string) func(*Group) {
		return func(g *Group) {
			for i, s := range texts {
				g.Members[i].opaque = []byte(s)
			}
		}
	}
	if _, _, bits := p.code(fill("abcdef", "ghijkl"), (*codec).codeOpaque); bits < 96 || bits > 108 {
		t.Errorf("12 new bytes in %.1f bits", bits)
	}
	if string(p.r.newestOpaque) != "ghijkl" {
		t.Errorf("the newest are %q", p.r.newestOpaque)
	}
	atMost(t, "the same again", p.steady(50, fill("abcdef", "ghijkl"), (*codec).codeOpaque), 0.2)
	if p.r.contexts[2].odd != nil {
		t.Error("a flow without any has some")
	}
	p.both(func(s *state) { s.contexts[2].layout = l })
	_, read, bits := p.code(fill("abcdef", "ghijkl", "ghijkl"), (*codec).codeOpaque)
	atMost(t, "a new flow, with the newest", bits, 0.2)
	if got := string(read.Members[2].opaque); got != "ghijkl" {
		t.Errorf("it has %q", got)
	}
	_, read, bits = p.code(fill("abcdef", "ghijkl", "ghijkm"), (*codec).codeOpaque)
	atLeast(t, "one that changes", bits, 48)
	if got := string(read.Members[2].opaque); got != "ghijkm" || string(p.r.newestOpaque) != got {
		t.Errorf("it has %q", got)
	}
}

// A peer that goes on with opaque bytes which nobody has seen is refused.
func TestCodeOpaqueUnknown(t *testing.T) {
	p := newTwins(t, 1)
	p.both(func(s *state) { s.contexts[0].layout = opaqueLayout(t, 6) })
	p.w.newestOpaque = []byte("abcdef")
	err := p.refused(func(g *Group) { g.Members[0].opaque = []byte("abcdef") }, (*codec).codeOpaque)
	if !errors.Is(err, ErrFrame) {
		t.Error(err)
	}
}

// A changing packet has something in its headers that is another in each one.
type changing struct {
	name  string
	bytes int // of it
	next  func(s codectest.Segment) []byte
}

func allChanging(r *rand.Rand) []changing {
	random := func(n int, before ...byte) []byte {
		for range n {
			before = append(before, byte(r.Uint32()))
		}
		return before
	}
	six := func(next byte, header func() []byte) func(codectest.Segment) []byte {
		return func(codectest.Segment) []byte {
			b := codectest.IPv6TCP()
			b = append(b[:40:40], append(header(), b[40:]...)...)
			b[6] = next
			binary.BigEndian.PutUint16(b[4:], uint16(len(b)-40))
			return b
		}
	}
	return []changing{
		{"MD5 signature", 16, func(s codectest.Segment) []byte { return s.With(random(16, 1, 1, 19, 18)...) }},
		{"authentication", 14, func(s codectest.Segment) []byte { return s.With(random(12, 29, 16, 3, 4)...) }},
		{"multipath", 20, func(s codectest.Segment) []byte {
			return s.With(append(random(18, 30, 20), []byte{8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1}...)...)
		}},
		{"unknown, longest", 38, func(s codectest.Segment) []byte { return s.With(random(38, 254, 40)...) }},
		{"padding", 7, func(s codectest.Segment) []byte { return s.With(random(7, 0)...) }},
		{"IPv4 option", 8, func(s codectest.Segment) []byte {
			b := s.Packet()
			b = append(b[:20:20], append(random(6, 68, 8), b[20:]...)...)
			b[0] = 0x47
			binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
			codectest.FixIP(b)
			return b
		}},
		{"IPv6 destination option", 16, six(60, func() []byte { return random(12, 6, 1, 30, 12) })},
		{"IPv6 fragment", 8, six(44, func() []byte { return random(6, 6, 0) })},
	}
}

// What is another in each segment costs what it has, no more, and does not push
// out what others have in common: a lone flow's segments, a frame for each.
func TestChangingBytesCostThemselves(t *testing.T) {
	for _, tt := range allChanging(rand.New(rand.NewPCG(1, 2))) {
		t.Run(tt.name, func(t *testing.T) {
			x := newExchange(t, Config{})
			e := x.encoder(0)
			s := codectest.Segment{Client: 1, Flags: 0x10, Window: 5, Seq: 9}
			var shape *layout
			const warm, rounds = 100, 400
			for n := range warm + rounds {
				if n == warm {
					shape, x.bytes[0] = e.contexts[0].layout, 0
				}
				x.now = time.Duration(n) * time.Second
				if f := x.send(0, tt.next(s)); f.groups[0].Kind == Verbatim {
					t.Fatal("a packet goes as it is")
				}
			}
			if len(e.contexts) == 1 && e.contexts[0].layout != shape {
				t.Error("the flow's layout is another")
			}
			got := float64(x.bytes[0]) / rounds
			if limit := float64(tt.bytes) + 2.5; got > limit { // an IPv4 fragment's id, a frame's own bits
				t.Errorf("%.1f bytes a frame, %.1f at most for %d that change", got, limit, tt.bytes)
			}
			t.Logf("%.1f bytes a frame for %d that change", got, tt.bytes)
		})
	}
}

// Options that stay as they are cost nothing, and those of a new flow that are
// like the last one's neither.
func TestConstantOptionsCostNothing(t *testing.T) {
	cost := func(options ...byte) int {
		x := newExchange(t, Config{})
		for n := range 200 {
			s := codectest.Segment{Client: n / 4, Flags: 0x10, Window: 5, Seq: uint32(n), ID: uint16(n / 4)}
			x.now = time.Duration(n) * time.Second
			x.send(0, s.With(options...))
		}
		return x.bytes[0]
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
		x := newExchange(t, Config{Limits: limits})
		r := rand.New(rand.NewPCG(3, 4))
		for round := range 40 {
			for client := range 8 {
				s := codectest.Segment{Client: client, Flags: 0x18, Seq: uint32(round * 100), Payload: fmt.Append(nil, "round ", round)}
				var options []byte
				if n := r.IntN(5) * 4; n > 0 {
					options = append([]byte{254, byte(n)}, make([]byte, n-2)...)
					options[len(options)-1] = byte(r.IntN(2))
				}
				x.add(0, s.With(options...))
			}
			x.flush(0)
		}
	}
}
