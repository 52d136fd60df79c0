package aggregate

import (
	"strings"
	"testing"

	"sheaf/parsers"
)

func TestSpansThatAddUpAreTrusted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lens  []int
		trust bool
	}{
		{"one", []int{10}, true},
		{"several", []int{1, 4, 5}, true},
		{"too little", []int{4, 5}, false},
		{"too much", []int{4, 7}, false},
		{"behind the end", []int{10, 1}, false},
		{"none", nil, false},
		{"of nothing", []int{4, 0, 6}, false},
		{"negative", []int{11, -1}, false},
		{"negative at first", []int{-1, 11}, false},
	} {
		var spans []parsers.Span
		for _, n := range tt.lens {
			spans = append(spans, spanOf(n))
		}
		got := trust(spans, []byte("0123456789"))
		if trusted := len(got) == len(tt.lens) && got[0].Protocol == 1; trusted != tt.trust {
			t.Errorf("%s: trusted %v", tt.name, trusted)
		}
		if !tt.trust && (len(got) != 1 || got[0].Len != 10 || got[0].Protocol != parsers.Opaque || got[0].NumHoles != 0) {
			t.Errorf("%s: %+v, expected one opaque span", tt.name, got)
		}
	}
	if got := trust(nil, nil); len(got) != 0 {
		t.Errorf("no payload: %+v", got)
	}
	if got := trust([]parsers.Span{spanOf(1)}, nil); len(got) != 0 {
		t.Errorf("no payload, and a span: %+v", got)
	}
}

// A hole is trusted where its bytes come of its number again, and in no other place.
func TestHolesThatCanBeRebuiltAreTrusted(t *testing.T) {
	const payload = "ab0123456789" + "12345678901234567890" + "x"
	long := strings.Repeat("t", parsers.MaxHoleText+1)
	big := func(off, n int) parsers.Hole { return parsers.Hole{Off: off, Len: n} }
	of := func(kind parsers.HoleKind, off, n int) parsers.Hole {
		return parsers.Hole{Off: off, Len: n, Kind: kind}
	}
	for _, tt := range []struct {
		name    string
		payload string
		holes   []parsers.Hole
		trust   bool
	}{
		{"at the begin", payload, []parsers.Hole{big(0, 8)}, true},
		{"at the end", payload, []parsers.Hole{big(len(payload)-8, 8)}, true},
		{"past the end", payload, []parsers.Hole{big(len(payload)-7, 8)}, false},
		{"before the begin", payload, []parsers.Hole{big(-1, 8)}, false},
		{"one behind the other", payload, []parsers.Hole{big(0, 2), big(2, 1)}, true},
		{"one in the other", payload, []parsers.Hole{big(0, 2), big(1, 1)}, false},
		{"in no order", payload, []parsers.Hole{big(2, 1), big(0, 2)}, false},
		{"more than 64 bits", payload, []parsers.Hole{big(0, 9)}, false},
		{"of nothing", payload, []parsers.Hole{big(0, 0)}, false},
		{"of less", payload, []parsers.Hole{big(3, -1)}, false},
		{"the last counter", payload, []parsers.Hole{{Len: 1, Counter: parsers.NumCounters - 1}}, true},
		{"past the last counter", payload, []parsers.Hole{{Len: 1, Counter: parsers.NumCounters}}, false},
		{"a step", payload, []parsers.Hole{{Len: 1, Step: 1}}, true},
		{"two steps", payload, []parsers.Hole{{Len: 1, Step: 2}}, false},
		{"digits", payload, []parsers.Hole{of(parsers.HoleDecimal, 3, 9)}, true},
		{"the longest digits", payload, []parsers.Hole{of(parsers.HoleDecimal, 12, parsers.MaxHoleDigits)}, true},
		{"too many digits", payload, []parsers.Hole{of(parsers.HoleDecimal, 12, parsers.MaxHoleDigits+1)}, false},
		{"a leading zero", payload, []parsers.Hole{of(parsers.HoleDecimal, 2, 3)}, false},
		{"no digits", payload, []parsers.Hole{of(parsers.HoleDecimal, 1, 2)}, false},
		{"a text", long, []parsers.Hole{of(parsers.HoleText, 0, parsers.MaxHoleText)}, true},
		{"too long a text", long, []parsers.Hole{of(parsers.HoleText, 0, parsers.MaxHoleText+1)}, false},
		{"a text that counts", long, []parsers.Hole{{Len: 3, Kind: parsers.HoleText, Step: 1}}, false},
		{"an unknown kind", payload, []parsers.Hole{of(parsers.HoleMask+1, 0, 1)}, false},
		{"a mask", payload, []parsers.Hole{of(parsers.HoleMask, 2, 0)}, true},
		{"a mask that is not the first", payload, []parsers.Hole{big(0, 1), of(parsers.HoleMask, 2, 0)}, false},
	} {
		got := trust([]parsers.Span{spanOf(len(tt.payload), tt.holes...)}, []byte(tt.payload))
		if trusted := got[0].Protocol == 1; trusted != tt.trust {
			t.Errorf("%s: trusted %v", tt.name, trusted)
		}
	}
	for n := parsers.MaxHoles; n < parsers.MaxHoles+2; n++ {
		s := spanOf(len(payload))
		s.NumHoles = n
		for i := range s.Holes {
			s.Holes[i] = big(i, 1)
		}
		if got := trust([]parsers.Span{s}, []byte(payload)); (got[0].Protocol == 1) != (n == parsers.MaxHoles) {
			t.Errorf("%d holes are trusted, or not", n)
		}
	}
}

