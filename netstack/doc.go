// Package netstack is where packets come from and go to at a gateway: the TUN
// device, and a TCP/IP stack of the gateway's own for what is addressed to it.
//
//	             hosts                                     brokers, clients
//	               |                                              |
//	        the kernel's routing                           ordinary sockets
//	               |                                              |
//	+--------------+-------------+              +-----------------+----------------+
//	| TUN   Read       Write     |              | Stack  Forward, Terminate, ping  |
//	|  split what the            |              |   Read            Write, Input   |
//	|  kernel coalesced   exact  |              |  what it emits    what is for it |
//	+------+--------------^------+              +-----+-----------------^----------+
//	       v              |                           v                 |
//	                       the engine: batches of IP packets
//
// Both are a Port of the engine: packets are read and written in batches, each packet
// whole, starting with its IP header. Who writes faster than the other side takes, waits;
// a Stack drops only answers to stray packets for want of room (see endpoint.go).
//
// # TUN
//
// [OpenTUN] makes the device over golang.zx2c4.com/wireguard/tun and gives it
// addresses and routes by netlink. The device lives as long as the process holds
// it: [TUN.Close], and the end of the process however it comes, take the device
// with its addresses and routes away. [TUN.Keep] puts back what others take from it.
// Nothing else on the host is changed but for the routes of TUNConfig.Fallback, which
// are there to stay, and [DropFallbacks] undoes.
//
// With TUNConfig.Offload the kernel may hand over TCP and UDP super-segments and
// unfinished checksums; Read splits and finishes them, and what it returns is
// what a network card would have sent. Write gives the kernel the packets as they
// are. It joins some of them into a super-segment first, but only those that the
// kernel, cutting that apart again, will turn back into the same bytes: see
// splittable in coalesce.go. Without Offload each packet is one system call and
// nobody touches its bytes.
//
// # Stack
//
// [NewStack] makes one gVisor stack with one interface. It answers pings to its
// own addresses. [Stack.Forward] listens on the host and carries connections into
// the stack, [Stack.Terminate] takes connections that come out of the tunnel for
// any address inside its prefixes and carries them to a server with ordinary
// sockets. Both keep end of file, reset and backpressure as they were. This is
// how a gateway works without root. A [TLSFront] is the TLS server of an address on
// the way to a plain one.
//
// # Limits
//
// Linux only. The wireguard package writes a UDP checksum that computes to zero
// as 0x0000, not as 0xFFFF (RFC 768), when it finishes one for the kernel: with
// Offload, one UDP datagram in 65536 that this host itself sends goes out with no
// checksum, which IPv6 receivers drop. A persistent TUN device made beforehand is
// not taken over. Forward listens on tcp: and unix: by itself, on anything else by
// ForwardConfig.Listen. Terminate does not answer pings for the addresses that it stands
// in for.
package netstack

// MaxPacket is the greatest length of an IP packet, in bytes: each buffer given
// to a Read has room for it.
const MaxPacket = 65535

// DefaultMTU is the MTU in bytes where the configuration names none. It does not
// depend on the path between the gateways, since lanes are streams.
const DefaultMTU = 1500
