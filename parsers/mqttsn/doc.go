// Package mqttsn finds and takes apart the messages of MQTT-SN 1.2, MQTT for
// sensor networks, over UDP.
//
// How it flows: parseFront reads a datagram up to its data. Everything else
// stands on it:
//
//   - Scanner, for the data path: one span for a datagram, with its event and
//     the fields that belong to the flow;
//   - Parse, for tools and tests: every field of a message with its place;
//   - Layer, a gopacket layer, so that any gopacket program can show MQTT-SN.
//
// The event of a PUBLISH is its topic ID or its short topic name, two bytes
// either way; that of a REGISTER, SUBSCRIBE or UNSUBSCRIBE is the topic it names.
// The field of the flow is the message ID.
//
// A message that a forwarder encapsulated is named as what it is, and its span
// covers the capsule too.
//
// Sections are those of MQTT-SN Protocol Specification, version 1.2.
//
// Limitations:
//   - The specification gives no port. Gateways mostly listen on 1883, 1884 or
//     10000; the last is other programs' too, and needs a binding.
//   - Topic IDs are a client's own, other than predefined ones and short names:
//     the same number can be another topic for another client, and the same
//     topic has another number. Registrations are not followed.
//   - On ports that say nothing, MQTT-SN is found by its CONNECT, and by the
//     REGISTER of a client.
//   - Version 2.0, which has other fields, and DTLS are other protocols.
package mqttsn
