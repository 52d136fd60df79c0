package replay

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/pcap"
)

// A Report is what a replay found out. Its JSON form is what `sheaf replay
// --json` prints.
type Report struct {
	File       string  `json:"file"`
	Error      string  `json:"error,omitempty"`      // why the capture was not replayed, or not to its end
	Damage     string  `json:"damage,omitempty"`     // where the capture ends early: all before it was replayed
	Fault      string  `json:"fault,omitempty"`      // why the lane broke down
	Difference string  `json:"difference,omitempty"` // the first packet that came out different
	Seconds    float64 `json:"seconds"`              // from the first packet to the last
	// Counts are those of both directions. Its Packets are all records of the
	// capture, of which Skipped hold no packet to replay.
	Counts
	Skipped      uint64                     `json:"skipped"`
	SkipReasons  map[string]uint64          `json:"skip_reasons"`
	Directions   Directions                 `json:"directions"`
	Protocols    map[string]*ProtocolReport `json:"protocols"`
	FlushReasons map[string]uint64          `json:"flush_reasons"`
	Similarity   map[string]uint64          `json:"similarity"` // by what spans found something to be compared with
	Where        map[string]Share           `json:"where"`
	Guests       []GuestReport              `json:"guests,omitempty"`  // most bytes first, where some have names
	Secrets      *SecretsReport             `json:"secrets,omitempty"` // of TLS, where there were any
	Contexts     uint64                     `json:"contexts"`          // announced
	Verbatim     uint64                     `json:"verbatim"`          // packets carried as they are
	EncodeNs     float64                    `json:"encode_ns_per_packet"`
	DecodeNs     float64                    `json:"decode_ns_per_packet"`
	Compare      []Rival                    `json:"compare,omitempty"`
	Copies       uint64                     `json:"copies"`    // of Skipped, packets that were seen at another interface before
	Twice        uint64                     `json:"twice"`     // packets replayed that may be such copies, which the capture does not tell
	Truncated    uint64                     `json:"truncated"` // of Skipped, packets of which fewer bytes were captured than they have

	Rows      []Row     `json:"-"` // what Protocols sums up, most bytes first
	OddPorts  []OddPort `json:"-"` // most bytes first
	Known     []string  `json:"-"` // the protocols that are known
	NoBroker  bool      `json:"-"` // Config.Broker had no part in the capture
	Opaque    uint64    `json:"-"` // messages' bytes of no known protocol
	WithNames uint64    `json:"-"` // messages' bytes of known ones
}

// Exact tells whether every packet came out as it went in. Where an Error broke
// the replay off, it is about those that came out.
func (r *Report) Exact() bool {
	replayed := r.Directions.Up.Packets + r.Directions.Down.Packets
	return r.Fault == "" && r.Mismatched == 0 && (r.Identical == replayed || r.Error != "")
}

// Directions are the two ways through a lane.
type Directions struct {
	Up   DirectionReport `json:"up"`
	Down DirectionReport `json:"down"`
}

// A DirectionReport is what went one way.
type DirectionReport struct {
	Counts
	Messages uint64 `json:"messages"` // of known protocols
	// EventMessages are those among them of kinds that are about an event, or that
	// carry content where no event can be told, as acknowledgements and pings do not.
	EventMessages uint64            `json:"event_messages"`
	FlushReasons  map[string]uint64 `json:"flush_reasons"`
	Where         map[string]Share  `json:"where"`
	TLS           TLSReport         `json:"tls"`
}

// A Share is a part of the traffic.
type Share struct {
	BytesIn   uint64  `json:"bytes_in"`   // of IP packets
	BytesWire float64 `json:"bytes_wire"` // in frames; those of the part "carrier" in its overhead
}

// PartCarrier is the part of a Report's Where that no frame has.
const PartCarrier = "carrier"

// Parts returns the parts of a Report's Where, in order.
func Parts() []string {
	parts := []string{
		aggregate.PartHeaders.String(), aggregate.PartAcks.String(), aggregate.PartTopics.String(),
		aggregate.PartBodies.String(), aggregate.PartVerbatim.String(), aggregate.PartFrames.String(),
	}
	return append(parts, PartCarrier)
}

// An OddPort is a port on which a service was found that no protocol is known of.
type OddPort struct {
	Proto uint8 // of IP
	Port  uint16
	Bytes uint64 // of IP packets, both ways, of conversations in which none was recognised
}

// NewReport returns the Report on a capture of which nothing was replayed.
func NewReport(file string) *Report {
	direction := func() DirectionReport {
		return DirectionReport{FlushReasons: make(map[string]uint64), Where: make(map[string]Share)}
	}
	return &Report{
		File:         file,
		SkipReasons:  make(map[string]uint64),
		Directions:   Directions{Up: direction(), Down: direction()},
		Protocols:    make(map[string]*ProtocolReport),
		FlushReasons: make(map[string]uint64),
		Similarity:   make(map[string]uint64),
		Where:        make(map[string]Share),
	}
}

