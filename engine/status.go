package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"sheaf/engine/aggregate"
	"sheaf/engine/aggregate/seal"
	"sheaf/netstack"
)

// A Status is what a gateway tells about itself. Byte counts are of IP packets
// (In) and of frames (Out), since the gateway started.
type Status struct {
	Fingerprint string        `json:"fingerprint"`
	Device      string        `json:"device,omitempty"`
	Since       time.Time     `json:"since"`
	Uptime      time.Duration `json:"uptime_ns"`
	Listen      string        `json:"listen,omitempty"`
	Strangers   uint64        `json:"strangers"`        // calls from those who are no peer
	Unroutable  uint64        `json:"unroutable"`       // packets for which there is no peer
	Faults      []string      `json:"faults,omitempty"` // of the device and its routes: what is not as it was made
	Losses      DeviceLosses  `json:"device_losses"`
	Joined      uint64        `json:"device_joined"` // packets that the kernel took inside super-segments

	Stack *netstack.StackStats `json:"stack,omitempty"` // of the userspace stack, where there is no device

	Secrets *SecretsStatus `json:"secrets,omitempty"` // of TLS connections, where there is a [[tls]]

	TLSServers []TLSServerStatus `json:"tls_servers,omitempty"` // that the gateway is itself

	Guests *GuestsStatus `json:"guests,omitempty"` // of virtual machines, where there is a [vm]

	Peers []PeerStatus `json:"peers"`
}

// DeviceLosses count what the device and the gateway did not take from one another.
type DeviceLosses struct {
	Malformed uint64 `json:"malformed"` // packets read that are no IP packets
	Unsplit   uint64 `json:"unsplit"`   // reads that were no packets, nor a super-segment to make some of
	Truncated uint64 `json:"truncated"` // super-segments of more packets than a read holds: the rest is lost
	Untaken   uint64 `json:"untaken"`   // packets written that the kernel did not take
}

// deviceLosses returns what was lost so far.
func (g *Gateway) deviceLosses() DeviceLosses {
	l := DeviceLosses{Malformed: g.malformed.Load()}
	if g.device != nil {
		t := g.device.Stats()
		l.Unsplit, l.Truncated, l.Untaken = t.Unsplit, t.Truncated, t.Refused
	}
	return l
}

// Reasons returns the counts by the names of their metrics.
func (l DeviceLosses) Reasons() map[string]uint64 {
	return map[string]uint64{"malformed": l.Malformed, "unsplit": l.Unsplit, "truncated": l.Truncated, "untaken": l.Untaken}
}

// A PeerStatus tells of one peer.
type PeerStatus struct {
	Name        string        `json:"name"`
	Fingerprint string        `json:"fingerprint"`
	Endpoint    string        `json:"endpoint,omitempty"`
	Dialed      bool          `json:"dialed"`   // this end called
	Attempts    int           `json:"attempts"` // calls that failed since it was last up
	Connected   bool          `json:"connected"`
	Up          bool          `json:"up"` // connected, and all lanes are up
	Carrier     string        `json:"carrier,omitempty"`
	Remote      string        `json:"remote,omitempty"`
	RTT         time.Duration `json:"rtt_ns,omitempty"`
	Since       time.Time     `json:"since,omitzero"`
	Error       string        `json:"error,omitempty"` // why it is not up, or was not connected before
	Cause       Cause         `json:"cause,omitempty"` // the kind of that, while it is not up
	Allowed     []string      `json:"allowed"`
	Refused     uint64        `json:"refused"` // packets from addresses that the peer may not send from
	Lanes       []LaneStatus  `json:"lanes"`
	Sent        Traffic       `json:"sent"`
	Received    Traffic       `json:"received"`
}

// Traffic is what went one way.
type Traffic struct {
	Packets     uint64 `json:"packets"`
	Bytes       uint64 `json:"bytes"` // of IP packets
	Frames      uint64 `json:"frames"`
	BytesFrames uint64 `json:"bytes_frames"`
	BytesWire   uint64 `json:"bytes_wire"` // with about what the carrier adds
}

