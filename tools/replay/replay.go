// Package replay runs captures through two gateways in memory and compares what
// comes out with what went in.
package replay

import (
	"errors"
	"fmt"
	"io"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/parsers"
	"sheaf/pcap"
	"sheaf/tunnel/wire"
)

// Config says how to replay.
type Config struct {
	Lane aggregate.Config
	// Overhead is what a carrier packet costs beyond its payload, in bytes.
	Overhead int
	// Broker, where valid, is which end of a conversation is the broker's.
	Broker Endpoint
	// Rebuilt, where not nil, gets every rebuilt packet, borrowed for the call.
	Rebuilt func(at time.Duration, packet []byte) error
	// Progress, where not nil, is called now and then.
	Progress func()
}

// CarrierPayload is how many bytes of frames a carrier packet takes.
const CarrierPayload = 1350

// A Direction is one of the two ways through the lane.
type Direction int

const (
	Up   Direction = iota // from the clients to the broker
	Down                  // back
)

// Counts are what went through a lane in one direction or in both.
type Counts struct {
	Packets        uint64 `json:"packets"`
	Rebuilt        uint64 `json:"rebuilt"`
	Identical      uint64 `json:"identical"`
	Mismatched     uint64 `json:"mismatched"`
	BytesIn        uint64 `json:"bytes_in"`
	Frames         uint64 `json:"frames"`
	BytesFrames    uint64 `json:"bytes_frames"`
	CarrierPackets uint64 `json:"carrier_packets"`
	BytesWire      uint64 `json:"bytes_wire"`
}

func (c *Counts) add(o *Counts) {
	c.Packets += o.Packets
	c.Rebuilt += o.Rebuilt
	c.Identical += o.Identical
	c.Mismatched += o.Mismatched
	c.BytesIn += o.BytesIn
	c.Frames += o.Frames
	c.BytesFrames += o.BytesFrames
	c.CarrierPackets += o.CarrierPackets
	c.BytesWire += o.BytesWire
}

// A Replay is two gateways joined in memory.
type Replay struct {
	cfg  Config
	ends [2]*aggregate.Lane // Up: beside the clients; Down: beside the broker
	way  [2]way
	side *sides
	now  time.Duration
	// Encode and Decode are the time spent in the lanes' mergers and expanders.
	Encode, Decode time.Duration
	// Worst is the first difference found, for a message.
	Worst string
}

// A way is one direction of a Replay.
type way struct {
	Counts
	frame []byte
	sent  []byte // the packets of the frame to be
	queue map[parsers.FlowKey][]sentPacket
}

type sentPacket struct{ from, to int }

// New returns a Replay at the start of a lane's life. The gateways agree on a
// version and on limits as live ones do.
func New(cfg Config) (*Replay, error) {
	hello := wire.Hello{Min: wire.Version, Max: wire.Version, Limits: cfg.Lane.Limits}
	if hello.Limits == (wire.Limits{}) {
		hello.Limits = wire.DefaultLimits
	}
	peer, _, err := wire.ParseHello(wire.AppendHello(nil, hello))
	if err != nil {
		return nil, err
	}
	if _, cfg.Lane.Limits, err = wire.Negotiate(hello, peer); err != nil {
		return nil, err
	}
	r := &Replay{cfg: cfg, side: newSides(cfg.Lane.Registry, cfg.Broker)}
	for i := range r.ends {
		if r.ends[i], err = aggregate.NewLane(cfg.Lane); err != nil {
			return nil, err
		}
		r.way[i].queue = make(map[parsers.FlowKey][]sentPacket)
	}
	return r, nil
}

// Add takes the next packet of the capture, borrowed for the call.
func (r *Replay) Add(at time.Duration, packet []byte) error {
	if err := r.advance(at, false); err != nil {
		return err
	}
	key, dir := r.side.of(packet)
	w := &r.way[dir]
	w.Packets++
	w.BytesIn += uint64(len(packet))
	from := len(w.sent)
	w.sent = append(w.sent, packet...)
	w.queue[key] = append(w.queue[key], sentPacket{from, len(w.sent)})
	start := time.Now()
	r.ends[dir].Merger.Add(at, packet)
	r.Encode += time.Since(start)
	return r.advance(at, true)
}

