package parsertest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
)

// Parses holds that parse takes message off the front of bytes, shown as want, and
// returns what it parsed.
func Parses[M any, B Text](t TB, parse func([]byte) (M, int, error), show func(M, []byte) string, message B, want string) M {
	t.Helper()
	b := append([]byte(message), "what follows"...)
	m, n, err := parse(b)
	if err != nil || n != len(message) {
		t.Fatalf("n %d, error %v, want %d", n, err, len(message))
	}
	if diff := cmp.Diff(want, show(m, b)); diff != "" {
		t.Fatalf("%s", diff)
	}
	return m
}

// CutShort holds that parse says of a message that is cut short, anywhere, that it
// is cut.
func CutShort[M any, B Text](t TB, parse func([]byte) (M, int, error), message B) {
	t.Helper()
	for n := range len(message) {
		if _, _, err := parse([]byte(message[:n])); err != parsers.ErrCut {
			t.Fatalf("cut at %d: %v, want parsers.ErrCut", n, err)
		}
	}
}

// Malformed holds that err is a *parsers.Error that says what is wrong, and returns
// it.
func Malformed(t TB, err error, what string) *parsers.Error {
	t.Helper()
	var e *parsers.Error
	if !errors.As(err, &e) || !errors.Is(err, parsers.ErrMalformed) {
		t.Fatalf("error %v, want a *parsers.Error", err)
	}
	if e.What != what || !strings.Contains(err.Error(), what) {
		t.Fatalf("%v, want %s", err, what)
	}
	return e
}

// Typed holds that err says either that a message is cut or that it is malformed.
func Typed(t TB, err error) {
	t.Helper()
	if errors.Is(err, parsers.ErrCut) == errors.Is(err, parsers.ErrMalformed) {
		t.Fatalf("untyped error %v", err)
	}
}

// Names holds that the names of a protocol's messages, from the first to the one
// before end, are all told, and apart.
func Names[N interface {
	~uint8
	fmt.Stringer
}](t TB, first, end N) {
	t.Helper()
	seen := map[string]bool{}
	for n := first; n < end; n++ {
		if s := n.String(); s == "" || seen[s] {
			t.Errorf("name %d is %q", n, s)
		} else {
			seen[s] = true
		}
	}
	if end.String() != "" {
		t.Errorf("a name too many")
	}
}
