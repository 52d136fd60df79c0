package aggregate

import (
	"cmp"
	"slices"
	"time"

	"sheaf/engine/aggregate/codec"
	"sheaf/engine/aggregate/seal"
	"sheaf/parsers"
)

// A Reason is why a frame was written when it was.
type Reason uint8

const (
	FlushWindow   Reason = iota // the oldest segment had waited for Window
	FlushQuiet                  // nothing more came for Quiet
	FlushAck                    // the oldest acknowledgement had waited for AckWait
	FlushUrgent                 // a segment must not wait
	FlushComplete               // all members of the known sets had come
	FlushFull                   // the frame could take no more
	FlushEnd                    // the caller asked
	numReasons
)

func (r Reason) String() string {
	return [...]string{"window", "quiet", "ack", "urgent", "complete", "full", "end"}[r]
}

// A Part is a part of the traffic that costs are told apart by.
type Part uint8

const (
	PartFrames   Part = iota // what frames themselves take: lengths, digests, clocks
	PartHeaders              // headers and contexts of segments that carry messages
	PartAcks                 // segments that only acknowledge, and acknowledgement messages
	PartTopics               // what comes before the bodies of messages: kinds, lengths, topics
	PartBodies               // the bodies
	PartVerbatim             // packets carried as they are
	NumParts
)

func (p Part) String() string {
	return [...]string{"frames", "headers", "acknowledgements", "topics", "bodies", "verbatim"}[p]
}

// Stats count what a Merger did. In are bytes of IP packets, Out are bytes on
// the lane; Out is in fractions, since a byte of a frame belongs to many.
type Stats struct {
	Packets     uint64
	Verbatim    uint64 // packets carried as they are
	Refused     uint64 // packets that were not carried, and are not in Packets: see ErrLength
	Frames      uint64
	BytesIn     uint64
	BytesFrames uint64
	Contexts    uint64 // announced
	Evicted     uint64 // contexts that gave way
	In          [NumParts]uint64
	Out         [NumParts]float64
	Flushes     [numReasons]uint64
	Waited      time.Duration // from Add to the frame, of all packets together
	Longest     time.Duration // of one of them
	Hits        [NumHits]uint64
	NoHits      uint64 // spans that found nothing to be compared with
	Messages    map[EventKey]*EventStats
	TLS         seal.Stats // of the records that were opened, and those that were not

	parts map[uint64]*EventStats // by what the parts of a message have in common
}

// Accumulate adds the counts of o to s, which stays independent of it.
func (s *Stats) Accumulate(o *Stats) {
	s.Packets += o.Packets
	s.Verbatim += o.Verbatim
	s.Refused += o.Refused
	s.Frames += o.Frames
	s.BytesIn += o.BytesIn
	s.BytesFrames += o.BytesFrames
	s.Contexts += o.Contexts
	s.Evicted += o.Evicted
	s.NoHits += o.NoHits
	s.TLS.Add(&o.TLS)
	s.Waited += o.Waited
	s.Longest = max(s.Longest, o.Longest)
	for i := range o.In {
		s.In[i] += o.In[i]
		s.Out[i] += o.Out[i]
	}
	for i := range o.Flushes {
		s.Flushes[i] += o.Flushes[i]
	}
	for i := range o.Hits {
		s.Hits[i] += o.Hits[i]
	}
	for k, e := range o.Messages {
		s.of(k).add(e)
	}
}

// Hit is the criterion by which a span found what it was compared with.
type Hit = codec.Hit

// The criteria that Stats count by; see package codec.
const (
	HitEvent      = codec.HitEvent
	HitNameLength = codec.HitNameLength
	HitName       = codec.HitName
	HitLength     = codec.HitLength
	HitContent    = codec.HitContent
	NumHits       = codec.NumHits
)

// Flush returns how many frames were written for a reason.
func (s *Stats) Flush(r Reason) uint64 { return s.Flushes[r] }

// Reasons are all reasons.
func Reasons() []Reason {
	r := make([]Reason, numReasons)
	for i := range r {
		r[i] = Reason(i)
	}
	return r
}

// An EventKey is what messages are counted by.
type EventKey struct {
	Protocol parsers.ProtocolID
	Name     uint8
	Event    string // empty for messages without one
	Rest     bool   // of the events that are not counted apart; Event is empty
}

// EventStats count the messages of an event.
type EventStats struct {
	Messages uint64
	BytesIn  uint64  // of the IP packets with the message, shared out among those in it
	BytesOut float64 // of the frames, likewise

	into *EventStats // where they are counted since the event gave way; nil before
}

func (e *EventStats) add(o *EventStats) {
	e.Messages += o.Messages
	e.BytesIn += o.BytesIn
	e.BytesOut += o.BytesOut
}

// maxEvents bounds how many events are counted apart, and keptEvents is how many of
// those are kept when there are more: the heaviest. One that comes back is counted
// anew, so each that has more than one part in keptEvents of the bytes from then on
// is among them whenever it began. What gave way is in the Rest of its kind.
const (
	maxEvents  = 1 << 14
	keptEvents = maxEvents / 2
)

// of returns where an event is counted, which is new where it was not.
func (s *Stats) of(key EventKey) *EventStats {
	if e := s.Messages[key]; e != nil {
		return e
	}
	if s.Messages == nil {
		s.Messages = make(map[EventKey]*EventStats)
	}
	if len(s.Messages) >= maxEvents && key.Event != "" {
		s.prune()
	}
	e := &EventStats{}
	s.Messages[key] = e
	return e
}

// prune has all but the heaviest events give way.
func (s *Stats) prune() {
	keys := make([]EventKey, 0, len(s.Messages))
	for k := range s.Messages {
		if k.Event != "" {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b EventKey) int { // leaving nothing to chance
		return cmp.Or(cmp.Compare(s.Messages[b].BytesIn, s.Messages[a].BytesIn),
			cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Event, b.Event))
	})
	for _, k := range keys[min(len(keys), keptEvents):] {
		rest := s.of(EventKey{Protocol: k.Protocol, Name: k.Name, Rest: true})
		e := s.Messages[k]
		rest.add(e)
		*e = EventStats{into: rest}
		delete(s.Messages, k)
	}
	clear(s.parts)
}
