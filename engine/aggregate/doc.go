// Package aggregate is the core: a Merger takes IP packets and writes frames in
// which what is alike is there once; an Expander takes the frames apart and
// gives the same packets back, byte for byte.
//
//	merger.go    a packet becomes fields and spans,
//	mask.go      with its masks taken off,
//	trust.go     unless its spans or its header would not come out the same,
//	match.go     and joins a group
//	schedule.go  when the frame goes, and bounds.go how much fits
//	writer.go    what the writing end looks up in order to tell the peer
//	judge.go     which bodies are alike
//	codec.go     the syntax of a frame: a head, then groups
//	members.go   who is in a group; context.go: those not known yet
//	spans.go     the payload, as remembered bodies, edits of them, or literals
//	columns.go   the header fields, as differences from their predictions;
//	layouts.go   what headers have in common, and opaque.go: what means nothing;
//	sack.go      stamp.go and values.go: SACK blocks, timestamps, what fills the holes
//	learn.go     what both ends then know
//	expander.go  groups become packets
//
// Everything that both ends must agree on is in memory.go, layouts.go, slot.go and
// peers.go, and changes only in codec.go and what that calls. These are written once
// for both ends: a model.Coder writes or reads, and each call returns the value
// either way. So the ends cannot drift apart by a mistake in one of them; what
// could still go wrong, a digest over the packets and their order in a flow finds.
//
// Every table that both ends have is bounded, and what is remembered names what is in
// it by its place: a CID, the index of a slot, the place of a layout. Of objects only
// those may be held past a group that both ends made at the same moment (a context's
// layout), or that only one end has (source, slotSource), which is never asked what
// the peer knows. A number may outlive what it stood for. It then stands for what has
// taken the place, or for nothing, at both ends alike: it is a guess, looked at when
// it is used (memory.flow, slots.holds, view.valid), and a guess that is wrong costs
// bytes. TestSmallTables and state_test.go hold the two ends against one another.
//
// Three things make steady traffic cost next to nothing. A field that is as
// predicted for all members of a group is a fraction of a bit. A group's members
// are, mostly, all of those that the last message of its kind went to, or all
// that owe an acknowledgement. And predictions reach across directions: each
// frame says which frames of the peer its writer had rebuilt, so that a segment
// may refer to the one that it acknowledges.
//
// The package knows no goroutine, clock, log or I/O: time comes in as an
// argument, and the same packets at the same times give the same frames.
//
// Limits: a packet of more than 65575 bytes is refused. One that says another
// length than it has is carried as it is; headers longer than 240 bytes likewise. Timestamps
// that do not tick in milliseconds are predicted badly. A context is bound to
// one lane; memory is bounded by wire.Limits and by age.
package aggregate
