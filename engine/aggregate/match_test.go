package aggregate

import (
	"slices"
	"strings"
	"testing"

	"sheaf/engine/aggregate/codec"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// join puts a segment of a client into a group, and returns which. Those without
// spans have no payload.
func join(m *Merger, client int, k codec.Kind, flags uint8, payload string, spans ...parsers.Span) groupNumber {
	f := m.flows.get(0, &parsers.FlowKey{Version: 4, SrcPort: uint16(client)})
	m.spans = append(m.spans[:0], spans...)
	f.group = m.group(f, shape{kind: k, flags: flags}, []byte(payload))
	return f.group
}

// spanOf is one of n bytes of a message with the same key as all others.
func spanOf(n int, holes ...parsers.Hole) parsers.Span {
	s := parsers.Span{Len: n, Protocol: 1, Key: 77, NumHoles: len(holes)}
	copy(s.Holes[:], holes)
	return s
}

// whole joins with a segment of one span.
func whole(m *Merger, client int, payload string) groupNumber {
	return join(m, client, codec.TCP4, 0x18, payload, spanOf(len(payload)))
}

func joined(t *testing.T, what string, got, want groupNumber) {
	t.Helper()
	if got != want {
		t.Errorf("%s: in group %d, expected %d", what, got, want)
	}
}

func TestSegmentsAlikeShareAGroup(t *testing.T) {
	m := newMerger(t, Config{})
	for client := range 3 {
		joined(t, "a message", whole(m, client, "message"), 1)
		joined(t, "nothing", join(m, client, codec.TCP4, 0x10, ""), 2)
		joined(t, "nothing, of UDP", join(m, client, codec.IP4, 0, ""), 3)
	}
}

// collide returns a key of spans with which a segment has the key of another in the
// table of groups, though its kind and flags are not the same.
func collide(k codec.Kind, flags uint8, ofKind codec.Kind, ofFlags uint8) uint64 {
	const factor = 0x9e3779b97f4a7c15
	inverse := uint64(factor)
	for range 6 {
		inverse *= 2 - factor*inverse
	}
	return inverse * ((uint64(k)<<8 | uint64(flags)) ^ (uint64(ofKind)<<8 | uint64(ofFlags)))
}

func TestGroupIsOfOneKindAndOfTheSameFlags(t *testing.T) {
	m := newMerger(t, Config{})
	client, n := 0, groupNumber(0)
	next := func(payload string, k codec.Kind, flags uint8, spans ...parsers.Span) {
		t.Helper()
		client++
		n++
		joined(t, "another kind or other flags", join(m, client, k, flags, payload, spans...), n)
	}
	span := parsers.Span{Len: 1, Protocol: 1}
	for _, k := range []codec.Kind{codec.TCP4, codec.TCP6, codec.IP4, codec.IP6} {
		for _, flags := range []uint8{0, 0x10, 0x18} {
			next("", k, flags)
			span.Key = collide(k, flags, codec.TCP4, 0)
			next("a", k, flags, span)
		}
	}
	if len(m.pending.first) != 12 { // all with payload have that of the first
		t.Errorf("%d keys: they do not collide", len(m.pending.first))
	}
	joined(t, "the oldest of them", join(m, client+1, codec.TCP4, 0, "a", parsers.Span{Len: 1, Protocol: 1}), 2)
}

func TestGroupIsOfTheSamePayload(t *testing.T) {
	big := parsers.Hole{Off: 2, Len: 2, Counter: 1, Step: 1}
	mask := parsers.Hole{Off: 2, Kind: parsers.HoleMask, Phase: 1, Key: 5}
	with := func(h parsers.Hole, change func(*parsers.Hole)) parsers.Hole { change(&h); return h }
	two := func(payload string, cut int, holes ...parsers.Hole) (string, []parsers.Span) {
		return payload, []parsers.Span{spanOf(cut), spanOf(len(payload)-cut, holes...)}
	}
	type sample struct {
		payload string
		spans   []parsers.Span
	}
	of := func(payload string, spans []parsers.Span) sample { return sample{payload, spans} }
	for _, tt := range []struct {
		name      string
		is, other sample
		joins     bool
	}{
		{"the same", of(two("abcdefgh", 3, big)), of(two("abcdefgh", 3, big)), true},
		{"another value", of(two("abcdefgh", 3, big)), of(two("abcdeFGh", 3, big)), true},
		{"another byte before it", of(two("abcdefgh", 3, big)), of(two("abcdEfgh", 3, big)), false},
		{"another byte behind it", of(two("abcdefgh", 3, big)), of(two("abcdefgH", 3, big)), false},
		{"another first byte", of(two("abcdefgh", 3, big)), of(two("Abcdefgh", 3, big)), false},
		{"cut elsewhere", of(two("abcdefgh", 3)), of(two("abcdefgh", 4)), true}, // comes out the same
		{"a byte less", of(two("abcdefgh", 3)), of(two("abcdefg", 3)), false},
		{"a byte more", of(two("abcdefgh", 3)), of(two("abcdefghi", 3)), false},
		{"a span less", of(two("abcdefgh", 3)), sample{"abc", []parsers.Span{spanOf(3)}}, false},
		{"a span more", sample{"abc", []parsers.Span{spanOf(3)}}, of(two("abcdefgh", 3)), false},
		{"one span of two", of(two("abcdefgh", 3)), sample{"abcdefgh", []parsers.Span{spanOf(8)}}, false},
		{"no hole", of(two("abcdefgh", 3, big)), of(two("abcdeh", 3)), false},
		{"a hole", of(two("abcdeh", 3)), of(two("abcdefgh", 3, big)), false},
		{"a hole at another place", of(two("abcccccc", 3, big)), of(two("abcccccc", 3, with(big, func(h *parsers.Hole) { h.Off++ }))), false},
		{"a longer hole", of(two("abccccc", 3, big)), of(two("abcccccc", 3, with(big, func(h *parsers.Hole) { h.Len++ }))), false},
		{"another counter", of(two("abcdefgh", 3, big)), of(two("abcdefgh", 3, with(big, func(h *parsers.Hole) { h.Counter++ }))), false},
		{"another step", of(two("abcdefgh", 3, big)), of(two("abcdefgh", 3, with(big, func(h *parsers.Hole) { h.Step = 0 }))), false},
		{"another kind of hole", of(two("abc1234h", 3, big)), of(two("abc1234h", 3, with(big, func(h *parsers.Hole) { h.Kind = parsers.HoleDecimal }))), false},
		{
			"a longer decimal", of(two("abcde9h", 3, with(big, func(h *parsers.Hole) { h.Kind, h.Len = parsers.HoleDecimal, 1 }))),
			of(two("abcde10h", 3, with(big, func(h *parsers.Hole) { h.Kind = parsers.HoleDecimal }))), true,
		},
		{"another mask", of(two("abcdefgh", 3, mask)), of(two("abcdefgh", 3, with(mask, func(h *parsers.Hole) { h.Key++ }))), true},
		{"another phase", of(two("abcdefgh", 3, mask)), of(two("abcdefgh", 3, with(mask, func(h *parsers.Hole) { h.Phase++ }))), false},
		{ // where a second hole is depends on the length of the first
			"the second hole elsewhere",
			of(two("abccccccch", 3, big, with(big, func(h *parsers.Hole) { h.Off = 5 }))),
			of(two("abccccccch", 3, big, with(big, func(h *parsers.Hole) { h.Off = 4 }))), false,
		},
	} {
		m := newMerger(t, Config{})
		joined(t, tt.name, join(m, 1, codec.TCP4, 0x18, tt.is.payload, tt.is.spans...), 1)
		want := groupNumber(2)
		if tt.joins {
			want = 1
		}
		joined(t, tt.name, join(m, 2, codec.TCP4, 0x18, tt.other.payload, tt.other.spans...), want)
	}
}

func TestSegmentStaysBehindItsFlowsLast(t *testing.T) {
	m := newMerger(t, Config{})
	joined(t, "a", whole(m, 1, "a"), 1)
	joined(t, "b", whole(m, 1, "b"), 2)
	joined(t, "a behind b", whole(m, 1, "a"), 3)
	joined(t, "a behind a", whole(m, 1, "a"), 4)
	joined(t, "b of another flow", whole(m, 2, "b"), 2)
	joined(t, "a behind it", whole(m, 2, "a"), 3)
	joined(t, "b behind that", whole(m, 2, "b"), 5)
}

func TestSegmentJoinsTheOldestGroupThatItMay(t *testing.T) {
	m := newMerger(t, Config{})
	for n := range groupNumber(3) {
		joined(t, "the first flow", whole(m, 1, "a"), n+1)
	}
	for client := 2; client < 4; client++ {
		for n := range groupNumber(3) {
			joined(t, "another flow", whole(m, client, "a"), n+1)
		}
	}
}

func TestNothingJoinsAGroupBeforeWhatIsCarriedAsItIs(t *testing.T) {
	m := newMerger(t, Config{})
	joined(t, "before it", whole(m, 1, "a"), 1)
	m.verbatim(0, []byte("what"))
	if m.pending.barrier != 2 {
		t.Errorf("the barrier is at group %d", m.pending.barrier)
	}
	joined(t, "behind it", whole(m, 2, "a"), 3)
	joined(t, "behind it, too", whole(m, 3, "a"), 3)
	m.pending.reset()
	m.flows.frame++
	joined(t, "in the next frame", whole(m, 1, "a"), 1)
	joined(t, "in the next frame", whole(m, 2, "a"), 1)
}

func TestSixteenGroupsAreTried(t *testing.T) {
	for _, tt := range []struct {
		others int
		want   groupNumber
	}{{0, 1}, {14, 1}, {15, 1}, {16, 18}, {40, 42}} {
		m := newMerger(t, Config{})
		whole(m, 0, "wanted")
		for i := range tt.others {
			whole(m, 1, strings.Repeat("x", i+1))
		}
		joined(t, "behind others", whole(m, 2, "wanted"), tt.want)
	}
}

// What no protocol names, or nobody can read, is found by its bytes among any number.
func TestBytesNameWhatHasNoKey(t *testing.T) {
	for name, span := range map[string]parsers.Span{
		"opaque": {}, "encrypted": {Protocol: 1, Key: 77, Encrypted: true},
	} {
		m := newMerger(t, Config{})
		for client := range 2 {
			for i := range groupNumber(40) {
				payload := strings.Repeat("x", int(i+1))
				span.Len = len(payload)
				joined(t, name, join(m, client, codec.TCP4, 0x18, payload, span), i+1)
			}
		}
	}
}

func TestValuesAreThoseOfTheHoles(t *testing.T) {
	m := newMerger(t, Config{})
	big := func(off, n int) parsers.Hole { return parsers.Hole{Off: off, Len: n} }
	decimal := func(off, n int) parsers.Hole { return parsers.Hole{Off: off, Len: n, Kind: parsers.HoleDecimal} }
	join(m, 1, codec.TCP4, 0x18, "a\x01\x02b907c\x05d\xff\xff\xff\xff\xff\xff\xff\xff",
		spanOf(8, big(1, 2), decimal(4, 3)), spanOf(10, big(0, 1), big(2, 8)))
	n := join(m, 2, codec.TCP4, 0x18, "a\x00\x00b18446744073709c\x06d\x01\x02\x03\x04\x05\x06\x07\x08",
		spanOf(19, big(1, 2), decimal(4, 14)), spanOf(10, big(0, 1), big(2, 8)))
	g := &m.pending.list[n.index()]
	want := []uint64{0x0102, 907, 5, 1<<64 - 1, 0, 18446744073709, 6, 0x0102030405060708}
	if n != 1 || !slices.Equal(g.Values, want) {
		t.Errorf("group %d has %v, expected %v", n, g.Values, want)
	}
	text := parsers.Hole{Off: 1, Len: 5, Kind: parsers.HoleText}
	mask := parsers.Hole{Off: 1, Len: 0, Kind: parsers.HoleMask, Key: 0x01020304}
	at := m.encoder.Text(nil)
	n = join(m, 1, codec.TCP4, 0x18, "abcdefmask", spanOf(6, text), spanOf(4, mask))
	g = &m.pending.list[n.index()]
	if want := []uint64{at + 5, 0x01020304}; !slices.Equal(g.Values, want) {
		t.Errorf("%v, expected the text behind %v and the key", g.Values, at)
	}
}

func TestBodiesAreStoredOnceForAGroup(t *testing.T) {
	m := newMerger(t, Config{})
	p := &m.pending
	hole := parsers.Hole{Off: 2, Len: 3}
	for client, beside := range []int{3, 6, 9} {
		join(m, client, codec.TCP4, 0x18, "ab\x00\x00\x01cd", spanOf(7, hole))
		if string(p.store) != "abcd" || p.beside != beside {
			t.Errorf("%q is stored, %d bytes are beside it, expected %d", p.store, p.beside, beside)
		}
	}
	whole(m, 1, "other")
	if string(p.store) != "abcdother" || p.beside != 9 {
		t.Errorf("%q is stored, %d bytes are beside it", p.store, p.beside)
	}
}

func TestGroupIsDescribed(t *testing.T) {
	m := newMerger(t, Config{})
	event := []byte("plant/4")
	holes := []parsers.Hole{{Off: 2, Len: 3}, {Off: 8, Len: 1, Counter: 2, Step: 1}}
	first := parsers.Span{
		Len: 10, At: 0, Protocol: 3, Name: 4, Class: parsers.ClassUrgent, Event: event, Key: 5, Body: 8, NumHoles: 2,
		Holes: [parsers.MaxHoles]parsers.Hole{holes[0], holes[1]},
	}
	second := parsers.Span{Len: 5, At: 70, Protocol: 6, Name: 7, Class: parsers.ClassAck, Key: 8, Body: 5, Encrypted: true}
	n := join(m, 1, codec.TCP6, 0x18, "ab012cde9fother", first, second)
	copy(event, "changed")
	g := &m.pending.list[n.index()]
	if g.Kind != codec.TCP6 || g.Flags != 0x18 || len(g.Spans) != 2 || g.Holes() != 2 {
		t.Fatalf("kind %d, flags %x, %d spans with %d holes", g.Kind, g.Flags, len(g.Spans), g.Holes())
	}
	for i, want := range []struct {
		body, event string
		advice      codec.Advice
	}{
		{"abcdef", "plant/4", codec.Advice{Key: 5, Split: 5, Protocol: 3, Name: 4, Class: parsers.ClassUrgent}}, // the second hole is in the body
		{"other", "", codec.Advice{Key: 8, Split: 5, At: 70, Protocol: 6, Name: 7, Class: parsers.ClassAck, Encrypted: true}},
	} {
		s := g.Spans[i]
		if string(s.Body) != want.body || cap(s.Body) != len(s.Body) || string(s.Event) != want.event {
			t.Errorf("span %d: %q, %q", i, s.Body, s.Event)
		}
		s.Event = nil
		if a := s.Advice; a.Key != want.advice.Key || a.Split != want.advice.Split || a.At != want.advice.At ||
			a.Protocol != want.advice.Protocol || a.Name != want.advice.Name || a.Class != want.advice.Class || a.Encrypted != want.advice.Encrypted {
			t.Errorf("span %d: %+v, expected %+v", i, a, want.advice)
		}
	}
	want := []codec.Hole{codec.HoleOf(&holes[0], 0), codec.HoleOf(&holes[1], 3)}
	if !slices.Equal(g.Spans[0].Holes, want) || len(g.Spans[1].Holes) != 0 {
		t.Errorf("holes %+v, expected %+v", g.Spans[0].Holes, want)
	}
}

func TestOnlyGroupsWithPayloadAreLikeOthers(t *testing.T) {
	m := newMerger(t, Config{})
	with, without := whole(m, 1, "a"), join(m, 1, codec.TCP4, 0x10, "")
	if !m.pending.groups[with.index()].wait.payload || m.pending.groups[without.index()].wait.payload {
		t.Error("the schedule is told otherwise")
	}
}

// Nothing of a frame is left in the next one, of few groups or of many.
func TestFramesBeginEmpty(t *testing.T) {
	for _, n := range []int{1, 1<<10 + 1} {
		m := newMerger(t, Config{Limits: wire.Limits{Flows: 4096, Templates: 64, Bodies: 1 << 16, Packets: 4096, Bytes: 1 << 20}})
		for client := range n {
			add(t, m, 0, data(client, strings.Repeat("x", client%7)+string(rune('a'+client/7))).Packet())
		}
		add(t, m, 0, broken(data(1, "x")))
		m.Flush(nil, 0, FlushEnd)
		p := &m.pending
		if len(p.groups)+len(p.list)+len(p.first)+len(p.store)+len(p.events)+p.bytes+p.beside+p.fresh != 0 || p.barrier != 0 || p.digest != 0 {
			t.Errorf("%d groups: left are %d and %d groups, %d keys, %d and %d bytes, counts of %d, %d and %d, barrier %d, digest %x",
				n, len(p.groups), len(p.list), len(p.first), len(p.store), len(p.events), p.bytes, p.beside, p.fresh, p.barrier, p.digest)
		}
	}
}
