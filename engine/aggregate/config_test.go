package aggregate

import (
	"errors"
	"testing"
	"time"

	"sheaf/engine/wire"
	"sheaf/parsers/builtin"
)

func TestLaneNeedsARegistryAndLimits(t *testing.T) {
	if _, err := NewLane(Config{}); !errors.Is(err, ErrConfig) {
		t.Errorf("no registry: %v", err)
	}
	cfg := Config{Registry: builtin.Registry(), Limits: wire.Limits{Flows: 1}}
	if _, err := NewLane(cfg); !errors.Is(err, ErrConfig) || !errors.Is(err, wire.ErrHello) {
		t.Errorf("limits: %v", err)
	}
}

// What a Config leaves out has its default, and what is below zero is turned off.
func TestDefaultsOfAConfig(t *testing.T) {
	c := Config{}.withDefaults()
	if c.Window != 5*time.Millisecond || c.Quiet != time.Millisecond || c.AckWait != 25*time.Millisecond ||
		c.UrgentInterval != time.Millisecond || c.MaxIdle != 30*time.Minute ||
		c.Similarity != ByAll || c.Compression != 3 || c.Limits != wire.DefaultLimits {
		t.Errorf("%+v", c)
	}
	c = Config{Window: -1, Quiet: -2, AckWait: -3, UrgentInterval: -4, MaxIdle: -5, Compression: -6}.withDefaults()
	if c.Window|c.Quiet|c.AckWait|c.UrgentInterval|c.MaxIdle != 0 || c.Compression >= 0 {
		t.Errorf("%+v", c)
	}
	limits := wire.DefaultLimits
	limits.Packets--
	c = Config{Window: 1, Quiet: 2, AckWait: 3, UrgentInterval: 4, MaxIdle: 5, Similarity: ByName, Compression: 23, Limits: limits}.withDefaults()
	if c.Window != 1 || c.Quiet != 2 || c.AckWait != 3 || c.UrgentInterval != 4 || c.MaxIdle != 5 ||
		c.Similarity != ByName || c.Compression != 22 || c.Limits != limits {
		t.Errorf("%+v", c)
	}
}
