package codec

import (
	"errors"
	"fmt"

	"sheaf/engine/wire"
	"sheaf/parsers"
)

// ErrFrame tells that a frame asked for what its receiver does not have or will
// not give: it is malformed, or what the two ends remember has drifted apart. The
// epoch is over; nothing of the frame was delivered.
var ErrFrame = errors.New("aggregate: frame does not fit what is remembered")

// ErrLimit tells that a frame asked for more than the limits that both ends agreed on
// in their Hellos ([wire.Limits]). It matches [ErrFrame].
var ErrLimit = fmt.Errorf("%w: past a limit", ErrFrame)

func invalid(what string) error { return fmt.Errorf("%w: %s", ErrFrame, what) }

func pastLimit(what string) error { return fmt.Errorf("%w: %s", ErrLimit, what) }

// A state is what both ends of one direction of a lane remember: the Encoder has
// one and the peer's Decoder has its twin. Every frame changes both in the same way,
// and nothing else does. It is plain data: it points to neither end, and every field
// is the same at both ends after every frame (TestStatesAgree compares them).
//
// Each of its tables is bounded, and right when it is full, evicts, and meets again
// what it evicted:
//
//	contexts   A CID is given to another flow by enterContext only. forget ends the
//	           pair of the flow before it, and what was expected of it. What goes on
//	           naming the CID (sets, next, lastMember, views of earlier pairs) means the
//	           new flow from then on.
//	layouts    An entry is made by both ends at once and keeps its place for good; which
//	           one gives way follows from the groups since it was used (layouts.go).
//	templates  The order of use changes in enterTemplate only. A template is cleared
//	           when it is dropped, so that next, follow, lastTemplate and a context's
//	           template, which may go on naming it, meet an empty one, or the next one
//	           there.
//	bodies     They go with their template. Their bytes are counted alike; the template
//	           that is being written is not dropped for them.
//	sets       CIDs, each once; those without a context are dropped at the next lesson.
//	views      Of a peer's CID. An item with a new flow clears it and undoes its pair;
//	           unpaired, own and reverse are looked at before they are used.
//	expected   CIDs, each once: a flow that ends or has a segment is taken off.
//
// A number may outlive what it stood for. It then stands for what has taken the
// place, or for nothing, at both ends alike: it is a guess, looked at when it is
// used, and a guess that is wrong costs bytes.
type state struct {
	limits    wire.Limits
	contexts  []*context // by CID; nil where there is none
	templates templates
	ackSet    []setMember // the flows that get segments without payload: acknowledgements
	layouts   layouts
	views     views // the other direction, as far as this one refers to it
	models    models

	newestText   [parsers.NumCounters][]byte // the newest text of any flow, by counter
	newestOpaque []byte                      // the newest of any flow's runs of opaque header bytes

	clock        uint32          // milliseconds, moved on by frames
	ahead        uint32          // milliseconds that the last TSval of this frame was ahead of the clock
	acked        uint64          // frames of the peer that the last frame acknowledged
	newest       parsers.FlowKey // of the newest context
	freshWindow  uint16          // receive window of the newest context's first segment
	openWindow   uint16          // of the newest segment that was its flow's first behind a SYN
	lastMember   [2]CID          // last member listed; by payload, as all arrays of two
	lastTemplate templateNumber  // first template of the last group of several members
	lastKind     Kind            // of the last group
	group        groupNumber     // the one being coded
}

func (s *state) init(limits wire.Limits) {
	s.limits = limits
	s.templates.table = make([]template, 0, limits.Templates)
	s.layouts.init(&limits)
}

// A context is what is known of one direction of a conversation from its segments so
// far.
type context struct {
	key      parsers.FlowKey
	layout   *layout // of its last segment: an entry, or one that has lost its place
	counters [parsers.NumCounters]uint64
	texts    *[parsers.NumCounters][]byte // what filled its text holes last; nil without
	odd      *oddities                    // nil without
	next     [2]CID                       // listed after this one last time
	reverse  peerCID                      // its other direction
	template templateNumber               // of its last span

	end      uint32 // sequence number after its last byte
	ack      uint32 // acknowledgement number of its last segment
	offset   uint32 // of its TSval from the clock
	tsecr    uint32 // last TSecr (RFC 7323 section 3.2)
	clock    uint32 // when it was last heard
	label    uint32 // IPv6 flow label
	window   uint16
	step     uint16 // what the window last grew by
	id       uint16 // IPv4 identification
	idStep   uint16 // 1 where the last two differed, else 0
	least    uint16 // the least of the surprising TSvals
	ipSum    uint16 // its last IPv4 header checksum that was not right
	streak   int8   // surprising TSvals in a row, negative for low ones
	sums     uint8  // both checksum modes (Fields.sums)
	uneven   bool   // the surprises were not all the same
	syn      bool   // its last segment had a SYN
	started  bool   // TCP: end and ack are known
	hasTSval bool   // offset and tsecr are known
}

// oddities are what few flows have.
type oddities struct {
	sack   sack   // SACK blocks of its last segment
	opaque []byte // of the runs of its last segment that had any
}

// oddity returns the context's oddities, for a flow that has some from now on.
func (f *context) oddity() *oddities {
	if f.odd == nil {
		f.odd = new(oddities)
	}
	return f.odd
}

// context returns the context of a CID, nil where there is none.
func (s *state) context(c CID) *context {
	if c.place() >= uint32(len(s.contexts)) {
		return nil
	}
	return s.contexts[c.place()]
}

// forget ends the context of a CID that is given to another flow.
func (s *state) forget(c CID) {
	if f := s.context(c); f != nil {
		if v := s.view(f); v != nil && v.own == c {
			v.own = CID{}
		}
	}
	s.views.expected.remove(c)
	s.contexts[c.place()] = nil
}

// set returns where the flows are kept that get messages like a group's: with the
// template of its first span, or of all segments without payload.
func (s *state) set(g *Group) *[]setMember {
	if len(g.Spans) == 0 {
		return &s.ackSet
	}
	return &s.templates.at(g.Spans[0].template).set
}

// setLimit returns how many flows a set has at most: more could not be in a group.
func (s *state) setLimit() int { return min(setLimit, int(s.limits.Packets)) }
