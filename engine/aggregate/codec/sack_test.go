package codec

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"sheaf/engine/aggregate/codec/codectest"
)

func TestSackBlocks(t *testing.T) {
	for n, want := range map[int]int{0: 0, 2: 0, 9: 0, 10: 1, 11: 0, 18: 2, 26: 3, 33: 0, 34: 4, 42: 0, 250: 0} {
		if got := sackBlocks(n); got != want {
			t.Errorf("%d blocks in %d bytes, expected %d", got, n, want)
		}
	}
}

// take and put are each other's reverse, and take leaves zeros.
func TestTakeAndPut(t *testing.T) {
	b := codectest.SACKOption([2]uint32{1, 2}, [2]uint32{3, 1<<32 - 1})[4:]
	was := bytes.Clone(b)
	s := sack{n: 4, blocks: [maxBlocks]block{3: {9, 9}}}
	if s.take(b, 2); s != (sack{n: 2, blocks: [maxBlocks]block{{1, 2}, {3, 1<<32 - 1}}}) {
		t.Errorf("took %+v", s)
	}
	if !bytes.Equal(b, make([]byte, 16)) {
		t.Errorf("left % x", b)
	}
	if s.put(b); !bytes.Equal(b, was) {
		t.Errorf("put % x", b)
	}
}

// A block is inside another when neither edge is outside, also where numbers wrap.
func TestContains(t *testing.T) {
	s := sack{n: 2, blocks: [maxBlocks]block{{10, 20}, {1<<32 - 5, 5}}}
	for _, tt := range []struct {
		b    block
		n    int
		want bool
	}{
		{block{10, 20}, 1, true}, {block{12, 15}, 1, true}, {block{9, 20}, 1, false}, {block{10, 21}, 1, false},
		{block{10, 20}, 0, false}, {block{0, 5}, 1, false}, {block{0, 5}, 2, true}, {block{1<<32 - 5, 0}, 2, true}, {block{1<<32 - 6, 0}, 2, false},
	} {
		if got := s.contains(tt.b, tt.n); got != tt.want {
			t.Errorf("%v in the first %d: %v", tt.b, tt.n, got)
		}
	}
}

// sacked returns a state with one flow, whose last segment had the blocks {100,110},
// {80,90}, {60,70}, and whose other direction sent segments that ended at 130, 110, 90;
// and a member of it that acknowledges 50 and has new blocks.
func sacked(t tester, blocks ...block) (*state, *Member) {
	p := newTwins(t, 1)
	p.see(0, view{count: 3, edges: [4]edge{{120, 130, 7}, {100, 110, 6}, {85, 90, 5}}})
	f := p.w.contexts[0]
	f.oddity().sack = sack{n: 3, blocks: [maxBlocks]block{{100, 110}, {80, 90}, {60, 70}}}
	mb := &Member{context: f, Fields: Fields{ack: 50, sack: &sack{n: len(blocks)}}}
	copy(mb.sack.blocks[:], blocks)
	return &p.w.state, mb
}

// The block that is likely is the first of the last segment's that is above what is
// acknowledged and inside none before it.
func TestGuessBlock(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ack    uint32
		k      int
		blocks []block
		want   block
		ok     bool
	}{
		{"the first", 50, 0, nil, block{100, 110}, true},
		{"the second", 50, 1, []block{{100, 110}}, block{80, 90}, true},
		{"what the first grew over", 50, 1, []block{{80, 115}}, block{60, 70}, true},
		{"the third", 50, 2, []block{{100, 110}, {80, 90}}, block{60, 70}, true},
		{"none is left", 50, 3, []block{{100, 110}, {80, 90}, {60, 70}}, block{}, false},
		{"what is not acknowledged", 109, 0, nil, block{100, 110}, true},
		{"all acknowledged", 110, 0, nil, block{}, false},
		{"the lower ones acknowledged", 90, 1, []block{{100, 110}}, block{}, false},
	} {
		_, mb := sacked(t, tt.blocks...)
		mb.ack = tt.ack
		if got, ok := guessBlock(mb, tt.k); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %v, %v", tt.name, got, ok)
		}
	}
	if _, ok := guessBlock(&Member{context: &context{}}, 0); ok {
		t.Error("a flow without blocks has one")
	}
}

