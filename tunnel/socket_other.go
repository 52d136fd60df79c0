//go:build !linux

package tunnel

import "net"

// A socket is what quic-go sends through: here as it is. Packets are marked as
// capable of ECN, for 4 to 6 bytes each.
type socket struct{ *net.UDPConn }

func newSocket(udp *net.UDPConn, _ bool) *socket { return &socket{udp} }

func (*socket) establish() {}
