package codectest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/pcap"
)

// A Captured is a packet of a capture. Its way is 0, up, to the lower port, or 1.
type Captured struct {
	At   time.Duration
	Way  int
	Data []byte
}

// Load returns the packets of a capture that can be read, up to a number of them.
func Load(t testing.TB, name string, most int) (all []Captured) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := pcap.NewReader(f)
	if err != nil {
		t.Skip(err) // some are there to be no captures
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
		c := Captured{At: at, Data: bytes.Clone(p.Data)}
		var seg parsers.Segment
		if dec.Decode(c.Data, &seg) == nil && seg.Key.SrcPort < seg.Key.DstPort {
			c.Way = 1
		}
		all = append(all, c)
	}
	return all
}

// Captures returns the captures of the project, whose top is at a path, and, unless a
// short test is wanted, those that are shared between checkouts, where there are such.
func Captures(t testing.TB, top string) (all []string) {
	t.Helper()
	dirs := []string{"testdata", "testdata/recorded"}
	if !testing.Short() {
		for _, below := range []string{"", "live", "full", "faults", "tls"} {
			dirs = append(dirs, filepath.Join("../shared/captures", below))
		}
	}
	for i, dir := range dirs {
		more, err := filepath.Glob(filepath.Join(top, dir, "*.pcap*"))
		switch {
		case err != nil:
			t.Fatal(err)
		case len(more) == 0 && i < 2:
			t.Fatalf("no captures in %s", dir)
		case len(more) == 0:
			t.Logf("no captures in %s", dir)
		}
		all = append(all, more...)
	}
	return all
}
