// Package ip reads the headers of IP packets. It is the one place that knows where
// they end: the router, the ICMP errors, the replay of captures and the decoder of
// the codec must not disagree on what a packet is.
//
// How it flows: Parse goes over IPv4 options, or through IPv6 extension headers
// (RFC 8200 section 4), to the transport header, and says where that begins, what it
// is and between whom. ParseShallow stops where the codec must not look further.
//
// Limitations:
//   - What IPv4 options and extension headers hold is not looked at: a jumbogram's
//     length (RFC 2675) is not known, nor a source route's last stop.
//   - An authentication header is gone through in IPv6 only, whose chain of headers
//     it is a part of; in IPv4 it is what the packet carries. Nothing is verified.
//   - ESP, mobility, HIP and shim6 headers are what the packet carries.
package ip
