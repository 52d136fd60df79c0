// Package sheaf is the root of a program that binds alike pub-sub packets
// together on one side of a narrow link and rebuilds them, byte for byte, on
// the other. It holds no code; README.md says what the program does, and the
// packages are
//
//	tools/sheaf             the command
//	tools/...               the demo, replay, captures of our own making, benchmarks
//	pcap                    capture files
//	engine                  the gateway: routes, queues, lanes, epochs
//	netstack                the TUN device, and a stack of our own
//	tunnel                  keys, carriers, lanes
//	engine/aggregate        the core: what goes in comes out, in fewer bytes
//	engine/aggregate/codec  what is in a frame, and what both ends remember
//	engine/aggregate/model  the arithmetic coder, and what it learns
//	engine/wire             hello, limits, the envelope of frames; SPEC.md
//	parsers                 IP packets, and the messages in them
//
// Imports point down this list only; docs/architecture.md has the way of a packet.
package sheaf
