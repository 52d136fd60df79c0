package tunnel

import (
	"errors"
	"net"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A socket is what quic-go sends through, with two differences.
//
// Packets are not marked as capable of ECN (RFC 9000 section 13.4): where they are,
// every acknowledgement carries three more numbers, 4.2 of 64.6 bytes a packet in
// steady traffic, and 6 after 16,000 packets. Few of the uplinks that sheaf is for
// mark instead of dropping. quic-go marks the first packets of a connection to try
// the path, sees that no marks arrive, and leaves it.
//
// Once a connection is established, a packet that the host has no way for is a
// packet lost. To quic-go it is the end of the connection; but a host whose address
// changes is without a route for a moment, which the connection outlives.
type socket struct {
	*net.UDPConn
	established atomic.Bool // a call that cannot be made is to fail at once, and say why
}

func newSocket(udp *net.UDPConn, established bool) *socket {
	s := &socket{UDPConn: udp}
	s.established.Store(established)
	return s
}

// establish says that the call is made.
func (s *socket) establish() { s.established.Store(true) }

// WriteMsgUDP implements quic.OOBCapablePacketConn.
func (s *socket) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (n, oobn int, err error) {
	n, oobn, err = s.UDPConn.WriteMsgUDP(b, withoutTrafficClass(oob), addr)
	if err != nil && s.established.Load() && passing(err) {
		return len(b), len(oob), nil
	}
	return n, oobn, err
}

// passing tells errors of the way, which may come back, from those of the socket
// and the packet.
func passing(err error) bool {
	for _, e := range []error{unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENETDOWN, unix.EADDRNOTAVAIL, unix.ENOBUFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// withoutTrafficClass returns the control messages in oob up to the one that sets
// the traffic class. It is the last one that quic-go appends.
func withoutTrafficClass(oob []byte) []byte {
	for rest := oob; len(rest) >= unix.SizeofCmsghdr; {
		h, _, next, err := unix.ParseOneSocketControlMessage(rest)
		if err != nil {
			break
		}
		if h.Level == unix.IPPROTO_IP && h.Type == unix.IP_TOS || h.Level == unix.IPPROTO_IPV6 && h.Type == unix.IPV6_TCLASS {
			return oob[:len(oob)-len(rest)]
		}
		rest = next
	}
	return oob
}
