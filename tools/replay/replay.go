package replay

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/engine/aggregate/seal"
	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/pcap"
)

// Config says how to replay.
type Config struct {
	Lane aggregate.Config // its Registry is required
	// Secrets, where not nil, are those of TLS connections, which are opened as far as
	// they are known when their packets come. Config.Lane.TLS is not used.
	Secrets seal.Source
	// Overhead is what a carrier packet costs beyond its payload, in bytes.
	Overhead int
	// Broker, where valid, is which end of a conversation is the broker's.
	Broker Endpoint
	// Names are those of guests by their addresses, of which the Report tells by name.
	Names map[netip.Addr]string
	// Compare asks for Rivals in the Report.
	Compare bool
	// Rebuilt, where not nil, gets every rebuilt packet, borrowed for the call,
	// and when it left the gateway by the clock of the capture; zero where the
	// capture has no times.
	Rebuilt func(at time.Time, packet []byte) error
	// Progress, where not nil, is called now and then.
	Progress func()
}

// CarrierPayload is how many bytes of a frame a carrier packet takes.
const CarrierPayload = 1350

// carriers returns how many carrier packets a frame of n bytes takes.
func carriers(n int) int { return (n + CarrierPayload - 1) / CarrierPayload }

// A Direction is one of the two ways through the lane.
type Direction int

const (
	Up   Direction = iota // from the clients to the broker
	Down                  // back
)

func (d Direction) String() string { return [...]string{"up", "down"}[d] }

