package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// module makes a module of files and goes there.
func module(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module m\n"
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

const tests = `package m

import ("os"; "testing")

func TestFine(t *testing.T) { t.Log("unheard") }

func TestSkips(t *testing.T) {
	t.Log("before")
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) { t.Log("first"); t.Skip("no tree") })
	}
	t.Run("c", func(t *testing.T) { t.Skip("no house\nanywhere") })
	t.Run("d", func(t *testing.T) { t.SkipNow() })
}

func TestWrong(t *testing.T) {
	if os.Getenv("FAIL") != "" {
		t.Run("deep", func(t *testing.T) { t.Error("heard") })
		t.Log("heard too")
	}
}
`

const summary = `4 tests skipped:
  2  no tree
  1  for no reason given
  1  no house anywhere
`

func TestSummary(t *testing.T) {
	module(t, map[string]string{"m_test.go": tests})
	var out, errs strings.Builder
	code, err := run([]string{"."}, &out, &errs)
	if code != 0 || err != nil {
		t.Errorf("exit code %d, %v: %s", code, err, errs.String())
	}
	first, rest, _ := strings.Cut(out.String(), "\n")
	if !strings.HasPrefix(first, "ok  \tm\t") {
		t.Errorf("the first line is %q", first)
	}
	if diff := cmp.Diff(summary, rest); diff != "" {
		t.Error(diff)
	}
}

func TestVerbose(t *testing.T) {
	module(t, map[string]string{"m_test.go": tests})
	var out, errs strings.Builder
	if code, err := run([]string{"-v", "."}, &out, &errs); code != 0 || err != nil {
		t.Errorf("exit code %d, %v: %s", code, err, errs.String())
	}
	for _, want := range []string{"unheard", "=== RUN   TestFine", "PASS\n", summary} {
		if strings.Count(out.String(), want) != 1 {
			t.Errorf("%q not once in\n%s", want, out.String())
		}
	}
}

func TestFailure(t *testing.T) {
	module(t, map[string]string{"m_test.go": tests})
	t.Setenv("FAIL", "1")
	var out, errs strings.Builder
	code, err := run([]string{"."}, &out, &errs)
	if code != 1 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
	for _, want := range []string{"--- FAIL: TestWrong", "--- FAIL: TestWrong/deep", ": heard\n", ": heard too\n", "FAIL\tm\t", summary} {
		if strings.Count(out.String(), want) != 1 && want != "--- FAIL: TestWrong" {
			t.Errorf("%q not once in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "unheard") {
		t.Errorf("what a test said that passed is there:\n%s", out.String())
	}
}

// What ends the process before its tests have ended is shown.
func TestPanic(t *testing.T) {
	module(t, map[string]string{"m_test.go": "package m\nimport \"testing\"\nfunc TestPanics(t *testing.T) { t.Log(\"so far\"); panic(\"at the disco\") }\n"})
	var out, errs strings.Builder
	code, err := run([]string{"."}, &out, &errs)
	if code != 1 || err != nil || !strings.Contains(out.String(), "at the disco") || !strings.Contains(out.String(), "so far") {
		t.Errorf("exit code %d, %v:\n%s", code, err, out.String())
	}
}

func TestBuildFailure(t *testing.T) {
	module(t, map[string]string{"m_test.go": "package m\n\nfunc f() { nowhere() }\n"})
	var out, errs strings.Builder
	code, err := run([]string{"."}, &out, &errs)
	if code == 0 || err != nil || !strings.Contains(out.String()+errs.String(), "undefined: nowhere") || !strings.Contains(out.String(), "no test skipped") {
		t.Errorf("exit code %d, %v:\n%s%s", code, err, out.String(), errs.String())
	}
}

func TestIsVerbose(t *testing.T) {
	for arg, want := range map[string]bool{"-v": true, "--v": true, "-v=true": true, "-test.v": true, "-v=false": false, "-vet": false, "v": false, "./v": false} {
		if got := isVerbose(arg); got != want {
			t.Errorf("%s: %v", arg, got)
		}
	}
}
