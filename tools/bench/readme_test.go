package main

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// within is how far README's figures may be from those measured: its rounding, and
// three in a hundred.
func within(shown, measured float64) bool {
	return math.Abs(shown-measured) <= 0.05+0.03*measured
}

// TestReadme holds README's table to what is measured: the same rows in the same
// order, with the same figures.
func TestReadme(t *testing.T) {
	const name = "../../README.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _, err := splitReadme(string(page))
	if err != nil {
		t.Fatal(err)
	}
	all, err := measureSizes(recorded(filepath.Join("..", "..", defaultRecorded)))
	if err != nil {
		t.Fatal(err)
	}
	const mend = "go run ./tools/bench -only sizes -readme README.md writes the table"
	if len(rows) != len(all) {
		t.Fatalf("README has %d rows, of %d: %s", len(rows), len(all), mend)
	}
	for i := range all {
		s := &all[i]
		if !s.Noise && s.Kept() < mustKeep {
			t.Errorf("%s: without parsers %.2f of the savings are left", s.Name, s.Kept())
		}
		cells := strings.Split(strings.Trim(rows[i], "| "), " | ")
		measured := []float64{s.Plain, s.Zstd3, s.Zstd19, s.Sheaf, s.Steady}
		if len(cells) != 1+len(measured) || cells[0] != s.Name {
			t.Errorf("README has %q where %q is due: %s", rows[i], s.Name, mend)
			continue
		}
		for k, v := range measured {
			shown, err := strconv.ParseFloat(strings.Trim(cells[1+k], "*"), 64)
			if err != nil || !within(shown, v) {
				t.Errorf("README says %s in column %d of %q, measured %.2f: %s", cells[1+k], k+2, s.Name, v, mend)
			}
		}
	}
}

func TestWriteReadme(t *testing.T) {
	name := filepath.Join(t.TempDir(), "README.md")
	page := "before\n" + readmeHeading + "| old | 1 |\n| older | 2 |\n\nbehind\n"
	if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	all := []Size{{Name: "new", Plain: 240.4, Zstd3: 99.96, Zstd19: 50, Sheaf: 1.04, Steady: 0.96}}
	if err := writeReadme(name, all); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\n" + readmeHeading + "| new | 240 | 100 | 50.0 | **1.0** | 1.0 |\n\nbehind\n"; string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if err := os.WriteFile(name, []byte("nothing\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := writeReadme(name, all); err == nil || !strings.Contains(err.Error(), readmeHeading) {
		t.Errorf("a page without the table: %v", err)
	}
}
