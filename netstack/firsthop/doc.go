// Package firsthop is the router that virtual machines see behind their NICs: the first hop
// of their packets, with no interface of the host.
//
//	guest ~ link.Link            Ethernet frames of one guest
//	          | input            MAC address, then IP source: whose is it      input.go
//	          |   ARP, NDP       answered                                      arp.go, ndp.go
//	          |   to the router  ping, DHCP, DNS                               local.go, dhcp.go, dns.go
//	          |   to a guest     refused, or with Config.Between into its queue
//	          v   to elsewhere
//	        Router.Read          IP packets as they were                       pump.go
//	          engine             which peer they go to
//	        Router.Write         IP packets
//	          | lookup           which guest has the address                   table.go
//	          v queue            bounded; never waits                          queue.go
//	guest ~ link.Link
//
// # Links
//
// Each port is a link of its own with two ends, the guest and the router, which has the same
// MAC address and fe80::1 on all of them. The router answers ARP and neighbour solicitations
// for the guests' whole prefixes, so that what is not the guest is behind the router, and
// guests do not hear one another's broadcasts. It does not count hops down or change a packet
// otherwise: what a guest sends to elsewhere comes out of Read to the last byte, what comes
// by Write reaches it so. Only IPv4 packets longer than the MTU that may be fragmented are.
//
// # Addresses
//
// A guest sends from its own MAC address and its own IP addresses alone, in each place where
// a frame says one. These are its own:
//
//   - The MAC address of the configuration, or of its first frame until it is unplugged.
//   - The addresses of the configuration.
//   - If that has no IPv4 address, one that it is leased: by DHCP, or by using one that is
//     free, as after a restart of the gateway, which keeps no leases. One at a time, for as
//     long as the port is plugged in; its name gets it again where it can.
//   - If that has no IPv6 address, and their prefix has 64 bits, those that it makes: that of
//     its MAC address, kept for it, and others which nobody has, as they are claimed by
//     a probe or by being used (first come, first served: RFC 6620). Privacy addresses (RFC
//     8981) and stable opaque ones (RFC 7217), the default of many systems, need that.
//   - Any link-local address but the router's, to the router alone.
//
// Addresses of the configuration are taken from whoever has come by them otherwise.
//
// # What a guest cannot do
//
// Packets to elsewhere wait in the guest's own link until they are read, and ports take
// turns, a batch each: one that floods slows itself down. A guest that takes no packets
// fills its queue, whose memory is shared out so that no source fills it for others
// (queue.go). A frame has one answer at most, ICMP errors are limited by the second, DNS
// queries and connections by their number for each guest and for all. Links that fail, and
// guests that come and go, concern nobody else.
//
// # Limitations
//
//   - No DHCPv6: guests have IPv6 addresses by making them, or by their own configuration.
//   - Ports have no VLANs; frames with a tag are refused, priority tags included.
//   - Multicast and broadcast go nowhere, mDNS included. Neither do packets from or to
//     link-local addresses, but for those to the router.
//   - Fragments to the router's own addresses are not put together.
//   - DNS over TCP is served at the router's global addresses only. The DNS relay keeps no
//     answers; a resolver's truncated answer is passed on as one.
//   - IPv4 header and transport checksums of packets in transit are not verified.
package firsthop