// Report sums up a replay. err is what Run returned.
func (r *Replay) Report(file string, err error) *Report {
	p := NewReport(file)
	p.Counts = r.Total()
	p.EncodeNs = perPacket(r.Encode, p.Packets)
	p.DecodeNs = perPacket(r.Decode, p.Packets)
	p.Difference = r.Worst
	p.Seconds = round(r.last.Seconds(), 6)
	p.NoBroker = r.cfg.Broker.Addr.IsValid() && !r.sides.met
	p.OddPorts = r.sides.oddPorts()
	p.Guests = r.sides.guests.report()
	p.Known = r.registry().Names()[1:] // without opaque
	for reason, n := range r.skips {
		p.Skipped += n
		p.SkipReasons[reason] = n
	}
	p.Truncated = r.skips[pcap.SkipTruncated.String()]
	p.Copies = r.skips[copied]
	p.Twice = r.copies.twice
	p.Packets += p.Skipped
	p.blame(err)
	for d, out := range []*DirectionReport{&p.Directions.Up, &p.Directions.Down} {
		r.direction(Direction(d), p, out)
	}
	if r.cfg.Compare {
		p.Compare = r.rivals()
	}
	p.Rows = r.rows()
	p.Protocols = protocols(p.Rows)
	p.countMessages()
	return p
}

// countMessages counts the messages of each direction.
func (p *Report) countMessages() {
	type kind struct{ protocol, name string }
	about := make(map[kind]bool) // an event
	for i := range p.Rows {
		if row := &p.Rows[i]; row.Event != "" || row.Rest || row.content {
			about[kind{row.Protocol, row.Name}] = true
		}
	}
	for i := range p.Rows {
		row := &p.Rows[i]
		if row.opaque {
			p.Opaque += row.BytesIn
			continue
		}
		p.WithNames += row.BytesIn
		out := &p.Directions.Up
		if row.Direction == Down {
			out = &p.Directions.Down
		}
		out.Messages += row.Messages
		if about[kind{row.Protocol, row.Name}] {
			out.EventMessages += row.Messages
		}
	}
}

// blame says whose fault err is.
func (p *Report) blame(err error) {
	var fault *FaultError
	var damage *pcap.FileError
	if errors.As(err, &fault) {
		p.Fault = fault.Error()
	}
	if errors.As(err, &damage) {
		p.Damage = damage.Error()
	}
	if err != nil && fault == nil && damage == nil {
		p.Error = err.Error()
	}
}

// direction fills out and adds to p what both directions have in common.
func (r *Replay) direction(d Direction, p *Report, out *DirectionReport) {
	s := r.Stats(d)
	out.Counts = r.ways[d].Counts
	for _, why := range aggregate.Reasons() {
		n := s.Flush(why)
		out.FlushReasons[why.String()] = n
		p.FlushReasons[why.String()] += n
	}
	for part := range aggregate.NumParts {
		out.Where[part.String()] = Share{BytesIn: s.In[part], BytesWire: round(s.Out[part], 1)}
	}
	out.Where[PartCarrier] = Share{BytesWire: float64(out.BytesWire - out.BytesFrames)}
	for part, share := range out.Where {
		sum := p.Where[part]
		sum.BytesIn += share.BytesIn
		sum.BytesWire = round(sum.BytesWire+share.BytesWire, 1)
		p.Where[part] = sum
	}
	for hit := range aggregate.NumHits {
		p.Similarity[hit.String()] += s.Hits[hit]
	}
	p.Similarity["none"] += s.NoHits
	out.TLS = r.tlsReport(d)
	p.Contexts += s.Contexts
	p.Verbatim += s.Verbatim
}

// oddPorts returns the ports of services that no protocol is known of, neither by
// the port nor by what went through it.
func (s *sides) oddPorts() []OddPort {
	s.settle()
	var out []OddPort
	for at, n := range s.unknown {
		if at.port != 0 && !s.known[at.port] {
			out = append(out, OddPort{Proto: at.proto, Port: at.port, Bytes: n})
		}
	}
	slices.SortFunc(out, func(a, b OddPort) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Proto, b.Proto))
	})
	return out[:min(len(out), maxOddPorts)]
}

const maxOddPorts = 3

// perPacket returns nanoseconds.
func perPacket(d time.Duration, packets uint64) float64 {
	return round(float64(d)/float64(max(packets, 1)), 1)
}

// round rounds to a number of decimal places.
func round(v float64, places int) float64 {
	f := math.Pow10(places)
	return math.Round(v*f) / f
}
