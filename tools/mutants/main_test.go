package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// write makes a file below the working directory.
func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// module makes a module in which a package is tested but for Slow, which only the
// long tests call, and Other, which none calls.
func module(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	write(t, "go.mod", "module m\n")
	write(t, "p/p.go", `package p

type T struct{ n int }

func (t *T) Add(n int) int { t.n += n; return t.n }

func Down(n int) int {
	for n > 0 {
		n--
	}
	return n
}

func Slow() int { return 1 }

func Other() int { return 2 }
`)
	write(t, "p/p_test.go", `package p

import ("os"; "testing")

func TestAdd(t *testing.T) {
	var x T
	t.Run("twice", func(t *testing.T) { if x.Add(1); x.Add(1) != 2 { t.Error("wrong") } })
}

func TestDown(t *testing.T) { if Down(3) != 0 { t.Error("wrong") } }

func TestFile(t *testing.T) { if _, err := os.ReadFile("p.go"); err != nil { t.Error(err) } }

func TestSlow(t *testing.T) {
	if !testing.Short() && Slow() != 1 { t.Error("wrong") }
}
`)
}

// list has a mutant of each kind.
const list = `
# a comment
rule: a sum grows
in: p/p.go T.Add
- t.n += n;
+ t.n -= n;

rule: a count ends
in: p/p.go Down
- n--
- }
+ }

rule: long tests count
in: p/p.go
- func Slow() int { return 1 }
+ func Slow() int { return 0 }

rule: none sees it
in: p/p.go Other
- return 2
+ return 3

rule: no such name
in: p/p.go Other
- return 2
+ return two

rule: gone
in: p/p.go Other
- return 4
`

func TestRun(t *testing.T) {
	module(t)
	write(t, "list.txt", list)
	before, err := os.ReadFile("p/p.go")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = run([]string{"-only", "sum|count$|p: .*it$", "list.txt"}, &out, io.Discard)
	if err != nil {
		t.Error(err)
	}
	got := regexp.MustCompile(` +\d+\.\ds`).ReplaceAllString(out.String(), "")
	want := "caught  p: a sum grows (TestAdd/twice)\n" +
		"caught  p: long tests count (TestSlow)\n" +
		"MISSED  p: none sees it\n" +
		"2 of 3 caught\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if after, err := os.ReadFile("p/p.go"); err != nil || string(after) != string(before) {
		t.Errorf("the source was changed: %v", err)
	}
	for args, want := range map[string]string{
		"-only ( list.txt":               "-only",
		"list.txt list.txt":              "2 lists given",
		"-x list.txt":                    "-x",
		"-only sum -allow none list.txt": "-allow",
		"missing.txt":                    "missing.txt",
		"p/p.go":                         "p/p.go: line 1",
	} {
		err := run(strings.Fields(args), io.Discard, io.Discard)
		if err == nil || errors.Is(err, flag.ErrHelp) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestVerdicts holds that what is missed is counted, that a list which does not fit
// is a fault, and that a mutant which does not end is ended, and is caught.
func TestVerdicts(t *testing.T) {
	module(t)
	mutants, err := parse(strings.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	x, err := newTester()
	if err != nil {
		t.Fatal(err)
	}
	x.least = time.Second
	for _, tt := range []struct {
		only      string
		allow     int
		says, err string
	}{
		{"it$", 1, "0 of 1 caught", ""},
		{"it$", 0, "MISSED", "1 were missed, where 0 may be"},
		{"name", 9, ": it does not compile", "1 of the list are not bugs that this code can have"},
		{"gone", 9, ": its text is not there", "1 of the list are not bugs that this code can have"},
		{"nowhere", 9, "0 of 0 caught", "there is none to test"},
		{"ends", 0, "(it hangs)\n1 of 1 caught", ""},
	} {
		var out strings.Builder
		err := hunt(x, mutants, regexp.MustCompile(tt.only), tt.allow, &out)
		if !strings.Contains(out.String(), tt.says) || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: %v, want %q, and to have %q in\n%s", tt.only, err, tt.err, tt.says, out.String())
		}
	}
	x.close()
	if _, err := os.Stat(x.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its files are still there: %v", err)
	}
}

// TestFailingTests holds that nothing counts as caught by tests that fail without, nor
// as missed by none.
func TestFailingTests(t *testing.T) {
	module(t)
	write(t, "bare/bare.go", "package bare\n")
	write(t, "list.txt", list+"\nrule: bare\nin: bare/bare.go\n- bare\n")
	write(t, "p/q_test.go", "package p\n\nimport \"testing\"\n\nfunc TestWrong(t *testing.T) { t.Error() }\n")
	err := run([]string{"-only", "sum", "list.txt"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "the tests of p fail without a bug: TestWrong") {
		t.Error(err)
	}
	err = run([]string{"-only", "bare", "list.txt"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "bare has no tests") {
		t.Error(err)
	}
}

func TestFailure(t *testing.T) {
	for _, tt := range []struct{ out, want string }{
		{"--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n        a_test.go:1: x\nFAIL\n", "TestA/b"},
		{"panic: test timed out after 1s\n\trunning tests:\n\t\tTestA (1s)\n", "it hangs"},
		{"--- FAIL: TestA (0.00s)\npanic: boom\n", "TestA"},
		{"panic: boom\n\ngoroutine 1\n", "panic: boom"},
		{"runtime: out of memory: cannot\nfatal error: out of memory\n", "runtime: out of memory: cannot"},
		{"something\nlast words\n", "last words"},
	} {
		if got := failure(tt.out); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.out, got, tt.want)
		}
	}
}
