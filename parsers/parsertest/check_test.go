package parsertest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

// parse takes a message off the front of b: its first byte is its length. It does
// wrong what wrong says.
func parse(wrong string) func(b []byte) (string, int, error) {
	return func(b []byte) (string, int, error) {
		switch {
		case wrong == "error":
			return "", 0, malformed
		case wrong == "length":
			return string(b), len(b), nil
		case len(b) == 0 || len(b) < int(b[0]):
			if wrong == "cut" && len(b) > 0 {
				return string(b), len(b), nil
			}
			return "", 0, parsers.ErrCut
		}
		return string(b[1:b[0]]), int(b[0]), nil
	}
}

var malformed = &parsers.Error{Protocol: "toy", What: "length is 0"}

// A scanner takes each payload for a message, and counts them. Scanning one again,
// it does wrong what wrong says.
type scanner struct {
	count int
	wrong string
}

func (s *scanner) Scan(dst []parsers.Span, b []byte) []parsers.Span {
	s.count++
	return append(dst, parsers.Span{Len: len(b), Protocol: parsertest.ID, Key: 1})
}

func (s *scanner) Rescan(dst []parsers.Span, b []byte) []parsers.Span {
	sp := parsers.Span{Len: len(b), Protocol: parsertest.ID, Key: 1}
	switch s.wrong {
	case "state":
		s.count++
	case "state, of others":
		s.count += len(b) / 100
	case "span":
		sp.Body = 1
	case "length":
		sp.Len++
	}
	return append(dst, sp)
}

func (*scanner) Lost() {}

// A name is that of a message, or of none.
type name uint8

func (n name) String() string { return []string{"A", "B", "", "", "C", "C", ""}[n] }

// TestChecks holds that what protocols' tests share passes what is right and finds
// out what is wrong.
func TestChecks(t *testing.T) {
	suite := parsertest.Suite[string]{Name: func(uint8) string { return "M" }}
	show := func(m string, _ []byte) string { return m }
	rescan := func(wrong string) func(parsertest.TB) {
		return func(t parsertest.TB) {
			s := &scanner{wrong: wrong}
			suite.Rescan(t, s, func() any { return s.count }, []string{"ab", "c"}, string(make([]byte, 100)))
		}
	}
	layer := func(data string, want ...gopacket.LayerType) func(parsertest.TB) {
		return func(t parsertest.TB) { parsertest.LayerParser(t, &layers.UDP{}, data, want...) }
	}
	parses := func(wrong, want string) func(parsertest.TB) {
		return func(t parsertest.TB) { parsertest.Parses(t, parse(wrong), show, "\x03ab", want) }
	}
	cuts := func(wrong string) func(parsertest.TB) {
		return func(t parsertest.TB) { parsertest.CutShort(t, parse(wrong), "\x03ab") }
	}
	says := func(err error, what string) func(parsertest.TB) {
		return func(t parsertest.TB) { parsertest.Malformed(t, err, what) }
	}
	typed := func(err error) func(parsertest.TB) {
		return func(t parsertest.TB) { parsertest.Typed(t, err) }
	}
	names := func(first, end name) func(parsertest.TB) {
		return func(t parsertest.TB) { parsertest.Names(t, first, end) }
	}
	shows := func(want string) func(parsertest.TB) {
		return func(t parsertest.TB) { suite.Shows(t, new(scanner), want, "ab", "c") }
	}
	probe := func(want parsers.Confidence) func(parsertest.TB) {
		return func(t parsertest.TB) {
			parsertest.Probes[string]{{"payload", "ab", want}}.Check(t, func([]byte) parsers.Confidence { return parsers.Weak })
		}
	}
	inKey := func(other uint64) func(parsertest.TB) {
		return func(t parsertest.TB) { parsertest.InKey(t, 1, map[string]uint64{"topic": other}) }
	}
	const datagram = "\x00\x01\x00\x02\x00\x0a\x00\x00ab"
	for _, tt := range []struct {
		name  string
		right bool
		check func(parsertest.TB)
	}{
		{"parses", true, parses("", "ab")},
		{"parses not", false, parses("error", "")},
		{"parses what follows", false, parses("length", "\x03abwhat follows")},
		{"parses something else", false, parses("", "ac")},
		{"cut", true, cuts("")},
		{"cut unseen", false, cuts("cut")},
		{"cut, malformed", false, cuts("error")},
		{"malformed", true, says(malformed, "length is 0")},
		{"malformed otherwise", false, says(malformed, "length is")},
		{"malformed, without why", false, says(parsers.ErrMalformed, "")},
		{"cut, not malformed", false, says(parsers.ErrCut, "")},
		{"malformed not", false, says(nil, "")},
		{"typed", true, typed(fmt.Errorf("toy: %w", parsers.ErrCut))},
		{"untyped", false, typed(errors.New("toy"))},
		{"of both types", false, typed(errors.Join(parsers.ErrCut, malformed))},
		{"no error", false, typed(nil)},
		{"names", true, names(0, 2)},
		{"name too many", false, names(0, 1)},
		{"name untold", false, names(1, 3)},
		{"name twice", false, names(4, 6)},
		{"shown", true, shows("M 0+2 body 0\nM 0+1 body 0\n")},
		{"shown otherwise", false, shows("M 0+2 body 0\n")},
		{"scanned again", true, rescan("")},
		{"state", false, rescan("state")},
		{"state, of others", false, rescan("state, of others")},
		{"another span again", false, rescan("span")},
		{"too long again", false, rescan("length")},
		{"probe", true, probe(parsers.Weak)},
		{"probe is not sure", false, probe(parsers.Strong)},
		{"in the key", true, inKey(2)},
		{"not in the key", false, inKey(1)},
		{"layers", true, layer(datagram, layers.LayerTypeUDP, gopacket.LayerTypePayload)},
		{"layer too many", false, layer(datagram, layers.LayerTypeUDP)},
		{"layer too few", false, layer(datagram[:8], layers.LayerTypeUDP, gopacket.LayerTypePayload)},
		{"no layer", false, layer(datagram[:7], layers.LayerTypeUDP)},
	} {
		if what := failure(tt.check); (what == "") != tt.right {
			t.Errorf("%s: failed with %q", tt.name, what)
		}
	}
}