// A LaneStatus tells of one lane.
type LaneStatus struct {
	Class        string                `json:"class"`
	Up           bool                  `json:"up"`              // an epoch runs, and is not one of many that do not last
	Fault        string                `json:"fault,omitempty"` // why it is not up
	Epochs       uint64                `json:"epochs"`
	Ended        string                `json:"ended,omitempty"` // why the last epoch ended
	Dropped      uint64                `json:"dropped"`         // packets that waited too long
	DroppedBytes uint64                `json:"dropped_bytes"`
	Evicted      uint64                `json:"evicted"` // contexts that gave way
	Verbatim     uint64                `json:"verbatim"`
	Packets      uint64                `json:"packets"`         // sent
	Waited       time.Duration         `json:"waited_ns"`       // of those together, until a frame took them
	Longest      time.Duration         `json:"longest_wait_ns"` // of one of them
	Contexts     uint64                `json:"contexts"`
	Flushes      map[string]uint64     `json:"flush_reasons"`
	Hits         map[string]uint64     `json:"similarity_hits"`
	Where        map[string]WhereTotal `json:"where"`
	TLS          TLSStatus             `json:"tls"`
	Events       []EventStatus         `json:"events"` // most bytes first

	Messages map[MessageKind]uint64 `json:"-"` // of all events
}

// A TLSStatus tells what became of the TLS records sent.
type TLSStatus struct {
	Connections uint64            `json:"connections"`      // of which a record was opened
	Records     uint64            `json:"records"`          // that were opened
	Bytes       uint64            `json:"bytes"`            // of their content
	Carried     map[string]uint64 `json:"carried"`          // protected records that were not, by reason
	Suites      map[string]uint64 `json:"suites,omitempty"` // connections whose cipher suite cannot be opened
}

// tlsStatus returns what there is to tell of counters.
func tlsStatus(s *seal.Stats) TLSStatus {
	out := TLSStatus{
		Connections: s.Connections, Records: s.Records, Bytes: s.Bytes,
		Carried: make(map[string]uint64), Suites: s.SuiteNames(),
	}
	for why := range seal.NumCarried {
		out.Carried[why.String()] = s.Carried[why]
	}
	return out
}

// A MessageKind is a kind of message of a protocol.
type MessageKind struct{ Protocol, Message string }

// A WhereTotal is what a part of the traffic took before and after.
type WhereTotal struct {
	BytesIn  uint64  `json:"bytes_in"`
	BytesOut float64 `json:"bytes_out"`
}

// An EventStatus tells of the messages of one event.
type EventStatus struct {
	Protocol  string  `json:"protocol"`
	Encrypted bool    `json:"encrypted,omitempty"` // the protocol hides what it carries
	Message   string  `json:"message"`
	Event     string  `json:"event"`
	Rest      bool    `json:"rest,omitempty"` // of this kind, all events that are not listed
	Messages  uint64  `json:"messages"`
	BytesIn   uint64  `json:"bytes_in"`
	BytesOut  float64 `json:"bytes_out"`
}

// maxStatusEvents bounds the events that a LaneStatus lists, beside one row for each
// kind of message.
const maxStatusEvents = 100

// Status returns what there is to tell now.
func (g *Gateway) Status() Status {
	s := Status{
		Fingerprint: g.fingerprint.String(), Since: g.since, Uptime: time.Since(g.since),
		Unroutable: g.unroutable.Load(), Losses: g.deviceLosses(), Strangers: g.tunnel.Refused(),
		Secrets: g.secrets.status(), Guests: g.guests.status(),
	}
	if g.device != nil {
		s.Device, s.Joined = g.device.Name(), g.device.Stats().Joined
		device, routes := g.faults()
		s.Faults = append(device, slices.Sorted(maps.Values(routes))...)
	}
	if g.stack != nil {
		stats := g.stack.Stats()
		s.Stack = &stats
	}
	if a := g.Addr(); a != nil {
		s.Listen = a.String()
	}
	for _, f := range g.fronts {
		s.TLSServers = append(s.TLSServers, f.status())
	}
	for _, p := range g.sortedPeers() {
		s.Peers = append(s.Peers, g.peerStatus(p))
	}
	return s
}

func (g *Gateway) peerStatus(p *peer) PeerStatus {
	t := p.tunnel.Status()
	s := PeerStatus{
		Name: p.name, Fingerprint: t.Fingerprint.String(), Endpoint: t.Endpoint, Dialed: t.Dialed, Attempts: t.Attempts, Connected: t.Connected, Refused: p.refused.Load(), Since: t.Since,
	}
	err := t.LastError
	if mismatch := p.mismatch.why(); mismatch != nil && t.Attempts == 0 {
		err = mismatch
	} else if t.Connected {
		if fault := p.fault(time.Since(g.since)); fault != nil {
			err = fault
		} else {
			s.Up = true
		}
	}
	if t.Connected {
		s.Carrier, s.Remote, s.RTT = t.Carrier.String(), t.Remote.String(), t.RTT
	}
	if err != nil {
		s.Error = err.Error()
	}
	if !s.Up {
		s.Cause = CauseOf(err)
	}
	for _, a := range g.Routes() {
		if a.Peer == p.name {
			s.Allowed = append(s.Allowed, a.Prefix.String())
		}
	}
	for _, l := range p.lanes {
		overhead := uint64(l.overhead.Load())
		sent, got := l.snapshot()
		s.Sent.add(Traffic{sent.Packets, sent.BytesIn, sent.Frames, sent.BytesFrames, sent.BytesFrames + sent.Frames*overhead})
		s.Received.add(Traffic{got.Packets, got.Bytes, got.Frames, got.BytesFrames, got.BytesFrames + got.Frames*overhead})
		s.Lanes = append(s.Lanes, g.laneStatus(l, &sent))
	}
	return s
}

