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
//     While it is in use QUIC is tried again every [Config.RetryPreferred], and
//     the lanes move over when it answers.
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
// are survived by QUIC without a new epoch. A QUIC connection on which nothing
// is heard for two seconds after a lane was reset is given up and dialed anew,
// with the endpoint resolved again.
//
// # Limits
//
//   - Unsent bytes are bounded, so that [Lane.Write] blocks when the network
//     does: about one packet for QUIC, 32 KiB for TCP on Linux.
//   - Received and unread bytes are bounded by the flow-control windows: 4 MiB
//     per lane and 6 MiB per QUIC connection; the kernel's buffers for TCP.
//   - Handshakes in progress: 256 for QUIC (from 32 on, source addresses must be
//     proven first), 128 for TCP and 16 of one address.
//   - TCP carriers cannot say why a lane was reset: the other end sees
//     [ReasonUnknown].
//   - A lane of a TCP carrier whose network is gone is noticed by TCP's own
//     keepalive after about 30 s; the engine's stall detection is faster.
package tunnel
