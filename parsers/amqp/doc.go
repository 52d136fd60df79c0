// Package amqp finds and takes apart the messages of AMQP 0-9-1, which RabbitMQ
// and its clients speak. AMQP 1.0 is another protocol, in package amqp10.
//
// How it flows: parseFront reads the beginning of a frame, as much as tells its
// kind, length, event and the fields that belong to the flow. Everything else
// stands on it:
//
//   - Scanner, for the data path: spans for frames that straddle segments, in
//     any split, without keeping more than a few hundred bytes;
//   - Parse, for tools and tests: every field of a frame with its place;
//   - Layer, a gopacket layer, so that any gopacket program can show AMQP.
//
// A message with content is a method frame, a content header frame and any
// number of content body frames. The frames of one message that stand back to
// back in a segment are one span, whose event is the exchange, a slash and the
// routing key. Every other frame is a message of its own.
//
// Sections are those of the Advanced Message Queuing Protocol Specification,
// version 0-9-1 of 2008; methods that RabbitMQ added to it are known too.
//
// Limitations:
//   - AMQP 0-8, 0-9 and 0-10 have other preambles and are not recognised by
//     them; in the middle of a connection 0-8 and 0-9 can be, since most of
//     their frames are the same.
//   - Of the messages with content one at a time is followed. Where a flow's
//     channels take turns within messages, the frames that come after the turn
//     count as messages of their own, without an event.
//   - A span has room for six holes, so the channel numbers of the second body
//     frame and of later ones count as content.
//   - Holes follow the flow and not the channel: a connection with several busy
//     channels has its delivery tags predicted worse.
//   - Consumer tags of more than 63 bytes count as content.
//   - A span that ends before the routing key does has the key of a message
//     without an event; spans from there on have the message's.
//   - Frames of more than 256 MiB are not believed, and of those that are no
//     content bodies not more than 1 MiB.
package amqp