// Counts are what went through a lane in one direction or in both.
type Counts struct {
	Packets        uint64 `json:"packets"`
	Rebuilt        uint64 `json:"rebuilt"`
	Identical      uint64 `json:"identical"`
	Mismatched     uint64 `json:"mismatched"` // different, missing, or never sent
	BytesIn        uint64 `json:"bytes_in"`   // of IP packets
	Frames         uint64 `json:"frames"`
	BytesFrames    uint64 `json:"bytes_frames"`
	CarrierPackets uint64 `json:"carrier_packets"`
	BytesWire      uint64 `json:"bytes_wire"` // frames and carrier overhead
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

// A FaultError tells that a frame could not be taken apart, which ends a lane's
// epoch: the codec is at fault, not the capture.
type FaultError struct {
	Direction Direction
	Frame     uint64 // from 1, in its direction
	Err       error
}

// Error returns which frame it was and what was wrong with it.
func (e *FaultError) Error() string {
	return fmt.Sprintf("frame %d %s could not be expanded: %v", e.Frame, e.Direction, e.Err)
}

// Unwrap returns the cause.
func (e *FaultError) Unwrap() error { return e.Err }

// A Replay is two gateways joined in memory. Make one with New for each capture.
type Replay struct {
	cfg    Config
	ends   [2]*aggregate.Lane // Up: beside the clients; Down: beside the broker
	tables [2]*seal.Table     // of the ends; nil where no TLS is opened
	seg    parsers.Segment
	parse  parsers.Decoder
	ways   [2]way
	sides  *sides
	now    time.Duration // of the last frame
	last   time.Duration // of the last packet
	first  time.Time     // when the capture began; zero if it does not say
	number int           // of the last packet in its capture
	skips  map[string]uint64
	copies copies
	fault  error
	// Encode and Decode are the time spent in mergers and in expanders.
	Encode, Decode time.Duration
	// Worst describes the first packet that came out different, if there is one.
	Worst string
}

// A way is one direction of a Replay.
type way struct {
	Counts
	frame  []byte
	ledger ledger
	rivals []rival
}

// New returns a Replay at the start of a lane's life. The gateways agree on a
// version and on limits as live ones do.
func New(cfg Config) (*Replay, error) {
	hello := wire.Hello{Min: wire.Version, Max: wire.Version, Limits: cfg.Lane.Limits}
	if hello.Limits == (wire.Limits{}) {
		hello.Limits = wire.DefaultLimits
	}
	peer, _, err := wire.ParseHello(wire.AppendHello(nil, hello))
	if err != nil {
		return nil, fmt.Errorf("starting a lane: %w", err)
	}
	if _, cfg.Lane.Limits, err = wire.Negotiate(hello, peer); err != nil {
		return nil, fmt.Errorf("starting a lane: %w", err)
	}
	r := &Replay{cfg: cfg, skips: make(map[string]uint64)}
	r.sides = newSides(cfg.Lane.Registry, cfg.Broker)
	r.sides.guests = newGuests(cfg.Names)
	for i := range r.ends {
		lane := cfg.Lane
		if cfg.Secrets != nil {
			r.tables[i] = r.table(Direction(i))
			lane.TLS = r.tables[i]
		}
		if r.ends[i], err = aggregate.NewLane(lane); err != nil {
			return nil, fmt.Errorf("starting a lane: %w", err)
		}
		if cfg.Compare {
			if r.ways[i].rivals, err = newRivals(); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// Add takes the next packet of the capture, borrowed for the call. Time must not
// run backwards.
func (r *Replay) Add(at time.Duration, packet []byte) error {
	if err := r.advance(at, false); err != nil {
		return err
	}
	if r.sides.full() && r.ways[Up].ledger.empty() && r.ways[Down].ledger.empty() {
		r.sides.forget()
	}
	r.last = at
	r.number++
	f := r.sides.flow(packet)
	w := &r.ways[f.dir]
	w.Packets++
	w.BytesIn += uint64(len(packet))
	w.ledger.send(f, r.number, packet)
	if err := r.foresee(f.dir, packet); err != nil {
		return err
	}
	start := time.Now()
	err := r.ends[f.dir].Merger.Add(at, packet)
	r.Encode += time.Since(start)
	if err != nil {
		return fmt.Errorf("packet %d: %w", r.number, err)
	}
	if !f.of.recognised {
		f.of.recognised = r.ends[f.dir].Merger.Protocol(&f.key) != parsers.Opaque
	}
	return r.advance(at, true)
}

// foresee has the two ends know of a TLS handshake what they would. A capture is of one
// place: an answer stands in it a moment behind its question, which a lane brings later and
// a live gateway has had all the same. So the far end gets to know a hello before it comes
// out of the lane, and this end what the far one is about to tell of the secrets.
func (r *Replay) foresee(dir Direction, packet []byte) error {
	near, far := r.tables[dir], r.tables[1-dir]
	if near == nil || r.parse.Decode(packet, &r.seg) != nil || r.seg.TransportLen == 0 || len(r.seg.Payload()) == 0 {
		return nil
	}
	far.Passed(&r.seg.Key, 0, r.seg.Payload())
	if !near.Knows(&r.seg.Key) && far.Knows(&r.seg.Key) && r.ends[1-dir].Merger.Pending() > 0 {
		return r.flush(1-dir, aggregate.FlushUrgent)
	}
	return nil
}

// Finish sends what still waits.
func (r *Replay) Finish() error { return r.advance(1<<62, true) }

// advance moves the clock, flushing what is due on the way: before at, or at it
// too. What is due first goes first.
func (r *Replay) advance(at time.Duration, inclusive bool) error {
	for r.fault == nil {
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
			r.fault = err
		}
	}
	return r.fault
}

// flush sends a frame and checks what becomes of it.
func (r *Replay) flush(dir Direction, why aggregate.Reason) error {
	w := &r.ways[dir]
	start := time.Now()
	w.frame = r.ends[dir].Merger.Flush(w.frame[:0], r.now, why)
	middle := time.Now()
	packets, n, err := r.ends[1-dir].Expander.Expand(w.frame)
	r.Decode += time.Since(middle)
	r.Encode += middle.Sub(start)
	onLink := len(w.frame) + carriers(len(w.frame))*r.cfg.Overhead
	w.Frames++
	w.BytesFrames += uint64(len(w.frame))
	w.CarrierPackets += uint64(carriers(len(w.frame)))
	w.BytesWire += uint64(onLink)
	r.sides.guests.count(&w.ledger, len(w.frame), onLink)
	if err == nil && n != len(w.frame) {
		err = fmt.Errorf("%d of its %d bytes were left over", len(w.frame)-n, len(w.frame))
	}
	if err != nil {
		for d := range r.ways {
			r.ways[d].Mismatched += r.ways[d].ledger.pending()
		}
		return &FaultError{Direction: dir, Frame: w.Frames, Err: err}
	}
	for _, v := range w.rivals {
		if err := v.frame(&w.ledger); err != nil {
			return err
		}
	}
	return r.check(dir, packets)
}

// check compares the packets of a frame with those that were sent.
func (r *Replay) check(dir Direction, packets [][]byte) error {
	w := &r.ways[dir]
	identical := uint64(0)
	for _, p := range packets {
		switch sent, number, ok := w.ledger.take(r.sides, dir, p); {
		case ok && string(sent) == string(p):
			identical++
		case ok:
			r.note("packet %d %s, %s", number, dir, difference(sent, p))
		default:
			r.note("frame %d %s held a packet of %d bytes that was not sent", w.Frames, dir, len(p))
		}
		if r.cfg.Rebuilt != nil {
			if err := r.cfg.Rebuilt(r.wall(), p); err != nil {
				return err
			}
		}
	}
	if number, lost := w.ledger.lost(); lost {
		r.note("packet %d %s was lost", number, dir)
	}
	w.Rebuilt += uint64(len(packets))
	w.Identical += identical
	w.Mismatched += max(uint64(len(packets)), w.ledger.size()) - identical
	w.ledger.reset()
	return nil
}

// wall returns the time of the last frame by the clock of the capture.
func (r *Replay) wall() time.Time {
	if r.first.IsZero() {
		return r.first
	}
	return r.first.Add(r.now)
}

// note keeps the first difference.
func (r *Replay) note(format string, args ...any) {
	if r.Worst == "" {
		r.Worst = fmt.Sprintf(format, args...)
	}
}

// Way returns what was counted in a direction.
func (r *Replay) Way(d Direction) Counts { return r.ways[d].Counts }

// Stats returns what the merger of a direction counted, valid until the next call.
func (r *Replay) Stats(d Direction) *aggregate.Stats { return r.ends[d].Merger.Stats() }

// Total returns what was counted in both directions.
func (r *Replay) Total() Counts {
	c := r.ways[Up].Counts
	c.add(&r.ways[Down].Counts)
	return c
}

// progressEvery is after how many records Progress is called.
const progressEvery = 4096

// Run replays a capture to its end. Of a damaged capture it replays what is
// before the damage and returns the *pcap.FileError. A *FaultError says that the
// lane broke down. Of the records read, those skipped held no packet to replay.
func (r *Replay) Run(in *pcap.Reader) (records, skipped uint64, err error) {
	var clock pcap.Clock
	for {
		p, err := in.Next()
		if errors.Is(err, io.EOF) && !errors.As(err, new(*pcap.FileError)) {
			return records, skipped, r.Finish()
		}
		if err != nil {
			return records, skipped, errors.Join(r.Finish(), err)
		}
		records++
		at, why := r.admit(&clock, &p)
		if why != "" {
			skipped++
			r.skips[why]++
			r.number++
			continue
		}
		if r.first.IsZero() {
			r.first = p.Time
		}
		if err := r.Add(at, p.Data); err != nil {
			return records, skipped, err
		}
		if r.cfg.Progress != nil && records%progressEvery == 0 {
			r.cfg.Progress()
		}
	}
}

// maxReasons bounds the reasons, of which there may be one for each link type.
const maxReasons = 32

// admit returns when a record is replayed, or else why it is not.
func (r *Replay) admit(clock *pcap.Clock, p *pcap.Packet) (at time.Duration, why string) {
	if p.Skip == pcap.SkipNone {
		if at = clock.At(p.Time); r.copies.seen(at, p) {
			why = copied
		}
		return at, why
	}
	if p.Skip == pcap.SkipUnsupportedLink && p.Note != "" {
		why = "unsupported " + p.Note
		if _, known := r.skips[why]; known || len(r.skips) < maxReasons {
			return 0, why
		}
	}
	return 0, p.Skip.String()
}

// registry returns the table of protocols in use.
func (r *Replay) registry() *parsers.Registry { return r.cfg.Lane.Registry }
