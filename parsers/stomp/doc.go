// Package stomp finds and takes apart the frames of STOMP 1.0, 1.1 and 1.2.
//
// How it flows: parseFront reads a frame's command and headers, which tell its
// kind, destination and length. Everything else stands on it:
//
//   - Scanner, for the data path: spans for frames that straddle segments, in
//     any split, without keeping more than a frame's headers;
//   - Parse, for tools and tests: every header of a frame with its place;
//   - Layer, a gopacket layer, so that any gopacket program can show STOMP.
//
// A frame's event is its destination. Frames end with a NUL, after a body of
// content-length bytes or, without that header, of any bytes but NUL. Line ends
// behind the NUL that come with it belong to the frame, since some brokers send
// one always; those that begin a segment are a heart-beat.
//
// Fields of the flow are the subscription of a MESSAGE (the id of a SUBSCRIBE),
// its message-id where that is made for the subscriber (RabbitMQ: subscription,
// session and number with @@ between them) and not for all who get the message,
// its ack header, what an ACK or NACK acknowledges, and receipts. Identifiers
// that end in a number are a text and a counter.
//
// Limitations:
//   - A frame whose headers take more than 4096 bytes is not understood.
//   - Commands may be in lower case, as one client writes them, headers not.
//   - Headers are read as they are, without taking the escapes of 1.1 back.
//   - A span that ends before the headers do has the key of a frame without a
//     destination, and has no name where its first line is cut; spans from there
//     on have the frame's.
//   - STOMP over WebSocket is another protocol, and TLS leaves nothing to see.
package stomp
