package codec

import (
	"path/filepath"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
)

// replay carries the packets of a capture over.
func replay(t *testing.T, cfg Config, all []codectest.Captured) {
	x := newExchange(t, cfg)
	for _, c := range all {
		x.run(c.Way, c.At, c.Data)
	}
	x.settle()
}

// Both ends remember the same after every frame of every capture, whether the tables
// have their own sizes or are always full.
func TestStatesAgree(t *testing.T) {
	for i, name := range codectest.Captures(t, "../../..") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			all := codectest.Load(t, name, 6_000)
			replay(t, Config{}, all)
			replay(t, Config{Limits: small(2 + i%7)}, all[:min(len(all), 1_500)])
		})
	}
}
