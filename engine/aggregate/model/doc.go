// Package model has the arithmetic coder with which a frame's control field is
// written, and the models that learn how likely its decisions are. wire/SPEC.md
// sections 3 and 5 have every step; the syntax of the control field, which is a
// matter of what both ends remember, is codec's.
//
//	values        -> Coder, writing -> control field
//	control field -> Coder, reading -> values
//
// A Coder is an arithmetic coder over binary decisions. What is written with it
// goes through models, which learn how likely each decision is:
//
//	Bit      one decision
//	Int      a number
//	Column   a field of all members of a group, as differences from a prediction
//	Members  who of some candidates is a member
//	Text     literal bytes; those that look random stay as they are, beside it
//	Body     a message body, as an edit of another one
//
// Reading and writing are the same calls on the same models, so that a syntax
// is written down once, and both ends learn the same. The models' zero value is
// untaught. Whoever owns a model keeps it for the length of an epoch and gives
// both ends' models the same calls, in the same order.
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
//   - Nothing is said about which edits a Body uses beyond what a reader needs;
//     a better search changes no format.
//   - A model of a reader that met a malformed control field has learned from
//     it. The epoch is over; the model is not to be used again.
//   - Text is slow, some hundred nanoseconds a byte: it is meant for the few
//     bytes that are new in a body, and MaxLiterals says how many those are.
//     Bytes that look random to Noise never go through it.
package model
