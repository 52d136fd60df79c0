package aggregate

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/pcap"
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

// names returns the captures of the project, and those shared where there are such.
func names(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("../../testdata/*.pcap*")
	if err != nil || len(all) == 0 {
		t.Fatalf("no captures in testdata: %v", err)
	}
	if testing.Short() {
		return all
	}
	for _, where := range []string{"", "live", "faults", "tls"} {
		more, _ := filepath.Glob(filepath.Join("../../../shared/captures", where, "*.pcap*"))
		all = append(all, more...)
	}
	return all
}

// replay carries packets over, under the default limits or with tables of n places.
func replay(t *testing.T, n int, all []captured) {
	cfg := Config{}
	if n > 0 {
		cfg.Limits = small(n)
	}
	p := newPair(t, cfg)
	p.long = n > 0 // a body is an edit of what there is, which is mostly unlike it
	for _, c := range all {
		p.run(c.way, c.at, c.data)
	}
	p.settle(1 << 62)
}

// Captures of real hosts come through, and the ends remember the same with every
// frame, whether the tables have their own sizes or are always full.
func TestCaptures(t *testing.T) {
	for i, name := range names(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			all := load(t, name, 20_000)
			replay(t, 0, all)
			replay(t, 2+i%7, all[:min(len(all), 3_000)]) // frames of few packets, each compared
		})
	}
}

// All captures at once in one lane: hundreds of clients and dozens of protocols, of
// which many have the same addresses.
func TestMixedCaptures(t *testing.T) {
	var all []captured
	for _, name := range names(t) {
		t.Run(filepath.Base(name), func(t *testing.T) { all = append(all, load(t, name, 3_000)...) })
	}
	slices.SortStableFunc(all, func(a, b captured) int { return cmp.Compare(a.at, b.at) })
	for _, n := range []int{0, 2, 8, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			some := all
			if n > 0 {
				some = all[:min(len(all), 10_000)]
			}
			replay(t, n, some)
		})
	}
}
