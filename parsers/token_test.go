package parsers

import (
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestTokenEnd holds TokenEnd against a loop over single bytes.
func TestTokenEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.SampledFrom([]byte("\x00\x01\t\r\n !./09:;@Az\x7f\x80\xa0\xff")), 0, 40).Draw(t, "bytes")
		at := rapid.IntRange(0, len(b)).Draw(t, "at")
		low := rapid.ByteRange(0, 0x80).Draw(t, "low")
		stop := rapid.SampledFrom([]byte(".: \n\xff")).Draw(t, "stop")
		want := at
		for want < len(b) && b[want] >= low && b[want] != stop {
			want++
		}
		if got := TokenEnd(b, at, low, stop); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
		want = at
		for want < len(b) && b[want] >= low {
			want++
		}
		if got := LowEnd(b, at, low); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
	})
}

// TestDecimalEnd holds that what is taken for a decimal number can be written again
// from its value, and that nothing else can.
func TestDecimalEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		digits := rapid.StringMatching(`[0-9]{0,21}`).Draw(t, "digits")
		before := rapid.SampledFrom([]string{"", "x", "longer than eight"}).Draw(t, "before")
		after := rapid.SampledFrom([]string{"", ".", "/:;", "\xb0\x00 and more", "e3"}).Draw(t, "after")
		want := len(before) + len(digits)
		n, err := strconv.ParseUint(digits, 10, 64)
		good := err == nil && strconv.FormatUint(n, 10) == digits && len(digits) <= MaxHoleDigits
		if !good {
			want = len(before)
		}
		if got := DecimalEnd([]byte(before+digits+after), len(before)); got != want {
			t.Fatalf("%q: %d, want %d", before+digits+after, got, want)
		}
		if IsDecimal([]byte(digits)) != good || IsDecimal([]byte(digits+"x")) {
			t.Fatalf("%q is a number: %v", digits, !good)
		}
	})
}

// TestAddHole holds that a span has no more holes than there is room for.
func TestAddHole(t *testing.T) {
	var sp Span
	for i := range MaxHoles + 2 {
		sp.AddHole(i, 1, HoleText, 3, 0)
	}
	last := sp.Holes[MaxHoles-1]
	if want := (Hole{Off: MaxHoles - 1, Len: 1, Kind: HoleText, Counter: 3}); sp.NumHoles != MaxHoles || last != want {
		t.Errorf("%d holes, the last %+v", sp.NumHoles, last)
	}
}

func BenchmarkTokenEnd(b *testing.B) {
	p := []byte(strings.Repeat("x", 25) + " and more")
	for b.Loop() {
		TokenEnd(p, 0, '!', ' ')
	}
}

func BenchmarkDecimalEnd(b *testing.B) {
	p := []byte("1795988128205000000.3 and more")
	for b.Loop() {
		DecimalEnd(p, 0)
	}
}

func TestDecimal(t *testing.T) {
	for s, want := range map[string]int{
		"0": 0, "7": 7, "042": 42, "999999999": 999_999_999,
		"": -1, "1000000000": -1, "-1": -1, "1x": -1, "/": -1, ":": -1,
	} {
		n, ok := Decimal([]byte(s))
		if ok != (want >= 0) || ok && n != want {
			t.Errorf("%q: %d, %v", s, n, ok)
		}
	}
}
