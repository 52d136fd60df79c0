package codec

import (
	"bytes"
	"testing"

	"sheaf/parsers"
)

// A hole is where it is once those before it are taken out, and knows how wide it is.
func TestHoleOf(t *testing.T) {
	for _, tt := range []struct {
		h    parsers.Hole
		out  int
		want Hole
	}{
		{parsers.Hole{Off: 7, Len: 2, Kind: parsers.HoleBig, Counter: 1, Step: 1}, 3, Hole{at: 4, kind: parsers.HoleBig, width: 2, counter: 1, step: 1}},
		{parsers.Hole{Off: 7, Len: 5, Kind: parsers.HoleDecimal, Counter: 2}, 0, Hole{at: 7, kind: parsers.HoleDecimal, counter: 2}},
		{parsers.Hole{Off: 7, Len: 5, Kind: parsers.HoleText, Counter: 3}, 0, Hole{at: 7, kind: parsers.HoleText, counter: 3}},
		{parsers.Hole{Off: 2, Len: 4, Kind: parsers.HoleMask, Key: 9}, 0, Hole{at: 2, kind: parsers.HoleMask, width: withKey}},
		{parsers.Hole{Off: 0, Kind: parsers.HoleMask, Phase: 3, Key: 9}, 0, Hole{kind: parsers.HoleMask, width: 3}},
	} {
		if got := HoleOf(&tt.h, tt.out); got != tt.want {
			t.Errorf("%+v behind %d bytes: %+v, expected %+v", tt.h, tt.out, got, tt.want)
		}
	}
}

// A number has 1 to 8 bytes; a mask comes first, with a key of four or a phase.
func TestHoleValid(t *testing.T) {
	for _, tt := range []struct {
		kind  parsers.HoleKind
		width uint8
		i     int
		want  bool
	}{
		{parsers.HoleBig, 0, 0, false}, {parsers.HoleBig, 1, 0, true}, {parsers.HoleBig, 8, 5, true}, {parsers.HoleBig, 9, 0, false},
		{parsers.HoleMask, 0, 0, true}, {parsers.HoleMask, 4, 0, true}, {parsers.HoleMask, 5, 0, false}, {parsers.HoleMask, 4, 1, false},
		{parsers.HoleDecimal, 15, 3, true}, {parsers.HoleText, 15, 3, true},
	} {
		if got := (Hole{kind: tt.kind, width: tt.width}).valid(tt.i); got != tt.want {
			t.Errorf("kind %d, width %d, as hole %d: %v", tt.kind, tt.width, tt.i, got)
		}
	}
}

func TestHoleFills(t *testing.T) {
	texts := []byte("hello")
	for _, tt := range []struct {
		h    Hole
		v    uint64
		want string
	}{
		{Hole{kind: parsers.HoleBig, width: 2}, 0x0102, "\x01\x02"},
		{Hole{kind: parsers.HoleBig, width: 1}, 0x0102, "\x02"},
		{Hole{kind: parsers.HoleBig, width: 8}, 1, "\x00\x00\x00\x00\x00\x00\x00\x01"},
		{Hole{kind: parsers.HoleMask, width: withKey}, 0x01020304, "\x01\x02\x03\x04"},
		{Hole{kind: parsers.HoleMask, width: 3}, 0x01020304, ""},
		{Hole{kind: parsers.HoleDecimal}, 0, "0"},
		{Hole{kind: parsers.HoleDecimal}, 9, "9"},
		{Hole{kind: parsers.HoleDecimal}, 10, "10"},
		{Hole{kind: parsers.HoleDecimal}, 9999999999999999999, "9999999999999999999"},
		{Hole{kind: parsers.HoleText}, textValue(1, 3), "ell"},
		{Hole{kind: parsers.HoleText}, textValue(0, 5), "hello"},
	} {
		got := tt.h.append([]byte("x"), tt.v, texts)
		if !bytes.Equal(got, append([]byte("x"), tt.want...)) || tt.h.len(tt.v) != len(tt.want) {
			t.Errorf("%+v of %d: %q, %d bytes", tt.h, tt.v, got, tt.h.len(tt.v))
		}
	}
}

