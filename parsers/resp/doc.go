// Package resp finds and takes apart the messages of RESP2 and RESP3, the
// protocol of Redis and of those who speak like it: commands, as arrays and
// inline, their replies, and what pub/sub and streams push.
//
// How it flows: a walker finds where a value ends, whatever it is made of, and
// parseFront reads its first elements, which tell what it is about. Everything
// else stands on the two:
//
//   - Scanner, for the data path: spans for messages that straddle segments, in
//     any split, without keeping more than a few hundred bytes;
//   - Parse, for tools and tests: every element of a message with its place;
//   - Layer, a gopacket layer, so that any gopacket program can show RESP.
//
// A message's event is the channel of what has one (PUBLISH, SUBSCRIBE, message,
// pmessage, ...), the key of what belongs to a stream (XADD, XACK, XREAD and the
// reply to it), the kind of any other push, and the command of any other
// command. Other replies have none: they are told apart by their type.
//
// Fields of the flow are the count that confirms a subscription and the consumer
// of an XREADGROUP.
//
// Limitations:
//   - An array of strings is a command where its first string is the name of one
//     and the flow has not been seen to hold replies. Commands of modules are
//     known in flows in which a command of the server's was seen.
//   - Of a message the first 512 bytes tell what it is about. A channel or key
//     of more than 256 bytes gives a key but no event.
//   - Streamed strings and aggregates of RESP3, whose length is "?", are not
//     understood; no server sends them.
//   - After a loss in the middle of a large reply the next command or push is
//     found, or the next segment that begins with a value and ends with one.
//   - TLS leaves nothing to see, nor does the replication stream after PSYNC,
//     in the beginning: an RDB file has no line end behind it.
package resp
