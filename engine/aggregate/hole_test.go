package aggregate

import (
	"bytes"
	"fmt"
	"testing"

	"sheaf/parsers"
)

// tagged is a protocol for tests: 'T', the length of a tag, the tag, a number
// of four digits without leading zeros, and a body.
type tagged struct{ id parsers.ProtocolID }

func (s tagged) Scan(dst []parsers.Span, b []byte) []parsers.Span {
	n := int(b[1])
	sp := parsers.Span{Len: len(b), Protocol: s.id, Key: 77, Body: 2 + n + 4, NumHoles: 2}
	sp.Holes[0] = parsers.Hole{Off: 2, Len: n, Kind: parsers.HoleText, Counter: 1}
	sp.Holes[1] = parsers.Hole{Off: 2 + n, Len: 4, Kind: parsers.HoleDecimal, Counter: 2, Step: 1}
	return append(dst, sp)
}

func (s tagged) Rescan(dst []parsers.Span, b []byte) []parsers.Span { return s.Scan(dst, b) }
func (tagged) Lost()                                                {}

func taggedRegistry() *parsers.Registry {
	return parsers.NewRegistry(parsers.Protocol{
		Name: "tagged", Ports: []uint16{1883},
		Probe: func(b []byte) parsers.Confidence {
			if len(b) > 2 && b[0] == 'T' && len(b) > 6+int(b[1]) {
				return parsers.Strong
			}
			return parsers.None
		},
		New: func(id parsers.ProtocolID) parsers.Scanner { return tagged{id} },
	})
}

// A text that is another for each subscriber costs nothing once it is known.
func TestTextHoles(t *testing.T) {
	p := newPair(t, Config{Registry: taggedRegistry()})
	f := newFanout(40)
	tag := func(i int) string { return fmt.Sprintf("ctag-%x-%d", i*7919+13, i) }
	round := func(tag func(int) string) int {
		before := p.bytes[1]
		f.send(func(i int) []byte {
			return fmt.Appendf(nil, "T%c%s%d%s", len(tag(i)), tag(i), 2000+i*50+f.round, body(f.round))
		}, p.run)
		p.due(f.now + 40*ms)
		return p.bytes[1] - before
	}
	for range 10 {
		round(tag)
	}
	total := 0
	for range 10 {
		total += round(tag)
	}
	if total > 160 {
		t.Errorf("%d bytes for ten messages to 40 with tags of their own", total)
	}
	// and when they change they are learned again
	round(func(i int) string { return "other-" + tag(i) })
	if got := round(func(i int) string { return "other-" + tag(i) }); got > 24 {
		t.Errorf("%d bytes after the tags were learned again", got)
	}
}

// A scanner that is wrong about its spans costs bytes, never correctness.
func TestTrust(t *testing.T) {
	payload := []byte("ab0123456789012345678901234567890")
	hole := func(off, n int, kind parsers.HoleKind) parsers.Span {
		s := parsers.Span{Len: len(payload), Protocol: 1, NumHoles: 1}
		s.Holes[0] = parsers.Hole{Off: off, Len: n, Kind: kind}
		return s
	}
	tests := []struct {
		name  string
		spans []parsers.Span
		ok    bool
	}{
		{"all", []parsers.Span{{Len: 3}, {Len: len(payload) - 3}}, true},
		{"none", nil, false},
		{"too short", []parsers.Span{{Len: 3, Protocol: 1}}, false},
		{"too long", []parsers.Span{{Len: 100, Protocol: 1}}, false},
		{"empty", []parsers.Span{{Len: 0}, {Len: len(payload)}}, false},
		{"big", []parsers.Span{hole(0, 8, parsers.HoleBig)}, true},
		{"too big", []parsers.Span{hole(0, 9, parsers.HoleBig)}, false},
		{"past the end", []parsers.Span{hole(len(payload)-1, 2, parsers.HoleBig)}, false},
		{"negative", []parsers.Span{hole(-1, 2, parsers.HoleBig)}, false},
		{"decimal", []parsers.Span{hole(3, 4, parsers.HoleDecimal)}, true},
		{"leading zero", []parsers.Span{hole(2, 4, parsers.HoleDecimal)}, false},
		{"lone zero", []parsers.Span{hole(2, 1, parsers.HoleDecimal)}, true},
		{"no digits", []parsers.Span{hole(0, 4, parsers.HoleDecimal)}, false},
		{"too many digits", []parsers.Span{hole(3, 20, parsers.HoleDecimal)}, false},
		{"text", []parsers.Span{hole(0, 5, parsers.HoleText)}, true},
		{"kind", []parsers.Span{hole(0, 5, 9)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := trust(append([]parsers.Span(nil), tt.spans...), payload)
			if ok := len(got) == len(tt.spans) && len(got) > 0 && got[0].Protocol == tt.spans[0].Protocol && got[0].NumHoles == tt.spans[0].NumHoles; ok != tt.ok {
				t.Errorf("spans %+v", got)
			}
			sum := 0
			for _, s := range got {
				sum += s.Len
			}
			if sum != len(payload) {
				t.Errorf("%d of %d bytes", sum, len(payload))
			}
		})
	}
}

func TestHoleFills(t *testing.T) {
	texts := []byte("hello")
	for _, tt := range []struct {
		h    hole
		v    uint64
		want string
	}{
		{hole{kind: parsers.HoleBig, width: 2}, 0x0102, "\x01\x02"},
		{hole{kind: parsers.HoleBig, width: 8}, 1, "\x00\x00\x00\x00\x00\x00\x00\x01"},
		{hole{kind: parsers.HoleMask, width: withKey}, 0x01020304, "\x01\x02\x03\x04"},
		{hole{kind: parsers.HoleMask, width: 3}, 0x01020304, ""},
		{hole{kind: parsers.HoleDecimal}, 0, "0"},
		{hole{kind: parsers.HoleDecimal}, 9999999999999999999, "9999999999999999999"},
		{hole{kind: parsers.HoleText}, textValue(1, 3), "ell"},
	} {
		got := tt.h.append([]byte("x"), tt.v, texts)
		if !bytes.Equal(got, append([]byte("x"), tt.want...)) || tt.h.len(tt.v) != len(tt.want) {
			t.Errorf("%+v of %d: %q", tt.h, tt.v, got)
		}
	}
}
