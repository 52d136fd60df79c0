// Package websocket finds and takes apart the frames of WebSocket (RFC 6455) and,
// in them, the messages of a protocol that runs over it, as MQTT does.
//
// How it flows: parseHead reads the header of a frame, parseUpgrade the HTTP
// request or answer that a connection begins with. Everything else stands on them:
//
//   - Scanner, for the data path: spans for messages that straddle frames and
//     segments, in any split. Frames are unmasked, and what is in them is scanned
//     by a scanner of the inner protocol;
//   - Parse, for tools and tests: a frame's fields and its unmasked bytes;
//   - Layer, a gopacket layer, so that any gopacket program can show WebSocket.
//
// There are two kinds of protocols for a Registry. Over(mqtt.Protocol(), ...) is
// "mqtt-ws": its messages are named as in MQTT, their events are topics, and their
// classes and holes are those of the inner scan. Protocol() is "websocket", for
// connections that carry anything else: its messages are TEXT and BINARY, counted
// whole, however many frames they are in. Both have UPGRADE, CLOSE, PING and PONG
// beside them, since users look for topics and must not be told that all else is
// MQTT. Which of the two a connection is says Sec-WebSocket-Protocol ("mqtt" and
// "mqttv3.1" begin with the inner protocol's name) or, where its beginning was not
// seen, what is in the frames. Plain HTTP is neither.
//
// A span has the frame's header and one inner message, or a part of one. In masked
// frames, which clients send, its first hole is the mask (parsers.HoleMask): the
// four bytes of the key where they are in the span, else none of its bytes. It
// follows the last counter, which inner protocols leave alone.
//
// Limitations:
//   - Compressed messages (permessage-deflate) are told apart, and not looked into.
//   - WebSocket over HTTP/2 and over TLS is not seen.
//   - In the middle of a connection "websocket" is recognised by text only, and
//     "mqtt-ws" by a whole message, unless the port says so.
//   - A client that does not say that it speaks the inner protocol is taken for
//     "websocket", against MQTT's rule [MQTT-6.0.0-3].
//   - Frames of more than 1 GiB, and HTTP heads of more than 64 kB, are not
//     believed.
//   - A scanner keeps unmasked bytes, as many as the largest masked segment has.
//   - Where a segment ends inside a frame's header, that part is named by the
//     frame's opcode, and the message in it is counted there.
package websocket
