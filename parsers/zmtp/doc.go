// Package zmtp finds and takes apart the messages of ZMTP 3.0 and 3.1, the
// protocol of ZeroMQ sockets over TCP.
//
// How it flows: parseFront reads the beginning of a greeting, a command or a
// message's first frame, as much as tells its kind and topic. Everything else
// stands on it:
//
//   - Scanner, for the data path: spans for messages that straddle segments, in
//     any split, without keeping more than a few hundred bytes;
//   - Parse, for tools and tests: the frames of a message with their places;
//   - Layer, a gopacket layer, so that any gopacket program can show ZMTP.
//
// A message is its frames up to the first that no more follow. Its event is the
// first frame where more follow: the topic, as publishers send it. The event of a
// subscription is what it subscribes to, whether it is a command (3.1) or a
// message that begins with 1 or 0 (3.0).
//
// Sections are those of ZeroMQ RFC 37, ZMTP 3.1; 3.0 is RFC 23.
//
// Limitations:
//   - ZMTP has no port of its own. It is recognised by its greeting and by the
//     commands READY, SUBSCRIBE and CANCEL. In the middle of a connection little
//     speaks for it: there it needs a binding.
//   - ZMTP 1.0 and 2.0 are framed in other ways and are not known. With the CURVE
//     mechanism messages are encrypted, and with GSSAPI they may be.
//   - A message of a single frame has no event: its topic, if there is one, is the
//     beginning of its body, and where it ends only subscribers know.
//   - A subscription of 3.0 is known as one where the flow's handshake was seen.
//   - Of a topic 256 bytes count, and its length. A longer one is in the key, but
//     the span has no event.
//   - A span that ends before the topic does has the key of a cut one;
//     spans from there on have the message's.
//   - Frames of more than 256 MiB are not believed.
package zmtp