func TestPredictRight(t *testing.T) {
	type way struct {
		v  uint32
		ok bool
	}
	no := way{}
	for k, want := range map[int][]way{
		0: {{130, true}, {110, true}, {90, true}, no, {110, true}, {50, true}}, // edges, the guess, the acknowledgement
		1: {{90, true}, {130, true}, {110, true}, {90, true}, no, {50, true}},  // the guess comes first
	} {
		s, mb := sacked(t, block{100, 110})
		for i, w := range want {
			if v, ok := s.predictRight(mb, k, i); ok != w.ok || ok && v != w.v {
				t.Errorf("block %d, way %d: %d, %v; expected %v", k, i, v, ok, w)
			}
		}
	}
	if rightOther != 6 || leftOther != 6 {
		t.Error("the numbers of ways have changed")
	}
}

// What is none of those is compared with the guess, or the newest edge, or what is
// acknowledged.
func TestBaseRight(t *testing.T) {
	s, mb := sacked(t)
	if got := s.baseRight(mb, 0); got != 110 {
		t.Errorf("%d, the guess is 110", got)
	}
	mb.context.odd = nil
	if got := s.baseRight(mb, 0); got != 130 {
		t.Errorf("%d, the newest edge is 130", got)
	}
	mb.context.reverse = peerCID{}
	if got := s.baseRight(mb, 0); got != 50 {
		t.Errorf("%d, acknowledged is 50", got)
	}
}

func TestPredictLeft(t *testing.T) {
	s, mb := sacked(t, block{0, 110})
	check := func(what string, way int, want uint32, known bool) {
		t.Helper()
		if v, ok := s.predictLeft(mb, 0, way); ok != known || ok && v != want {
			t.Errorf("%s: %d, %v; expected %d, %v", what, v, ok, want, known)
		}
	}
	check("the guess", leftGuess, 100, true)
	check("where the segment began that ended there", leftEdge, 100, true)
	check("the newest edge", leftEnd, 130, true)
	check("the one before", leftEnd+1, 110, true)
	check("the oldest", leftEnd+2, 90, true)
	check("one too many", leftEnd+3, 0, false)
	mb.sack.blocks[0].right = 90
	check("another segment", leftEdge, 85, true)
	mb.context.odd = nil
	check("no guess: as the next", leftGuess, 85, true)
	mb.sack.blocks[0].right = 91
	check("no segment ended there", leftEdge, 0, false)
	check("nor is there a guess", leftGuess, 0, false)
}

// Blocks that are where segments began and ended take next to nothing, others what
// they are away from there.
func TestCodeSacks(t *testing.T) {
	f, _ := describe(t, codectest.Segment{TSval: 1}.With(codectest.SACKOption(make([][2]uint32, 2)...)...))
	for _, tt := range []struct {
		name        string
		blocks      [2]block
		least, most float64
	}{
		{"repeated", [2]block{{100, 110}, {80, 90}}, 0, 0.3},
		{"grown by a segment", [2]block{{100, 130}, {80, 90}}, 0, 0.3},
		{"of nothing known", [2]block{{1000, 1 << 30}, {5000, 1 << 31}}, 100, 280},
	} {
		p := newTwins(t, 1)
		p.see(0, view{count: 3, edges: [4]edge{{110, 130, 7}, {100, 110, 6}, {85, 90, 5}}})
		p.both(func(s *state) {
			s.contexts[0].layout = f.layout
			s.contexts[0].oddity().sack = sack{n: 2, blocks: [maxBlocks]block{{100, 110}, {80, 90}}}
		})
		share := func(g *Group) { g.Members[0].ack = 50 }
		fill := func(g *Group) {
			g.Members[0].sack = &sack{n: 2, blocks: [maxBlocks]block{tt.blocks[0], tt.blocks[1]}}
		}
		var read *Group
		bits, first := 0.0, 0.0
		for n := range 60 {
			if _, read, bits = p.codeShared(fill, share, (*codec).codeSacks); n == 0 {
				first = bits
			}
		}
		if tt.least > 0 {
			bits = first
		}
		atMost(t, tt.name, bits, tt.most)
		atLeast(t, tt.name, bits, tt.least)
		if got := read.Members[0].sack; got.n != 2 || got.blocks[0] != tt.blocks[0] || got.blocks[1] != tt.blocks[1] {
			t.Errorf("%s: read %+v", tt.name, got)
		}
	}
}

