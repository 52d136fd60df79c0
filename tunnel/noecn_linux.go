package tunnel

import (
	"net"

	"golang.org/x/sys/unix"
)

// withoutECN keeps quic-go from marking packets as capable of ECN (RFC 9000
// section 13.4). Where packets are marked, every acknowledgement carries three
// more numbers: 4.2 of 64.6 bytes a packet in steady traffic, and 6 after 16,000
// packets. Few of the uplinks that sheaf is for mark instead of dropping.
func withoutECN(conn net.PacketConn) net.PacketConn {
	if udp, ok := conn.(*net.UDPConn); ok {
		return unmarkedConn{udp}
	}
	return conn
}

// An unmarkedConn takes the traffic class out of what is sent. quic-go marks the
// first packets of a connection to try the path, sees that no marks arrive, and
// leaves it.
type unmarkedConn struct{ *net.UDPConn }

// WriteMsgUDP implements quic.OOBCapablePacketConn.
func (c unmarkedConn) WriteMsgUDP(b, oob []byte, addr *net.UDPAddr) (int, int, error) {
	return c.UDPConn.WriteMsgUDP(b, withoutTrafficClass(oob), addr)
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
