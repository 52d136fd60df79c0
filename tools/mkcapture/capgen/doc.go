// Package capgen makes packets of pub-sub traffic as the interface of a gateway
// beside the broker would see them: raw IP packets with their times, always the
// same for the same Config.
//
// A workload runs as an event simulation. Broker and client hosts have clocks,
// connections have the state that a Linux TCP shows on the wire (initial
// sequence numbers, timestamp offsets, IP identification, windows, delayed
// acknowledgements), and applications exchange MQTT 3.1.1 messages over them:
//
//	workload  --events-->  sim  --transmit-->  conn  --segment-->  emit(time, packet)
//
// Packets come in order of time. All randomness is from one seeded PCG, there
// is no wall clock, and values are integers throughout, so the output does not
// depend on the machine. Memory grows with the number of connections, not with
// the number of packets. The flows workload keeps no state per flow at all.
//
// Clients are 10.1.x.y (fd00:1::n) and their packets arrive with TTL 62, the
// broker is 10.2.0.10 port 1883, or 9001 over WebSocket (fd00:2::10), and its
// packets have TTL 64.
//
// # Limits
//
// The regular workloads lose, reorder and repeat nothing, no window ever
// closes, and the broker sends without Nagle's algorithm. Publishers next to
// the broker are not in the capture. What is missing there, and much that a
// healthy network never shows, is in the odd workload.
package capgen