// Each span's holes are looked at in its own bytes.
func TestHolesAreThoseOfTheirSpan(t *testing.T) {
	digits := parsers.Hole{Off: 1, Len: 2, Kind: parsers.HoleDecimal}
	for payload, trusted := range map[string]bool{"a12b34": true, "12ab34": false, "a1234b": false} {
		got := trust([]parsers.Span{spanOf(3, digits), spanOf(3, digits)}, []byte(payload))
		if (len(got) == 2) != trusted {
			t.Errorf("%s: %d spans", payload, len(got))
		}
	}
}

// The masks of several spans are taken off each with its own key.
func TestEachSpanHasItsMask(t *testing.T) {
	payload := []byte("abcd" + "efgh" + "ijkl" + "mn")
	mask := func(key uint32, phase uint8) parsers.Hole {
		return parsers.Hole{Off: 1, Kind: parsers.HoleMask, Key: key, Phase: phase}
	}
	parsers.MaskInPlace(payload[1:4], 0x01020304, 0)
	parsers.MaskInPlace(payload[9:12], 0x05060708, 3)
	m := newMerger(t, Config{})
	m.spans = []parsers.Span{spanOf(4, mask(0x01020304, 0)), spanOf(4), spanOf(4, mask(0x05060708, 3)), spanOf(2)}
	before := string(payload)
	if got := m.unmask(payload); string(got) != "abcdefghijklmn" || string(payload) != before || len(m.spans) != 4 {
		t.Errorf("%q, %d spans, the packet %q", got, len(m.spans), payload)
	}
	// what has none, whatever other holes there are or were, is left as it is
	stale := spanOf(14, mask(0x01020304, 0))
	stale.NumHoles = 0
	for _, s := range []parsers.Span{spanOf(14), spanOf(14, parsers.Hole{Off: 1, Len: 2}), stale} {
		m.spans = []parsers.Span{s}
		if got := m.unmask(payload); &got[0] != &payload[0] {
			t.Errorf("a payload without masks was copied: %d holes", s.NumHoles)
		}
	}
}

func TestMasksThatCanBePutOnAgainAreTrusted(t *testing.T) {
	b := []byte("ab\x00\x02\x03\x04cd")
	const key = 0x00020304
	for _, tt := range []struct {
		hole  parsers.Hole
		trust bool
	}{
		{parsers.Hole{Off: 2, Len: 4, Key: key}, true},
		{parsers.Hole{Off: 2, Len: 4, Key: key + 1}, false},
		{parsers.Hole{Off: 3, Len: 4, Key: key}, false},
		{parsers.Hole{Off: 2, Len: 4, Key: key, Phase: 1}, false},
		{parsers.Hole{Off: 2, Len: 3, Key: key}, false},
		{parsers.Hole{Off: 2, Len: 5, Key: key}, false},
		{parsers.Hole{Off: 4, Len: 4, Key: 0x03046364}, true}, // up to the end
		{parsers.Hole{Off: 5, Len: 4, Key: 0x04636400}, false},
		{parsers.Hole{Off: -1, Len: 4, Key: key}, false},
		{parsers.Hole{Off: 0, Len: 4, Key: 0x61620002}, true},
		{parsers.Hole{Off: 0, Key: 7, Phase: 3}, true},
		{parsers.Hole{Off: 0, Key: 7, Phase: 4}, false},
		{parsers.Hole{Off: 8, Key: 7}, true},
		{parsers.Hole{Off: 9, Key: 7}, false},
		{parsers.Hole{Off: -1, Key: 7}, false},
	} {
		if got := trustMask(&tt.hole, b); got != tt.trust {
			t.Errorf("%+v: trusted %v", tt.hole, got)
		}
	}
}
