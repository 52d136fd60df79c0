package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// The examples of SPEC.md 5.1.
func TestTokens(t *testing.T) {
	long := strings.Repeat("a", maxWord)
	digits := strings.Repeat("7", maxDigits)
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{`{"t":21.5}`, []string{"{", `"`, "t", `"`, ":", "21.5", "}"}},
		{"a_b-c9", []string{"a_b", "-", "c", "9"}},
		{"12.", []string{"12", "."}},
		{"1.2.3", []string{"1.2", ".", "3"}},
		{".5", []string{".", "5"}},
		{"a.10.9", []string{"a", ".", "10", ".", "9"}},
		{"10.1.1.16", []string{"10.1", ".", "1", ".", "16"}},
		{"007", []string{"007"}},
		{"é€x", []string{"é€x"}},
		{long + "bc", []string{long, "bc"}},
		{digits + "8", []string{digits, "8"}},
		{digits + ".8", []string{digits, ".", "8"}},
		{digits[1:] + ".89", []string{digits[1:] + ".8", "9"}},
		{"1." + digits, []string{"1." + digits[1:], "7"}},
	} {
		var got []string
		for _, tk := range tokens(nil, []byte(tt.in)) {
			got = append(got, tt.in[tk.at:tk.at+tk.n])
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestTokensCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := genBytes(t, "bytes")
		at := 0
		for _, tk := range tokens(nil, b) {
			if tk.at != at || tk.n < 1 {
				t.Fatalf("token of %d bytes at %d, expected at %d", tk.n, tk.at, at)
			}
			at += tk.n
		}
		if at != len(b) {
			t.Fatalf("tokens of %d bytes end at %d", len(b), at)
		}
	})
}

func TestNumbers(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want number
	}{
		{"0", number{0, 0, 1, false}},
		{"00", number{0, 0, 2, true}},
		{"7", number{7, 0, 1, false}},
		{"007", number{7, 0, 3, true}},
		{"0.07", number{7, 2, 3, false}},
		{"00.7", number{7, 1, 3, true}},
		{"21.50", number{2150, 2, 4, false}},
		{"999999999999999999", number{999999999999999999, 0, 18, false}},
	} {
		got := parseNumber([]byte(tt.in))
		if got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.in, got, tt.want)
		}
		if back := string(appendLike(nil, got.value, got)); back != tt.in {
			t.Errorf("%q came back as %q", tt.in, back)
		}
	}
}

func TestAppendLike(t *testing.T) {
	for _, tt := range []struct {
		value int64
		like  string
		want  string
	}{
		{12, "7", "12"},
		{0, "12", "0"},
		{12, "007", "012"},
		{1234, "007", "1234"},
		{5, "21.50", "0.05"},
		{5, "021.50", "000.05"},
		{0, "1.5", "0.0"},
		{1<<63 - 1, "1", "9223372036854775807"},
		{1<<63 - 1, "0.12345678901234567", "92.23372036854775807"},
	} {
		if got := string(appendLike(nil, tt.value, parseNumber([]byte(tt.like)))); got != tt.want {
			t.Errorf("%d like %s: %s, want %s", tt.value, tt.like, got, tt.want)
		}
	}
}

// Every number token takes its own form again.
func TestNumberForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(rapid.StringMatching(`[0-9]{1,12}(\.[0-9]{1,8})?`).Draw(t, "number"))
		_, n := nextToken(b, 0)
		num := parseNumber(b[:n])
		if got := appendLike(nil, num.value, num); string(got) != string(b[:n]) {
			t.Fatalf("%q came back as %q", b[:n], got)
		}
	})
}

func TestAdvance(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want int64
	}{
		{"1717171717", 1717171717 + 61},
		{"1717171717123", 1717171717123 + 61_500},
		{"1717171717123456", 1717171717123456 + 61_500_000},
		{"171717171", 171717171},
		{"17171717171", 17171717171},
		{"0717171717", 717171717},
		{"171717171.7", 1717171717},
	} {
		if got := advance(parseNumber([]byte(tt.in)), 61_500); got != tt.want {
			t.Errorf("%s: expects %d, want %d", tt.in, got, tt.want)
		}
	}
	if got := advance(parseNumber([]byte("1717171717")), -1500); got != 1717171717-1 {
		t.Errorf("back in time: expects %d", got)
	}
}