// Members without blocks are passed over, and those with fewer.
func TestCodeSacksOfSome(t *testing.T) {
	counts := []int{0, 2, 0, 1, 4, 0}
	p := newTwins(t, len(counts))
	for i, n := range counts {
		f, _ := describe(t, codectest.Segment{}.Packet())
		if n > 0 {
			f, _ = describe(t, codectest.Segment{}.With(codectest.SACKOption(make([][2]uint32, n)...)...))
		}
		p.both(func(s *state) { s.contexts[i].layout = f.layout })
	}
	written, read, _ := p.code(each(func(i int, mb *Member) {
		if counts[i] == 0 {
			return
		}
		mb.sack = &sack{n: counts[i]}
		for k := range counts[i] {
			mb.sack.blocks[k] = block{uint32(100*i + 10*k), uint32(100*i + 10*k + 3)}
		}
	}), (*codec).codeSacks)
	for i, n := range counts {
		if got := read.Members[i].sack; n == 0 && got != nil || n > 0 && *got != *written.Members[i].sack {
			t.Errorf("member %d has %+v", i, got)
		}
	}
}

// Whatever is in a SACK option, or looks like one, comes through.
func TestAnySackComesThrough(t *testing.T) {
	near := rapid.Custom(func(rt *rapid.T) uint32 {
		return uint32(rapid.SampledFrom([]int{0, 1<<31 - 2, 1 << 32}).Draw(rt, "about") + rapid.IntRange(-3, 3).Draw(rt, "near"))
	})
	draw := func(rt *rapid.T) codectest.Segment {
		s := codectest.Segment{
			Client: rapid.IntRange(0, 3).Draw(rt, "client"), Down: rapid.Bool().Draw(rt, "down"), Flags: 0x10, Window: 5,
			Seq: near.Draw(rt, "seq"), Ack: near.Draw(rt, "ack"), Payload: make([]byte, rapid.IntRange(0, 3).Draw(rt, "payload")),
		}
		var option []byte
		for range rapid.IntRange(0, maxBlocks).Draw(rt, "blocks") {
			option = binary.BigEndian.AppendUint32(option, near.Draw(rt, "left"))
			option = binary.BigEndian.AppendUint32(option, near.Draw(rt, "right"))
		}
		if len(option) == 0 {
			return s
		}
		s.Options = append([]byte{1, 1, 5, byte(2 + len(option))}, option...)
		if rapid.IntRange(0, 5).Draw(rt, "spoil") == 0 {
			s.Options[3] = rapid.Byte().Draw(rt, "length")
		}
		if len(s.Options) <= 20 && rapid.Bool().Draw(rt, "twice") {
			s.Options = append(s.Options, s.Options...)
		}
		return s
	}
	rapid.Check(t, func(rt *rapid.T) {
		x := newExchange(rt, Config{Limits: small(rapid.IntRange(2, 8).Draw(rt, "places"))})
		x.late = rapid.Bool().Draw(rt, "late")
		for range rapid.IntRange(1, 30).Draw(rt, "segments") {
			s, d := draw(rt), 0
			if s.Down {
				d = 1
			}
			x.add(d, s.Packet())
			if rapid.Bool().Draw(rt, "flush") {
				x.flush(d)
			}
			if rapid.Bool().Draw(rt, "deliver") {
				x.deliver(1 - d)
			}
		}
		x.settle()
	})
}
