// Package model has the arithmetic coder with which a frame's control field is
// written, and the models that learn how likely its decisions are. wire/SPEC.md
// sections 3 and 5 have every step; the syntax of the control field, which is a
// matter of what both ends remember, is codec's.
//
//	values        -> Coder, writing -> control field, and literals beside it
//	control field -> Coder, reading -> values
//
// A Coder is an arithmetic coder over binary decisions. What is written with it
// goes through models, which learn how likely each decision is:
//
//	Bit      one decision                                      the same again: 0.004 bits
//	Int      a number                                          7 again: 0.02
//	Column   a field of all members of a group, as             100 as predicted: 0.002
//	         differences from a prediction
//	Members  who of some candidates is a member                all of 100: 0.002
//	Text     literal bytes; what looks random stays as it      new: 5.5 a byte
//	         is, among the literals
//	Body     a message body, as an edit of another one         a counter and a clock: 0.2
//
// with what each costs in bits at about the hundredth time. Reading and writing are
// the same calls on the same models, so that a syntax is written down once, and both
// ends learn the same: a model has nothing in it that only one end uses. What a
// writer needs to find a good edit is a Plan of its own. The models' zero value is
// untaught. Whoever owns a model keeps it for the length of an epoch and gives both
// ends' models the same calls, in the same order.
//
// Where a constant's comment says what another value would do to the frames of
// testdata/recorded, they are the captures at the top of the repository, without
// the two that are of random bytes (bulk, mqtt-tls): together 345 kB.
//
// All arithmetic is on integers, but for Coder.Cost, which only informs. So the
// same calls give the same bytes on every machine.
//
// Everything here is a function of its input: no goroutine, clock, log or I/O,
// and nothing but the standard library. Nothing allocates once its buffers have
// grown.
//
// Limitations:
//   - A Coder does not fail. Reading past the end gives zeros: the caller looks
//     at Overrun before it believes what it has read, and often enough to stop.
//   - SPEC.md says nothing about which edits a Plan has beyond what a reader needs;
//     a better search changes no format.
//   - A model of a reader that met a malformed control field has learned from
//     it. The epoch is over; the model is not to be used again.
//   - Text is slow, 0.2 us a byte: it is meant for the few bytes that are new in a
//     body, and MaxLiterals says how many those are. Bytes that look random to Noise
//     never go through it.
package model
