package aggregate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sheaf/parsers"
	"sheaf/pcap"
	"sheaf/tunnel/wire"
)

// A captured packet has the way that it takes: 0, up, to the lower port.
type captured struct {
	at   time.Duration
	way  int
	data []byte
}

// load returns the packets of a capture that can be read, up to a number of them.
func load(t *testing.T, name string, most int) (all []captured) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := pcap.NewReader(f)
	if err != nil {
		t.Skip(err)
	}
	var clock pcap.Clock
	var dec parsers.Decoder
	for len(all) < most {
		p, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Log(err) // a damaged capture: what was read so far
			break
		}
		at := clock.At(p.Time)
		if p.Skip != pcap.SkipNone || len(p.Data) > wire.MaxPacket {
			continue
		}
		c := captured{at: at, data: bytes.Clone(p.Data)}
		var seg parsers.Segment
		if dec.Decode(c.data, &seg) == nil && seg.Key.SrcPort < seg.Key.DstPort {
			c.way = 1
		}
		all = append(all, c)
	}
	return all
}

// Captures of real hosts come through, and the ends remember the same, with every
// frame, whether the tables have their own sizes or are always full.
func TestCaptures(t *testing.T) {
	names, err := filepath.Glob("../../testdata/*.pcap*")
	if err != nil || len(names) == 0 {
		t.Fatalf("no captures in testdata: %v", err)
	}
	if !testing.Short() {
		for _, where := range []string{"", "live", "faults", "tls"} {
			more, _ := filepath.Glob(filepath.Join("../../../shared/captures", where, "*.pcap*"))
			names = append(names, more...)
		}
	}
	for i, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			all := load(t, name, 20_000)
			for _, n := range []int{0, 2 + i%7} {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					cfg := Config{}
					if n > 0 {
						cfg.Limits = small(n)
						all = all[:min(len(all), 3_000)] // a frame has few of them, each is compared
					}
					p := newPair(t, cfg)
					for _, c := range all {
						p.run(c.way, c.at, c.data)
					}
					p.settle(time.Hour)
				})
			}
		})
	}
}
