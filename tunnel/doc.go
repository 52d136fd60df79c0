// Package tunnel joins two gateways: it holds the key that a gateway is known
// by, finds its peers over the carriers that are allowed, keeps them connected,
// and hands out lanes.
//
// A [Lane] is one reliable, ordered byte stream in each direction between two
// gateways, of one [Class], for one epoch. Whoever wants to talk calls
// [Peer.Lane] for each class, at both ends; when a lane ends, for whatever
// reason, both ends see an error that matches [ErrReset] and call [Peer.Lane]
// again. Nothing of a lane that ended reaches the next one.
//
//	Tunnel --- Peer --- Lane (ClassMessages)
//	  |          |  \-- Lane (ClassBulk)
//	  |          |
//	  |          +-- dials Endpoint, with backoff, while a lane is wanted
//	  +-- listens on Listen: UDP for QUIC, TCP for TLS and plain
//
// # Carriers
//
//   - QUIC: one connection per peer, one bidirectional stream per lane, opened
//     by the end that dialed. Messages go before bulk in every packet.
//   - TLS 1.3 over TCP: one connection per lane, for networks that drop UDP.
//     It is tried when QUIC has not connected within [Config.FallbackDelay].
//     While it is in use QUIC is tried again after 10 s, then ever later up to
//     [Config.RetryPreferred], and the lanes move over when it answers.
//   - Plain TCP: no encryption and no authentication, for use inside another
//     VPN. It excludes the other two.
//
// QUIC and TLS authenticate both ends by the SHA-256 of their Ed25519 public
// keys. There is no mode that skips it, no certificate authority, no 0-RTT and
// no resumption.
//
// # What happens when
//
// A peer that comes back from another address, or after a restart, replaces its
// older connection: the newest authenticated one wins. Where both ends dial each
// other at the same moment, the connection dialed by the end with the smaller
// fingerprint is kept. NAT rebinding and a change of the dialing end's address
// are survived by QUIC without a new epoch.
//
// The end that calls makes a call every second at least while a peer is away that
// was connected before, each beside those that hang, over all carriers, with the
// endpoint resolved again. Of those that are answered it chooses one, by opening a
// lane on it; a carrier that worked before may be a second later than a less
// preferred one. It calls anew, beside the connection that there is, when that has
// owed an answer for a second (or 4 round trips), and gives it up after 3 s (or 12).
// So that the answer is also missed where only the other end has something to say,
// it asks when data came in a rhythm and does not come any more.
//
// A connection that answers, but has lost its larger packets because the path takes
// only smaller ones now, is given up when the engine says so: [Lane.Suspect].
//
// # Limits
//
//   - Unsent bytes are bounded, so that [Lane.Write] blocks when the network
//     does: about one packet for QUIC, 32 KiB for TCP on Linux.
//   - Received and unread bytes are bounded by the flow-control windows: 4 MiB
//     per lane and 6 MiB per QUIC connection; the kernel's buffers for TCP.
//   - Handshakes in progress: 256 for QUIC (from 32 on, source addresses must be
//     proven first), 128 for TCP and 16 of one address.
//   - Calls in progress: 12 over each carrier; 12 connections of a peer on which
//     there is no lane yet.
//   - Paths must take IP packets of 1,228 bytes, 1,248 over IPv6. QUIC sends larger
//     ones where they pass, TCP carriers do not.
//   - TCP carriers cannot say why a lane was reset or declined: the other end sees
//     [ReasonUnknown], or the end of what was written.
//   - A lane of a TCP carrier whose network is gone is noticed by TCP's own
//     keepalive within 20 s, and sooner, on Linux, where data came in a rhythm; the
//     engine's stall detection is faster.
package tunnel