// fault returns what is wrong with the lanes, or nil.
func (p *peer) fault(now time.Duration) error {
	for _, l := range p.lanes {
		if err := l.health.fault(now); err != nil {
			return fmt.Errorf("%v lane: %w", l.class, err)
		}
	}
	return nil
}

func (t *Traffic) add(o Traffic) {
	t.Packets += o.Packets
	t.Bytes += o.Bytes
	t.Frames += o.Frames
	t.BytesFrames += o.BytesFrames
	t.BytesWire += o.BytesWire
}

func (g *Gateway) laneStatus(l *laneRunner, sent *aggregate.Stats) LaneStatus {
	s := LaneStatus{
		Class: l.class.String(), Epochs: l.epochs.Load(),
		Packets: sent.Packets, Waited: sent.Waited, Longest: sent.Longest,
		Verbatim: sent.Verbatim, Contexts: sent.Contexts, Evicted: sent.Evicted,
		Messages: map[MessageKind]uint64{},
		Flushes:  map[string]uint64{}, Hits: map[string]uint64{}, Where: map[string]WhereTotal{},
	}
	s.Dropped, s.DroppedBytes = l.queue.drops()
	if err := l.health.last(); err != nil {
		s.Ended = err.Error()
	}
	if err := l.health.fault(time.Since(g.since)); err != nil {
		s.Fault = err.Error()
	} else {
		s.Up = true
	}
	for _, r := range aggregate.Reasons() {
		s.Flushes[r.String()] = sent.Flush(r)
	}
	for h := range aggregate.NumHits {
		s.Hits[h.String()] = sent.Hits[h]
	}
	for p := range aggregate.NumParts {
		s.Where[p.String()] = WhereTotal{sent.In[p], sent.Out[p]}
	}
	for k, e := range sent.Messages {
		s.Events = append(s.Events, EventStatus{
			Protocol: g.registry.Name(k.Protocol), Encrypted: g.registry.Encrypted(k.Protocol), Message: g.registry.MessageName(k.Protocol, k.Name), Event: eventText(k.Event), Rest: k.Rest,
			Messages: e.Messages, BytesIn: e.BytesIn, BytesOut: e.BytesOut,
		})
	}
	for _, e := range s.Events {
		s.Messages[MessageKind{e.Protocol, e.Message}] += e.Messages
	}
	s.Events = heaviest(s.Events)
	s.TLS = tlsStatus(&sent.TLS)
	return s
}

// heaviest returns the events with most bytes, and for each kind one row of the rest
// where there are more.
func heaviest(events []EventStatus) []EventStatus {
	slices.SortFunc(events, func(a, b EventStatus) int {
		return cmp.Or(cmp.Compare(b.BytesIn, a.BytesIn), cmp.Compare(a.Event, b.Event), cmp.Compare(a.Message, b.Message))
	})
	var out []EventStatus
	rest := make(map[MessageKind]int) // where in out it is
	listed := 0
	for _, e := range events {
		switch {
		case e.Rest:
		case e.Event == "": // there are no more of these than kinds
			out = append(out, e)
			continue
		case listed < maxStatusEvents:
			listed++
			out = append(out, e)
			continue
		}
		kind := MessageKind{e.Protocol, e.Message}
		at, ok := rest[kind]
		if !ok {
			at = len(out)
			rest[kind] = at
			out = append(out, EventStatus{Protocol: e.Protocol, Encrypted: e.Encrypted, Message: e.Message, Rest: true})
		}
		sum := &out[at]
		sum.Messages += e.Messages
		sum.BytesIn += e.BytesIn
		sum.BytesOut += e.BytesOut
	}
	return out
}

// eventText returns an event as text: one that is not UTF-8 is quoted.
func eventText(event string) string {
	if utf8.ValidString(event) {
		return event
	}
	return strconv.Quote(event)
}
