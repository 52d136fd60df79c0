// Package codec is the syntax of a frame's control field, over what both ends of one
// direction of a lane remember. An Encoder writes what a Decoder reads:
//
//	Encoder                                     Decoder
//	chooses   which template, which source,
//	          a copy, an edit or literals,
//	          what a new flow is called
//	codes     ------------ the one syntax ----- codes
//	                                            builds the packets
//	learns    ------------ the same ----------- learns
//
// encoder.go and decoder.go have these loops written out: per frame, per group, per
// span. What they call is in
//
//	codec.go      the syntax: head, pairs, shape of a group
//	members.go    who is in a group; contexts.go: those not known yet
//	spans.go      the payload, as remembered bodies, edits of them, or literals
//	columns.go    the header fields, as differences from their predictions;
//	layouts.go    what headers have in common, and options.go: what is opaque in them;
//	sack.go       timestamps.go, checksums.go, values.go: SACK blocks, TSval and TSecr,
//	              checksums, what fills the holes
//	learn.go      what both ends then know
//
//	state.go      what both ends remember, and nothing else: state, contexts
//	templates.go  bodies and who gets them; layouts.go; views.go: the other direction
//	history.go    what the peer's frames may refer to
//
//	choose.go     the Encoder's choices; similar.go: which bodies are alike; pairs.go
//
//	header.go     headers into fields, and fields into headers
//
// The syntax is written once for both ends: a model.Coder writes or reads, and each
// call returns the value either way. A choice that is not told costs nothing to change:
// another Encoder may choose otherwise, and is understood.
//
// Every table that both ends have is bounded, and what is remembered names what is in
// it by its number. Of objects only those may be held past a group that both ends made
// at the same moment (a context's layout). wire/SPEC.md has all of it for another
// implementation.
//
// The package knows no goroutine, clock, log or I/O, no protocol and no time but what
// its caller says.
//
// Limits: headers of up to 240 bytes; 65,535 spans a segment; 6 holes a span; 4 counters
// a flow. Memory is bounded by wire.Limits.
package codec
