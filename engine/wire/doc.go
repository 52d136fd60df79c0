// Package wire is the format of what goes over a lane: the hello that each end
// says first, the limits that both then keep, and the envelope of a frame. SPEC.md
// beside it has every byte, also of what is in the envelope, which the packages
// engine/aggregate/codec and engine/aggregate/model write and read.
//
//	Hello -> AppendHello ~~> ParseHello -> Negotiate   once a lane
//	Frame -> AppendFrame ~~> ParseFrame                from then on
//
// Everything here is a function of its input: no goroutine, clock, log or I/O,
// and nothing but the standard library. Nothing allocates.
//
// Limitations:
//   - A frame holds 1 MiB (MaxFrame), a packet 64 KiB (MaxPacket), and Limits are
//     bounded by the constants beside them.
//   - The frame's digest guards against memories that drifted apart and against
//     the carrier's mistakes, not against an adversary.
//   - Literals are carried as they are: compressing them is the caller's.
package wire
