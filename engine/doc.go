// Package engine is a gateway: it reads packets from its port, sends each to the peer
// behind which its destination lies, and hands out what the peers send.
//
//	port -> pump, router -> queue -> epoch: Merger -> tunnel ~~~~
//	~~~~ tunnel -> epoch: Expander -> prefix check -> port
//
// Each lane, a peer and a class of traffic, has two goroutines: one merges and
// writes, one reads and expands; a lock lets them share the lane's memory. While
// the carrier takes no more the writer blocks, packets gather in the queue, and
// the next frame is larger: batching adapts to the link by itself.
//
// A lane (laneRunner) lives in epochs. One begins with each new stream from the tunnel,
// with a handshake and empty memories at both ends, and ends with the stream: when it
// broke, when a frame did not fit, or when nothing got through for Stall. What was
// queued is dropped then, and the connections inside recover by themselves. Both ends
// log why, and the peer is told over QUIC: a stall, a malformed frame, a digest, a
// limit, a version.
//
// Where a [[tls]] table has a certificate the gateway is itself the TLS server (front):
// connections to it that come out of the tunnel end in the userspace stack, or in one
// beside the device (aside), and go on to a plain server.
//
// With a [vm] virtual machines are behind a router (guests) that is the port, or stands
// beside it. Their ends come and go while the gateway runs (ports), from the configuration,
// files in a directory (portFiles) and the control socket.
package engine
