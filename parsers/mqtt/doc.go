// Package mqtt finds and takes apart the messages of MQTT 3.1, 3.1.1 and 5.
//
// How it flows: parseFront reads the beginning of a message, as much as tells
// its kind, length, topic and packet identifier. Everything else stands on it:
//
//   - Scanner, for the data path: spans for messages that straddle segments, in
//     any split, without keeping more than a few hundred bytes;
//   - Parse, for tools and tests: every field of a message with its place;
//   - Layer, a gopacket layer, so that any gopacket program can show MQTT.
//
// Sections are those of the OASIS standards MQTT Version 3.1.1 and 5.0, whose
// statement numbers mostly agree; "3.1" is the protocol of level 3, MQIsdp.
//
// Limitations:
//   - MQTT over WebSocket is in package websocket, which scans what is in frames
//     with this one; MQTT-SN is another protocol.
//   - The version is known from a CONNECT or CONNACK, or from a message that
//     only version 5 has. Until then a PUBLISH's properties count as its body.
//   - 64 topic aliases of a flow are remembered, for topics of up to 256 bytes.
//     Others, and those set before the first byte that was seen, are told apart
//     by their number only.
//   - Of a topic the scanner looks at 256 bytes, and it looks for a topic alias
//     in the first 64 bytes of properties. The properties of messages with
//     longer topics count as their body.
//   - A span that ends before the topic does has the key of a cut one;
//     spans from there on have the message's.
package mqtt
