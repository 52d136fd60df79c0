package replay

import (
	"path/filepath"
	"testing"
	"time"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/pcap/pcaptest"
)

// TestWithoutParsers holds that the comparison by content keeps at least half of
// what is saved beyond zstd when the messages cannot be told apart.
func TestWithoutParsers(t *testing.T) {
	withoutParsers(t, captures(t))
}

// TestWithoutParsersLive holds the same of captures of real brokers.
func TestWithoutParsersLive(t *testing.T) {
	live := filepath.Join(pcaptest.Others(t), "live")
	for _, protocol := range []string{"mqtt-fanoutskew", "mqtt-telemetry", "mqtt-mixed", "nats", "redis", "amqp"} {
		names, err := filepath.Glob(filepath.Join(live, protocol+"-*.pcap"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no captures in %s: %v", protocol, live, err)
		}
		withoutParsers(t, names)
	}
}

func withoutParsers(t *testing.T, names []string) {
	for _, name := range names {
		switch filepath.Base(name) {
		case "odd.pcap": // no messages
			continue
		case "telemetry-40-ws.pcap.gz": // masked: whoever does not know the key sees noise
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			cfg := config(5 * time.Millisecond)
			cfg.Lane.Quiet, cfg.Lane.AckWait = 0, 0 // their defaults
			cfg.Overhead = 45
			cfg.Compare = true
			with := replayFile(t, name, cfg)
			cfg.Compare = false
			cfg.Lane.Registry = builtin.Registry()
			for _, port := range cfg.Lane.Registry.ServerPorts() {
				if err := cfg.Lane.Registry.Bind(parsers.Binding{Name: "opaque", Port: port}); err != nil {
					t.Fatal(err)
				}
			}
			without := replayFile(t, name, cfg)
			if n := without.Directions.Up.Messages + without.Directions.Down.Messages; n != 0 {
				t.Fatalf("%d messages were told apart", n)
			}
			zstd := with.Compare[len(with.Compare)-1].BytesWire
			on, off := int64(zstd-with.BytesWire), int64(zstd)-int64(without.BytesWire)
			t.Logf("%d bytes with parsers, %d without, zstd %d: %.2f kept", with.BytesWire, without.BytesWire, zstd, float64(off)/float64(on))
			if 2*off < on {
				t.Errorf("%d bytes saved beyond zstd, %d without parsers", on, off)
			}
		})
	}
}

// TestLoopback holds that packets whose checksums a host left to a network card
// that it has not got are merged and their messages counted.
func TestLoopback(t *testing.T) {
	for name, messages := range map[string]uint64{"nats-spicy-simple.pcap": 4, "redis-zeek-django-cache.pcap": 316} {
		p := replayFile(t, filepath.Join(pcaptest.Others(t), name), config(5*time.Millisecond))
		if got := p.Directions.Up.EventMessages + p.Directions.Down.EventMessages; got != messages || p.Verbatim != 0 || !p.Exact() {
			t.Errorf("%s: %d messages, %d packets verbatim, exact %v; expected %d messages", name, got, p.Verbatim, p.Exact(), messages)
		}
	}
}
