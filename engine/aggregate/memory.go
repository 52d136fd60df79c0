package aggregate

import (
	"errors"
	"fmt"

	"sheaf/engine/aggregate/model"
	"sheaf/engine/wire"
	"sheaf/parsers"
)

// ErrFrame tells that a frame asked for what its receiver does not have or will
// not give: it is malformed, or the two ends' memories have drifted apart. The
// epoch is over; nothing of the frame was delivered.
var ErrFrame = errors.New("aggregate: frame does not fit what is remembered")

// ErrDigest tells that the packets of a frame came out other than they went in.
// It matches [ErrFrame].
var ErrDigest = fmt.Errorf("%w: digest mismatch", ErrFrame)

func bad(what string) error { return fmt.Errorf("%w: %s", ErrFrame, what) }

// A memory is what both ends of one direction of a lane remember: the writing
// end's Merger has one and the reading end's Expander has its twin. Every frame
// changes both in the same way (codec.go), and nothing else does.
//
// Each of its tables is bounded, and right when it is full, evicts, and meets again
// what it evicted:
//
//	flows    A CID is given to another flow by codeFlow only. forget ends the pair and
//	         the debt of the one before. What goes on naming it (sets, next, lastCID,
//	         views of earlier pairs) means the new flow from then on.
//	layouts  An entry is made by both ends at once and keeps its place for good; which
//	         one gives way follows from the groups since it was used (layouts.go).
//	slots    The order of use changes in codeSlot only. A slot is cleared when it is
//	         dropped, so that next, follow, lastSlot and a flow's slot, which may go on
//	         naming it, meet an empty one, or the next one there.
//	bodies   They go with their slot. Their bytes are counted alike; the slot that is
//	         being written is not dropped for them.
//	sets     CIDs, each once; those without a flow are dropped at the next lesson.
//	views    Of a peer's CID. An item with a new flow clears it and undoes its pair;
//	         unpaired, own and reverse are looked at before they are used.
//	owing    CIDs, each once: a flow that ends or has a segment is taken off.
//	items    The writer keeps those of its frames until the peer has named them. Where
//	         they would be too many, a frame says that it has none, and has none at
//	         both ends.
//	tags, opaque, newest and the like are one of a kind, and copies.
//
// What only the writer has (sources, slotOf, slotAlike, unpaired, links, shapes) says
// where to look. What is found there is told only where the memory still has it.
type memory struct {
	limits  wire.Limits
	flows   []*flow // contexts by CID
	slots   slots
	acks    slot // stands in for the slot of a group without payload
	layouts layouts
	peers   peers // the other direction, as far as this one refers to it
	models  models
	tags    [parsers.NumCounters][]byte // the newest text of any flow, by counter
	opaque  []byte                      // the newest of any flow's runs

	clock       uint32          // milliseconds, moved on by frames
	ahead       uint32          // how far the last timestamp of this frame was ahead of the clock
	named       uint64          // frames of the peer that the last frame named
	newest      parsers.FlowKey // of the newest context
	freshWindow uint16          // of the newest context
	openWindow  uint16          // of the newest segment that was its flow's first behind a SYN
	lastCID     [2]uint32       // last member listed; by payload, as all arrays of two below
	lastSlot    uint32          // first slot of the last group of several, plus one
	serial      uint32          // of the group being coded

	w *writer   // at the writing end, else nil
	r *Expander // at the reading end, else nil

	items      []item // what this frame tells the peer's views
	residuals  []int64
	extras     []int64
	sacks      []sack   // SACK blocks: writing, of the frame; reading, of the group
	sacked     []uint32 // members that have them
	texts      []byte   // what fills the text holes: writing, of the frame; reading, of the group
	present    []bool
	candidates []uint32
	scratch    []byte
	read       group  // reading: the group at hand
	bodyBuf    []byte // reading
	payload    []byte // reading: of a group with several spans
}

// A flow is the context of a CID: what is known of one direction of a
// conversation from its packets so far.
type flow struct {
	key       parsers.FlowKey
	layout    *layout
	counters  [parsers.NumCounters]uint64
	texts     *[parsers.NumCounters][]byte // what filled its text holes last; nil without
	odd       *oddities                    // nil without
	next      [2]uint32                    // CID listed after this one last time, plus one
	reverse   uint32                       // CID of the other direction in the peer's memory, plus one
	slot      uint32                       // of its last span, plus one
	mark      uint32                       // serial of the last group it was a member of
	place     uint32                       // writing: in that group
	cid       uint32
	end       uint32 // sequence number after its last byte
	ack       uint32
	offset    uint32 // of its timestamps from the clock
	echo      uint32 // last timestamp echoed
	clock     uint32 // when it was last heard
	crc       uint32 // over all its packets (wire.Digest); writing, those pending too
	label     uint32
	window    uint16
	step      uint16 // what the window last grew by
	id        uint16
	idStep    uint16
	least     uint16 // the least of the surprising timestamps
	streak    int8   // surprising timestamps in a row, negative for low ones
	sums      uint8  // both checksum modes
	ipSum     uint16 // its last IPv4 header checksum that was not right
	uneven    bool   // they were not all the same
	dull      uint8  // writing: bodies in a row that were longer as edits, and then left out
	announced bool   // the peer has the context
	syn       bool   // its last segment had a SYN
	started   bool   // TCP: end and ack are known
	stamped   bool   // offset and echo are known
}

// oddities are what few flows have.
type oddities struct {
	sack   sack   // SACK blocks of its last segment
	opaque []byte // of the runs of its last segment that had any
}

// oddity returns the flow's oddities, for a flow that has some from now on.
func (f *flow) oddity() *oddities {
	if f.odd == nil {
		f.odd = new(oddities)
	}
	return f.odd
}

// models are the learned probabilities of a frame's decisions. Their zero value
// is untaught.
type models struct {
	record, more, linked  model.Bit
	named, step, links    model.Int
	kinds                 [8][8]model.Bit // by the last kind
	kind                  kind
	payload               [8]model.Bit
	flags                 [2][256]model.Bit
	single                [2]model.Bit
	count, extra          [2]model.Int
	source                [2][4]model.Bit
	members               [3]model.Members
	fresh, follows        [2]model.Bit
	reuse                 model.Bit
	reversed, unpaired    model.Bit
	keySame               [48]model.Bit
	keyRaw                [2]model.Bit
	keyStep               model.Int
	oneSpan               [2]model.Bit
	spans                 model.Int
	slotKnown             [3]model.Bit
	slotNew, templated    model.Bit
	exact, raw, holesSame [2]model.Bit
	depth                 [slotDepth]model.Bit
	rawLen, hole          model.Int
	body                  model.Body
	layout                [2]model.Column
	layoutNext, layoutNew model.Bit
	layoutSame            model.Bit
	layoutLen             model.Int
	opaque                [2]model.Column
	columns               [2][numColumns]model.Column
	explicit              [2][2]model.Column
	shuffled              [2]model.Bit
	scattered             [2]model.Column
	zeroID                model.Bit
	sackRight, sackLeft   [2]model.Column // of the first block, of the others
	sackOther             [2]model.Column // right, left
}

// The columns that every group has.
const (
	colID = iota
	colLabel
	colSeq
	colAck
	colWindow
	colStamp
	colEcho
	colSum
	colHole    // and one more for each hole
	numColumns = colHole + 4
)
