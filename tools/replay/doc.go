// Package replay runs captures through two gateways in memory, compares what
// comes out with what went in, and counts what would have crossed the link.
//
// How it flows:
//
//	pcap.Reader -> Replay.Add -> direction of the flow   up to the broker, or down
//	            -> Merger.Add, Flush when it is due      the clock is the capture's
//	            -> frame, counted as carrier packets
//	            -> Expander.Expand at the other end
//	            -> ledger: per flow, in order, byte for byte
//	            -> Report: counters, protocols and events, where the bytes went
//
// The core has no clock, so the same capture and the same Config give the same
// frames, byte for byte, every time. Only the times spent differ.
//
// A frame costs its bytes and, for every CarrierPayload of them begun, the
// overhead of a carrier packet: a lane sends each frame at once, and shares no
// carrier packet between two.
//
// With Config.Secrets the records of TLS connections are opened whose ClientHello comes
// by after their secrets are known. The gateway beside the broker has the secrets and
// tells the other, within frames, as live gateways do.
//
// With Config.Compare the same packets also go, at the same moments, through
// what one might use instead; see Rival.
//
// # Limits
//
//   - Frames arrive at once, in order: the link has no delay and loses nothing,
//     as the lanes make sure of. The hosts do not react to the time that a
//     packet waited; the capture says what they sent, and when.
//   - Every flow goes through one lane; gateways may give classes of traffic
//     lanes of their own.
//   - The order of packets of different flows is not compared.
//   - Which end of a conversation is the client is a guess where neither the
//     ports, nor a SYN, nor Config.Broker tells.
package replay
