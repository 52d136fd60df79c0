// Package amqp10 finds and takes apart the frames of AMQP 1.0, which ActiveMQ
// Artemis, Qpid, Azure Service Bus and, asked for it, RabbitMQ speak. AMQP 0-9-1
// is another protocol, in package amqp, on the same port.
//
// How it flows: parseFront reads the beginning of a frame, as much as tells its
// kind, length, link and the fields that belong to the flow. Everything else
// stands on it:
//
//   - Scanner, for the data path: spans for frames that straddle segments, in
//     any split, without keeping more than a thousand bytes;
//   - Parse, for tools and tests: every field of a frame with its place;
//   - Layer, a gopacket layer, so that any gopacket program can show AMQP 1.0.
//
// Each frame is a message and a span. A transfer, flow or detach has the address
// of its link as its event, which the attach in the same direction has told: a
// sender's link has the address of its target or, where that has none, of its
// source; a receiver's the other way round. Links that were attached before the
// first byte that was seen bear their handle's number, as #3.
//
// Sections are those of OASIS Advanced Message Queuing Protocol Version 1.0,
// with the part in front: 2.7.5 is that of part 2 and in part 2.
//
// Limitations:
//   - AMQP over WebSocket is another protocol, and so is AMQP 0-10.
//   - 64 links of a flow are remembered, with addresses of up to 256 bytes.
//     Others, and those with handles from 64 on that are not remembered, are told
//     apart by their number only.
//   - Of an attach the scanner looks at 1,024 bytes. A link whose addresses are
//     behind them has none.
//   - A delivery in several transfers is as many messages.
//   - A performative whose descriptor is a symbol instead of its number is
//     followed by its frame's length, and not named.
//   - In the middle of a connection a frame without a performative, which keeps
//     the connection alive, is no evidence for the protocol, and a boundary in
//     the middle of a segment is found by a performative only.
//   - Frames of more than 256 MiB are not believed.
package amqp10
