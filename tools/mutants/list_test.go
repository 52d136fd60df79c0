package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got, err := parse(strings.NewReader("# all\n\n\nrule: a b\nin: x/y.go T.f\n- one\n-   two\n+ three\n\n# more\nrule: c\nin: z.go\n- four\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []mutant{
		{line: 4, rule: "a b", file: "x/y.go", function: "T.f", was: []string{"one", "two"}, now: []string{"three"}},
		{line: 11, rule: "c", file: "z.go", was: []string{"four"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mutant{})); diff != "" {
		t.Error(diff)
	}
	if s := want[0].String(); s != "x: a b" {
		t.Errorf("it is called %q", s)
	}
	for text, want := range map[string]string{
		"rule: a\nin: x.go\n":              "line 1: a mutant without",
		"\nrule: a\n- b\n":                 "line 2: a mutant without",
		"in: x.go\n- b\n\nrule: c\n":       "line 1: a mutant without",
		"rule: a\nin: x.go\n- b\nc d\n":    `line 4: "c"`,
		strings.Repeat("x", 1<<17) + "\n":  "too long",
		"rule: a\nin: x.go\n- b\n\n+ d\n":  "line 5: a mutant without",
		"rule: a\n\nin: x.go\n- b\n+ d\n":  "line 1: a mutant without",
		"rule: a\nin: x.go\n-b\n":          `line 3: "-b"`,
		"rule: a\nin: x.go\n- b\nrule:c\n": `line 4: "rule:c"`,
	} {
		if _, err := parse(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

const source = `package p

const limit = 3

func f() { a(); b(1) }

func (t *T) f() {
	a()
	b(2)
}

func (t T[K]) g() { b(3) }

func (t *U[K, V]) g() { b(4) }

func g() { b(5) } // b(5)
`

func TestApply(t *testing.T) {
	for _, tt := range []struct {
		function, was, now string
		from, to           string // what becomes of the source; from is there once
		err                string
	}{
		{"", "limit = 3", "limit = 2", "limit = 3", "limit = 2", ""},
		{"f", "a()", "", "{ a();", "{ ;", ""},
		{"T.f", "a()\nb(2)", "b(2)\na()", "\ta()\n\tb(2)\n", "\tb(2)\na()\n", ""},
		{"T.g", "b(", "c(", "b(3)", "c(3)", ""},
		{"U.g", "b(", "c(", "b(4)", "c(4)", ""},
		{"g", "b(", "c(", "{ b(5)", "{ c(5)", ""},
		{"", "b(5)", "", "", "", "its text is there more than once"},
		{"", "b(.)", "", "", "", "its text is not there"},
		{"f", "b(2)", "", "", "", "its text is not there"},
		{"T.f", "a();\nb(2)", "", "", "", "its text is not there"},
		{"h", "a()", "", "", "", "there is no function h"},
	} {
		m := mutant{function: tt.function, was: strings.Split(tt.was, "\n"), now: strings.Split(tt.now, "\n")}
		got, err := m.apply([]byte(source))
		switch {
		case tt.err != "":
			if err == nil || err.Error() != tt.err {
				t.Errorf("%s %q: %v, want %q", tt.function, tt.was, err, tt.err)
			}
		case err != nil:
			t.Errorf("%s %q: %v", tt.function, tt.was, err)
		default:
			if diff := cmp.Diff(strings.Replace(source, tt.from, tt.to, 1), string(got)); diff != "" {
				t.Errorf("%s %q: %s", tt.function, tt.was, diff)
			}
		}
	}
	if _, err := (&mutant{function: "f", was: []string{"x"}}).apply([]byte("no Go")); err == nil {
		t.Error("a file that is no Go was searched for a function")
	}
}

// TestListFits holds that each bug of the list has a place in the code as it is;
// whether the tests see it takes make mutants.
func TestListFits(t *testing.T) {
	const top = "../.."
	file, err := os.Open(filepath.Join(top, defaultList))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	list, err := parse(file)
	if err != nil {
		t.Fatal(err)
	}
	rules := make(map[string]int)
	for _, m := range list {
		source, err := os.ReadFile(filepath.Join(top, m.file))
		if err == nil {
			_, err = m.apply(source)
		}
		if err != nil {
			t.Errorf("%s:%d: %s: %v", defaultList, m.line, &m, err)
		}
		if was := rules[m.String()]; was != 0 {
			t.Errorf("%s:%d: %s is in line %d, too", defaultList, m.line, &m, was)
		}
		rules[m.String()] = m.line
	}
}
