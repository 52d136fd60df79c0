// Package kafka finds and takes apart the requests and responses of Apache
// Kafka.
//
// How it flows: parseFront reads the beginning of a message, as much as tells
// its kind, length, topic and the fields that belong to the flow. Everything
// else stands on it:
//
//   - Scanner, for the data path: spans for messages that straddle segments, in
//     any split, keeping no more than a request's header and first topic;
//   - Parse, for tools and tests: a message's header, and of a Produce request
//     the record batches with their places;
//   - Layer, a gopacket layer, so that any gopacket program can show Kafka.
//
// A request is named by its API key; its event, in Produce and Fetch, is the
// first topic, or the topic's number where versions from 13 on have that. A
// response holds neither: it is a RESPONSE.
//
// Fields of the flow are the correlation ID, which counts up, the client ID, and
// the session and epoch of a Fetch request.
//
// Which way a flow goes is seen from its messages: what is a request in every
// field that is looked at is one, and anything else a response.
//
// The format is that of the Kafka protocol guide, "The Messages".
//
// Limitations:
//   - On ports that say nothing Kafka is found by its requests only.
//   - What record batches hold is not looked into, compressed or not: it is
//     body. Parse tells where they are and which codec they name.
//   - The event of a request with several topics is the first. Where the tagged
//     fields of its header are not empty it has none. A client ID or transactional
//     ID of more than 512 bytes is not believed, a client ID of more than 64
//     bytes counts as body.
//   - Responses that begin within a segment after a loss are not found there.
//   - The tokens of SaslHandshake version 0 are no requests, and opaque.
//   - A span that ends before the topic does has the key of a cut one;
//     spans from there on have the message's.
//   - Messages of more than 256 MiB are not believed.
package kafka
