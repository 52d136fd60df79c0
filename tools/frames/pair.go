package main

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"reflect"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/parsers/builtin"
	"sheaf/pcap"
)

// configurations are what each capture is replayed with. Zero values are the
// defaults of the core and of sheaf replay.
var configurations = []struct {
	name string
	edit func(*aggregate.Config)
}{
	{"default", func(*aggregate.Config) {}},
	{"some", limits(64, 32, 64<<10)}, // contexts, templates and bodies give way where there are many
	{"few", limits(8, 8, 4<<10)},     // and wherever there are more than a handful
	{"slow", func(c *aggregate.Config) {
		c.Window, c.AckWait, c.MaxIdle = 20*time.Millisecond, 100*time.Millisecond, time.Second
	}},
	{"content", func(c *aggregate.Config) { c.Similarity = aggregate.ByContent }},
}

// limits sets the limits of flows, templates and bytes of bodies, and small ones of
// a frame: 32 packets, or 4 kB beside the room that the longest packet needs. They are
// set by their place, since their names may not be the same in both commits.
func limits(flows, templates, bodies uint64) func(*aggregate.Config) {
	return func(c *aggregate.Config) {
		limits := reflect.ValueOf(&c.Limits).Elem()
		for i, v := range []uint64{flows, templates, bodies, 32, 40 + 65535 + 4<<10} {
			limits.Field(i).SetUint(v)
		}
	}
}

// A pair is two gateways joined in memory, and the sums of what they write.
type pair struct {
	ends          [2]*aggregate.Lane // by the way that it merges
	frames, bytes [2]int
	packets       int // rebuilt
	frame         []byte
	content       hash.Hash
	times         hash.Hash
}

func newPair(edit func(*aggregate.Config)) (*pair, error) {
	p := &pair{content: sha256.New(), times: sha256.New()}
	cfg := aggregate.Config{Registry: builtin.Registry()}
	edit(&cfg)
	var err error
	for i := range p.ends {
		if p.ends[i], err = aggregate.NewLane(cfg); err != nil {
			return nil, fmt.Errorf("starting a lane: %w", err)
		}
	}
	return p, nil
}

// add gives a packet to the gateway that it comes to.
func (p *pair) add(at time.Duration, d way, packet []byte) error {
	if err := p.advance(at, false); err != nil {
		return err
	}
	if err := p.ends[d].Merger.Add(at, packet); err != nil {
		return err
	}
	return p.advance(at, true)
}

// advance sends the frames that are due before at, or at it too, in their order.
func (p *pair) advance(at time.Duration, inclusive bool) error {
	for {
		d, next := -1, at
		for i := range p.ends {
			due, _, ok := p.ends[i].Merger.Deadline()
			if ok && (due < next || inclusive && due <= next && d < 0) {
				d, next = i, due
			}
		}
		if d < 0 {
			return nil
		}
		if err := p.flush(way(d), next); err != nil {
			return err
		}
	}
}

// flush writes a frame, adds it to the sums, and lets the other end read it.
func (p *pair) flush(d way, at time.Duration) error {
	_, why, _ := p.ends[d].Merger.Deadline()
	p.frame = p.ends[d].Merger.Flush(p.frame[:0], at, why)
	p.frames[d]++
	p.bytes[d] += len(p.frame)
	head := binary.BigEndian.AppendUint32([]byte{byte(d)}, uint32(len(p.frame)))
	p.content.Write(head)
	p.content.Write(p.frame)
	p.times.Write(binary.BigEndian.AppendUint64(head[:1], uint64(at)))
	packets, n, err := p.ends[1-d].Expander.Expand(p.frame)
	p.packets += len(packets)
	if err == nil && n != len(p.frame) {
		err = errors.New("bytes of a frame were left over")
	}
	return err
}

// line returns the sums. What went wrong is not told in the words of an error,
// which another commit may have changed.
func (p *pair) line(fault error) string {
	end := ""
	if fault != nil {
		end = "\tfault"
	}
	return fmt.Sprintf("%s\tbytes %x\ttimes %x%s\n", p.counts(), p.content.Sum(nil), p.times.Sum(nil)[:8], end)
}

func (p *pair) counts() string {
	return fmt.Sprintf("up %d/%d\tdown %d/%d\tpackets %d", p.frames[up], p.bytes[up], p.frames[down], p.bytes[down], p.packets)
}

// replay writes the lines of a capture, of which it reads what can be read.
func replay(out io.Writer, path, name string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in, err := pcap.NewReader(file)
	if err != nil { // no capture, whatever its name says
		_, err = fmt.Fprintf(out, "%s\tunreadable\n", name)
		return err
	}
	pairs := make([]*pair, len(configurations))
	for i, c := range configurations {
		if pairs[i], err = newPair(c.edit); err != nil {
			return err
		}
	}
	faults := make([]error, len(pairs))
	each := func(do func(*pair) error) {
		for i, p := range pairs {
			if faults[i] == nil {
				faults[i] = do(p)
			}
		}
	}
	var clock pcap.Clock
	ways := newWays(builtin.Registry())
	for {
		packet, err := in.Next()
		if err != nil {
			break
		}
		if packet.Skip == pcap.SkipNone {
			at, d := clock.At(packet.Time), ways.of(packet.Data)
			each(func(p *pair) error { return p.add(at, d, packet.Data) })
		}
	}
	each(func(p *pair) error { return p.advance(math.MaxInt64, true) })
	for i, c := range configurations {
		if _, err := fmt.Fprintf(out, "%s\t%s\t%s", name, c.name, pairs[i].line(faults[i])); err != nil {
			return err
		}
	}
	return nil
}
