// Package pcap reads network captures and hands out the IP packets in them, and
// writes IP packets to captures, with the secrets of TLS connections where they are known.
//
// How it flows:
//
//	io.Reader -> gzip or zstd, if the first bytes say so
//	          -> classic pcap or pcapng, told by the first four bytes
//	          -> records: number, time, interface, captured bytes
//	          -> the link layer is taken off, the IP packet cut to its length
//	          -> Packet, or the reason why there is none
//
// [Reader.Next] returns every record of a capture, in file order, also those
// that hold nothing to replay: these bear a [SkipReason]. So the count of
// records is the count that other capture tools show, and a caller can say what
// was left out and why. Damage to the file itself (it ends early, a record
// claims an absurd length) is a [FileError], given once, after every record that
// stands before it; the reader does not guess where the next record might begin.
//
// A packet is handed out as it was on the wire: checksums, options and lengths
// are not judged. Only what is not part of it goes: the link layer, Ethernet
// padding, a frame check sequence.
//
// # Formats
//
//   - pcap, both byte orders, microseconds and nanoseconds, and the modified
//     format of Alexey Kuznetzov (magic a1b2cd34, longer record headers);
//   - pcapng: any number of sections and interfaces, both byte orders, enhanced,
//     simple and old packet blocks, if_tsresol and if_tsoffset; the TLS key logs in
//     Decryption Secrets Blocks, for whoever asks with [Reader.KeyLog];
//   - either of them gzipped, in one member or several, or as a zstd stream.
//
// # Link types
//
// Ethernet, raw IP, BSD loopback (NULL, LOOP), Linux cooked v1 and v2, IEEE
// 802.11 bare or behind radiotap or PPI, PPP (bare, in HDLC-like framing, with a
// direction, over Ethernet), Cisco's HDLC, Frame Relay, Linux netfilter's log
// (NFLOG), macOS' PKTAP. Over those that carry an EtherType, any stack of VLAN
// tags (802.1Q, 802.1ad), MPLS labels and PPPoE sessions. The IP packet is the
// outermost one: IP tunnels, GRE, VXLAN and the like are left in.
//
// # Limits
//
//   - Memory is constant whatever the size of the capture: a few buffers of 64
//     KiB, the window of a zstd stream (at most 128 MiB) and one record. A record
//     may hold 256 KiB, or the capture's snapshot length where that is more, to at
//     most 1 MiB; one that claims more is taken for damage.
//   - A block of secrets may hold 64 MiB, which it takes in memory while they are read
//     and used. Of secrets, TLS key logs are read; others are skipped.
//   - What is longer than an IP packet can be (65,535 bytes, of IPv6 65,575), as
//     jumbograms and segments that a network card is to split, is skipped.
//   - A pcapng section may describe 65,536 interfaces.
//   - Not taken apart: encrypted, fragmented and aggregated (A-MSDU) 802.11
//     frames, PPP that is compressed or in bundles, MPLS pseudowires, MACsec, provider backbone bridging. They are
//     skipped with a reason.
//   - A classic pcap file of an unsupported link type is an error at once
//     ([LinkTypeError]); in pcapng, packets of such an interface are skipped.
//   - Simple packet blocks bear no time; their Time is zero.
//   - Not for several goroutines at once; use one Reader in each.
package pcap
