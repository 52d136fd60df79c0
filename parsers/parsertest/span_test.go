package parsertest_test

import (
	"fmt"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

// A recorder is a TB that keeps what failed first.
type recorder struct{ failure string }

func (*recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	if r.failure == "" {
		r.failure = fmt.Sprintf(format, args...)
	}
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}

// failure returns what check failed with first, "" when it did not.
func failure(check func(parsertest.TB)) (what string) {
	r := new(recorder)
	defer func() {
		if stop := recover(); stop != nil && stop != any(r) {
			panic(stop)
		}
		what = r.failure
	}()
	check(r)
	return
}

// TestCheckSpans holds that spans which are wrong are found out: the tests of all
// protocols rest on it.
func TestCheckSpans(t *testing.T) {
	hole := func(h parsers.Hole) func(*parsers.Span) {
		return func(sp *parsers.Span) { sp.Holes[0], sp.NumHoles = h, 1 }
	}
	for name, change := range map[string]func(*parsers.Span){
		"empty":                 func(sp *parsers.Span) { sp.Len = 0 },
		"too short":             func(sp *parsers.Span) { sp.Len = 9 },
		"too long":              func(sp *parsers.Span) { sp.Len = 11 },
		"before its message":    func(sp *parsers.Span) { sp.At = -1 },
		"body outside":          func(sp *parsers.Span) { sp.Body = 11 },
		"no key":                func(sp *parsers.Span) { sp.Key = 0 },
		"key of nothing":        func(sp *parsers.Span) { sp.Protocol = parsers.Opaque },
		"too many holes":        func(sp *parsers.Span) { sp.NumHoles = parsers.MaxHoles + 1 },
		"hole outside":          hole(parsers.Hole{Off: 9, Len: 2}),
		"hole of nothing":       hole(parsers.Hole{Off: 2}),
		"hole too large":        hole(parsers.Hole{Len: 9}),
		"no such counter":       hole(parsers.Hole{Len: 1, Counter: parsers.NumCounters}),
		"no such step":          hole(parsers.Hole{Len: 1, Step: 2}),
		"no such kind":          hole(parsers.Hole{Len: 1, Kind: parsers.HoleMask + 1}),
		"mask of another key":   hole(parsers.Hole{Len: 4, Kind: parsers.HoleMask, Key: 1}),
		"mask out of phase":     hole(parsers.Hole{Kind: parsers.HoleMask, Phase: 4}),
		"text that counts":      hole(parsers.Hole{Len: 1, Kind: parsers.HoleText, Step: 1}),
		"no digits":             hole(parsers.Hole{Off: 1, Len: 2, Kind: parsers.HoleDecimal}),
		"zero in front":         hole(parsers.Hole{Off: 0, Len: 2, Kind: parsers.HoleDecimal}),
		"holes that overlap":    func(sp *parsers.Span) { sp.Holes[0].Len, sp.Holes[1].Len, sp.NumHoles = 2, 2, 2 },
		"not of the protocol":   func(sp *parsers.Span) { sp.Name = 99 },
		"what a datagram lacks": func(sp *parsers.Span) { sp.At = 1 },
	} {
		suite := parsertest.Suite[string]{Datagrams: true, Span: func(sp parsers.Span) bool { return sp.Name != 99 }}
		good := parsers.Span{Len: 10, Protocol: parsertest.ID, Key: 1, Body: 2}
		hole(parsers.Hole{Len: 1, Kind: parsers.HoleDecimal, Step: 1})(&good)
		check := func(t parsertest.TB) { suite.CheckSpans(t, []parsers.Span{good}, "07abcdefgh") }
		if what := failure(check); what != "" {
			t.Fatalf("a good span: %s", what)
		}
		change(&good)
		if failure(check) == "" {
			t.Errorf("%s: not found out", name)
		}
	}
}
