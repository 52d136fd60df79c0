package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// slack is how many times what README claims a measurement may be: what the
// machine does besides makes more and smaller frames.
const slack = 1.3

// liveHeading is that of README's table of what was measured here.
const liveHeading = "| bytes for each message delivered | plain | wireguard-go | sheaf |"

// claims returns README's bytes for each delivered message over sheaf, by row.
func claims(t *testing.T) map[string]float64 {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), liveHeading+"\n|---|---:|---:|---:|\n")
	if !ok {
		t.Fatalf("README has no table %q", liveHeading)
	}
	all := map[string]float64{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "|\n"), "|")
		if len(cells) != 4 {
			break
		}
		v, err := strconv.ParseFloat(strings.Trim(cells[3], " *"), 64)
		if err != nil || v <= 0 {
			t.Fatalf("README: %q: %v", line, err)
		}
		all[strings.TrimSpace(cells[0])] = v
	}
	return all
}

// claimed returns what a row of README's says that a delivery takes, in bytes.
func claimed(t *testing.T, row string) float64 {
	t.Helper()
	v, ok := claims(t)[row]
	if !ok {
		t.Fatalf("README has no row %q", row)
	}
	return v
}

// claimedMemory returns what README says that a gateway has resident with 10,000
// open connections, in MB.
func claimedMemory(t *testing.T) float64 {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const row = "| 10,000 open connections: resident memory of a gateway | | | "
	_, cell, _ := strings.Cut(string(page), row)
	number, _, _ := strings.Cut(cell, " MB |")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatalf("README: %s: %v", row, err)
	}
	return v
}

// TestClaims holds that each row is one that a test measures.
func TestClaims(t *testing.T) {
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source.Write(b)
	}
	for row := range claims(t) {
		if !strings.Contains(source.String(), strconv.Quote(row)) {
			t.Errorf("README's row %q is measured by no test", row)
		}
	}
}
