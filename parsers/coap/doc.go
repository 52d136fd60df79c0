// Package coap finds and takes apart the messages of CoAP over UDP, with
// observation of resources.
//
// How it flows: parseFront reads a datagram up to its payload. Everything else
// stands on it:
//
//   - Scanner, for the data path: one span for a datagram, with its event and
//     the fields that belong to the flow;
//   - Parse, for tools and tests: every option of a message with its place;
//   - Layer, a gopacket layer, so that any gopacket program can show CoAP.
//
// A request's event is its path, the Uri-Path options with slashes in between. A
// notification's is its token, which stands for what is observed; it is not in
// the key, since each observer of a resource has another and all are told the
// same. Other responses have none: mostly their tokens are used once.
//
// Fields of the flow are the message ID, which counts up, the token, and the
// number of a notification (the Observe option), which counts up too.
//
// Sections are those of RFC 7252; RFC 7641 is Observe.
//
// Limitations:
//   - CoAP over TCP and WebSocket (RFC 8323) is framed in another way and is not
//     known. With DTLS (port 5684) or OSCORE there is less to see or nothing.
//   - The number of a notification is as long as its value needs. Where it grows
//     a byte, so does the body, which is learned again then.
//   - A flow has one counter for the notifications of all its observations, and
//     remembers the token that it used last. More than one busy observation
//     between the same two ports is predicted worse.
//   - Of a path 256 bytes count, and its length. A longer one is in the key, but
//     the span has no event.
//   - On ports that say nothing, CoAP is found by options with text in them: a
//     path, a query or a host.
package coap
