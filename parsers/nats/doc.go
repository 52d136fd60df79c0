// Package nats finds and takes apart the messages of the NATS client protocol:
// INFO, CONNECT, PUB, HPUB, SUB, UNSUB, MSG, HMSG, PING, PONG, +OK and -ERR,
// and what JetStream sends in them.
//
// How it flows: parseFront reads a message's control line, as much as tells its
// kind, length, subject and fields. Everything else stands on it:
//
//   - Scanner, for the data path: spans for messages that straddle segments, in
//     any split, without keeping more than a control line;
//   - Parse, for tools and tests: every field of a message with its place;
//   - Layer, a gopacket layer, so that any gopacket program can show NATS.
//
// A message's event is its subject, with these exceptions, which are made for
// the sake of comparing messages that differ in whom they go to only:
//
//   - an inbox (_INBOX.>, or a prefix that begins so) is named by its first
//     token;
//   - a JetStream acknowledgement ($JS.ACK.>) is named by its stream. The
//     consumer and its counters are fields of the flow;
//   - a SUB or UNSUB has none: subscriptions are mostly each to another subject,
//     and alike but for it. Subscriptions whose subjects begin with the same token of
//     several are compared with one another.
//
// A server's PING and the client's PONG keep a connection alive and wait like
// acknowledgements; a client's PING is a flush that somebody waits for, and so is
// urgent, with the PONG that answers it. Who sends in a flow is known from the
// first operation that only one side has; until then both are urgent.
//
// Fields of the flow are the sid of a MSG, the consumer, consumer sequence and
// pending count of a JetStream acknowledgement, in a PUB as well as in the reply
// subject of a MSG, and inboxes where they are the flow's own: the subject of a
// MSG or SUB and the reply subject of a PUB. The reply subject of a MSG is its
// requester's and the same for all who get the request, so it is left in the
// message.
//
// Limitations:
//   - A control line with fields has at most 1024 bytes; INFO, CONNECT and -ERR
//     may have any length. A message of more than 64 MiB is not one.
//   - NATS over WebSocket, between servers (RS+, RMSG) and of leaf nodes (LS+,
//     LMSG) are other protocols; TLS after INFO leaves nothing to see.
//   - A flow with more than two subscriptions of different numbers shares two
//     counters among them.
//   - A span that ends before the control line does has the key of cut lines;
//     spans from there on have the message's.
//   - A message that is cut behind its first letter, where that is P or H, has
//     no name until the next segment.
package nats
