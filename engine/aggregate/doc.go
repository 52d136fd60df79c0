// Package aggregate is the core: a Merger takes IP packets and writes frames in
// which what is alike is there once; an Expander takes the frames apart and
// gives the same packets back, byte for byte. In the words of RFC 5795 (ROHC) a
// Merger is a compressor and an Expander a decompressor; both ends of a lane have
// one of each.
//
//	merger.go     a packet becomes fields and spans, and joins a group
//	mask.go       with its masks taken off,
//	trust.go      unless its spans or its header would not come out the same;
//	flows.go      whose it is,
//	match.go      which group it may join,
//	schedule.go   how long it may wait there, and bounds.go how much fits
//	literals.go   what no model makes shorter is compressed
//	account.go    what the frame cost, and for what; stats.go
//	expander.go   frames become packets
//
// What is in a frame is the business of package codec below: it chooses, codes and
// learns. This package knows time, packets and protocols; codec knows headers, groups
// and what both ends remember; model, below that, knows probabilities.
//
// Three things make steady traffic cost next to nothing. A field that is as
// predicted for all members of a group is a fraction of a bit. A group's members
// are, mostly, all of those that the last message of its kind went to, or all
// of which an acknowledgement is expected. And predictions reach across directions: each
// frame says which frames of the peer its writer had rebuilt, so that a segment
// may refer to the one that it acknowledges.
//
// The package knows no goroutine, clock, log or I/O: time comes in as an
// argument, and the same packets at the same times give the same frames.
//
// Limits: a packet of more than 65575 bytes is refused. One that says another
// length than it has is carried as it is; headers longer than 240 bytes likewise. TSvals
// (RFC 7323) that do not tick in milliseconds are predicted badly. A context is bound to
// one lane; memory is bounded by wire.Limits and by age.
package aggregate
