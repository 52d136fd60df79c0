package pcaptest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOthers(t *testing.T) {
	home := t.TempDir()
	at := filepath.Join(home, "top")
	for _, dir := range []string{filepath.Join(at, "inside"), filepath.Join(home, "shared", "captures")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"":                          filepath.Join(home, "shared", "captures"),
		"inside":                    filepath.Join(at, "inside"),
		filepath.Join(at, "inside"): filepath.Join(at, "inside"),
	} {
		if got, missing := others(at, name); got != want || missing != "" {
			t.Errorf("%q: %q, %s; want %q", name, got, missing, want)
		}
	}
	if _, missing := others(at, "nowhere"); !strings.Contains(missing, "at nowhere: CAPTURES=") {
		t.Errorf("a folder that is not there: %q", missing)
	}
}

func TestOwn(t *testing.T) {
	if _, err := os.Stat(filepath.Join(Own(t), "README.md")); err != nil {
		t.Error(err)
	}
}