// A number that does not fit goes on from 0; a decimal one, and one of eight bytes, has
// no end of its own.
func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		h       Hole
		v, want uint64
	}{
		{Hole{kind: parsers.HoleBig, width: 1}, 256, 0},
		{Hole{kind: parsers.HoleBig, width: 2}, 65535, 65535},
		{Hole{kind: parsers.HoleBig, width: 2}, 65536 + 7, 7},
		{Hole{kind: parsers.HoleBig, width: 7}, 1<<64 - 1, 1<<56 - 1},
		{Hole{kind: parsers.HoleBig, width: 8}, 1<<64 - 1, 1<<64 - 1},
		{Hole{kind: parsers.HoleMask, width: withKey}, 1 << 32, 0},
		{Hole{kind: parsers.HoleMask}, 1<<33 - 1, 1<<32 - 1},
		{Hole{kind: parsers.HoleDecimal}, 1<<64 - 1, 1<<64 - 1},
	} {
		if got := tt.h.wrap(tt.v); got != tt.want {
			t.Errorf("%+v: %d became %d, expected %d", tt.h, tt.v, got, tt.want)
		}
	}
}

// A mask begins behind the hole that holds its key, or where it is, in its phase; other
// holes have none.
func TestSpanMask(t *testing.T) {
	key := uint64(0x01020304)
	for _, tt := range []struct {
		name string
		h    Hole
		want []byte
	}{
		{"with its key", Hole{at: 1, kind: parsers.HoleMask, width: withKey}, []byte{0, 0, 0, 0, 0, 1, 2, 3}},
		{"that goes on", Hole{at: 1, kind: parsers.HoleMask, width: 3}, []byte{0, 4, 1, 2, 3, 4, 1, 2}},
		{"in its first phase", Hole{kind: parsers.HoleMask}, []byte{1, 2, 3, 4, 1, 2, 3, 4}},
		{"none", Hole{kind: parsers.HoleBig, width: 4}, make([]byte, 8)},
	} {
		s := Span{Holes: []Hole{tt.h}}
		b := make([]byte, 8)
		if s.mask(b, key); !bytes.Equal(b, tt.want) {
			t.Errorf("%s: % x, expected % x", tt.name, b, tt.want)
		}
	}
}

// The payload of a member is the bodies of all spans, with its own values in their holes,
// span by span, and masks over them.
func TestFill(t *testing.T) {
	d := &Decoder{}
	d.texts = []byte("AliceBob")
	big, text := Hole{at: 1, kind: parsers.HoleBig, width: 2}, Hole{at: 2, kind: parsers.HoleText}
	mask := Hole{at: 1, kind: parsers.HoleMask, width: withKey}
	g := &Group{
		Spans: []Span{
			{Body: []byte("ab"), Holes: []Hole{big, text}}, {Body: []byte("plain")},
			{Body: []byte{9, 0, 0}, Holes: []Hole{mask, {at: 3, kind: parsers.HoleDecimal}}},
		},
		Values: []uint64{0x4142, textValue(0, 5), 0x01020304, 7, 0x4344, textValue(5, 3), 0x05060708, 42},
	}
	g.CountHoles()
	for i, want := range []string{
		"aABbAliceplain\x09\x01\x02\x03\x04\x01\x02" + string([]byte{'7' ^ 3}),
		"aCDbBobplain\x09\x05\x06\x07\x08\x05\x06" + string([]byte{'4' ^ 7, '2' ^ 8}),
	} {
		g.Members = append(g.Members, Member{})
		if got := string(d.fill(g, i)); got != want {
			t.Errorf("member %d: %q, expected %q", i, got, want)
		}
		if got := g.Size(i); got != len(want) {
			t.Errorf("member %d: %d bytes, expected %d", i, got, len(want))
		}
	}
}
