package aggregate

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
)

// captures returns those of the project. Those that are shared between checkouts, and
// all of each, the tests of package codec go through.
func captures(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("../../testdata/*.pcap*")
	if err != nil || len(all) == 0 {
		t.Fatalf("no captures in testdata: %v", err)
	}
	return all
}

// replay carries packets over, under the default limits or with tables of n places.
func replay(t *testing.T, n int, all []codectest.Captured) {
	cfg := Config{}
	if n > 0 {
		cfg.Limits = small(n)
	}
	p := newPair(t, cfg)
	p.long = n > 0 // a body is an edit of what there is, which is mostly unlike it
	for _, c := range all {
		p.run(c.Way, c.At, c.Data)
	}
	p.settle(1 << 62)
}

// Captures of real hosts come through, and the ends remember the same, whether the tables
// have their own sizes or are always full.
func TestCaptures(t *testing.T) {
	for i, name := range captures(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			all := codectest.Load(t, name, 8_000)
			replay(t, 0, all)
			replay(t, 2+i%7, all[:min(len(all), 2_000)]) // frames of few packets, each compared
		})
	}
}

// All captures at once in one lane: hundreds of clients and dozens of protocols, of
// which many have the same addresses.
func TestMixedCaptures(t *testing.T) {
	var all []codectest.Captured
	for _, name := range captures(t) {
		all = append(all, codectest.Load(t, name, 400)...)
	}
	slices.SortStableFunc(all, func(a, b codectest.Captured) int { return cmp.Compare(a.At, b.At) })
	for _, n := range []int{0, 2, 8, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			some := all
			if n > 0 {
				some = all[:min(len(all), 3_000)]
			}
			replay(t, n, some)
		})
	}
}
