// Package parsers looks into IP packets: where the headers end, which flow a
// packet belongs to, and which pub-sub messages its payload holds.
//
// How it flows:
//
//	packet -> Decoder.Decode -> Segment   IP through package ip, TCP and UDP through gopacket
//	Segment -> Stream.Scan   -> []Span    messages, per flow, resumable
//
// A Decoder checks that a packet is consistent; what is not, its caller carries
// verbatim. A Stream keeps the little that a flow must remember: the sequence
// number that comes next and, once a protocol was recognised, its Scanner. A
// Registry is the table of the protocols that can be recognised; each lives in a
// package of its own, and package builtin lists them.
//
// What scanners of protocols over TCP share, a Cutter does: it follows a message
// over segments and keeps the bytes of one whose beginning was cut, while the
// protocol's Framer tells what a message is. AMQP 0-9-1, whose messages are of
// frames that others may come between, and RESP, whose values are walked through
// from their first byte, have scanners of their own.
//
// Spans are advice: a wrong one costs bytes on the link and never correctness.
// So a Stream guesses where it must (after a gap, in the middle of a
// connection) and why nothing here reassembles or buffers a payload.
//
// Everything here is a function of its input: no goroutine, clock, log or I/O.
//
// Limitations:
//   - A Decoder does not look into fragments, tunnels (GRE, IP in IP, VXLAN),
//     AH or ESP; they are segments without a transport header.
//   - IPv6 jumbograms, packets without a total length (unfinished segmentation
//     offload) and packets with trailing bytes are errors.
//   - A Stream sees one direction. A flow on an unknown port whose messages are
//     too small to be told from chance stays opaque, whatever its reverse holds.
//   - Payload that is encrypted or compressed by the protocol is opaque.
package parsers
