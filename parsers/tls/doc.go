// Package tls finds the records of TLS 1.0 to 1.3, so that flows whose messages
// are hidden are told apart from those that are not known, and nobody looks for
// likeness in ciphertext.
//
// How it flows: parseHead reads the five bytes that a record begins with.
// Everything else stands on it:
//
//   - Scanner, for the data path: spans for records that straddle segments, in
//     any split, without keeping more than a few bytes;
//   - Parse, for tools and tests: a record with the place of its fragment;
//   - ClientRandom and ServerHello, for whoever opens records: what names a
//     connection in a key log, and its cipher suite;
//   - Layer, a gopacket layer, so that any gopacket program can show the records.
//
// A message is a record, and its kind the record's content type. All application
// data is Encrypted, and so is everything behind a ChangeCipherSpec. Handshakes
// before it are compared like other messages: the certificates of one broker are the
// same for every client.
//
// Sections are those of RFC 8446, TLS 1.3. The records of 1.0 to 1.2 have the
// same form (RFC 5246 section 6.2).
//
// Limitations:
//   - DTLS, TLS over UDP, has records of another form and is not known, nor is
//     QUIC. SSL 2.0 and 3.0 are not either.
//   - Records have no event. The name of the server in a ClientHello is not read.
//   - Records of more than 2^14+256 bytes, which 1.0 to 1.2 allow where they
//     compress, are not believed.
//   - In TLS 1.3 what a record holds is itself encrypted: alerts and handshakes
//     behind the first are application data.
//   - Seen from the middle, handshakes and alerts are taken for plain ones until
//     a ChangeCipherSpec comes, which costs bytes when they are not.
//   - Of the beginning of a record that is longer than its segment, what speaks
//     for it could be chance: it is believed on the usual ports only.
package tls