// Finish sends what still waits.
func (r *Replay) Finish() error {
	if err := r.advance(1<<62, true); err != nil {
		return err
	}
	return nil
}

// advance moves the clock, flushing what is due on the way: before at, or at it too.
func (r *Replay) advance(at time.Duration, inclusive bool) error {
	for {
		next, dir, why := at, -1, aggregate.FlushEnd
		for d := range r.ends {
			due, reason, ok := r.ends[d].Merger.Deadline()
			if ok && (due < next || inclusive && due <= next && dir < 0) {
				next, dir, why = due, d, reason
			}
		}
		if dir < 0 {
			return nil
		}
		r.now = max(r.now, next)
		if err := r.flush(Direction(dir), why); err != nil {
			return err
		}
	}
}

func (r *Replay) flush(dir Direction, why aggregate.Reason) error {
	w := &r.way[dir]
	start := time.Now()
	w.frame = r.ends[dir].Merger.Flush(w.frame[:0], r.now, why)
	middle := time.Now()
	packets, n, err := r.ends[1-dir].Expander.Expand(w.frame)
	r.Encode += middle.Sub(start)
	r.Decode += time.Since(middle)
	if err != nil {
		return fmt.Errorf("frame %d %s: %w", w.Frames+1, [...]string{"up", "down"}[dir], err)
	}
	w.Frames++
	w.BytesFrames += uint64(n)
	carriers := uint64(n+CarrierPayload-1) / CarrierPayload
	w.CarrierPackets += carriers
	w.BytesWire += uint64(n) + carriers*uint64(r.cfg.Overhead)
	for _, p := range packets {
		w.Rebuilt++
		key := flowOf(p)
		q := w.queue[key]
		if len(q) == 0 {
			w.Mismatched++
			r.note("a packet of %v that was not sent", key)
			continue
		}
		was := w.sent[q[0].from:q[0].to]
		w.queue[key] = q[1:]
		if string(was) == string(p) {
			w.Identical++
		} else {
			w.Mismatched++
			r.note("sent %x, rebuilt %x", was, p)
		}
		if r.cfg.Rebuilt != nil {
			if err := r.cfg.Rebuilt(r.now, p); err != nil {
				return err
			}
		}
	}
	for key, q := range w.queue {
		if len(q) > 0 {
			w.Mismatched += uint64(len(q))
			r.note("%d packets of %v lost", len(q), key)
		}
	}
	clear(w.queue)
	w.sent = w.sent[:0]
	return nil
}

func (r *Replay) note(format string, args ...any) {
	if r.Worst == "" {
		r.Worst = fmt.Sprintf(format, args...)
	}
}

// Way returns what was counted in a direction.
func (r *Replay) Way(d Direction) Counts { return r.way[d].Counts }

// Stats returns what the merger of a direction counted.
func (r *Replay) Stats(d Direction) *aggregate.Stats { return r.ends[d].Merger.Stats() }

// Total returns what was counted in both directions.
func (r *Replay) Total() Counts {
	c := r.way[Up].Counts
	c.add(&r.way[Down].Counts)
	return c
}

// Run replays a capture to its end. The FileError of a damaged capture is
// returned after everything before the damage was replayed.
func (r *Replay) Run(in *pcap.Reader) (records, skipped uint64, err error) {
	var clock pcap.Clock
	for {
		p, err := in.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if end := r.Finish(); end != nil {
				err = end
			}
			return records, skipped, err
		}
		records++
		if p.Skip != pcap.SkipNone {
			skipped++
			continue
		}
		if err := r.Add(clock.At(p.Time), p.Data); err != nil {
			return records, skipped, fmt.Errorf("packet %d: %w", p.Number, err)
		}
		if r.cfg.Progress != nil && records%4096 == 0 {
			r.cfg.Progress()
		}
	}
}
