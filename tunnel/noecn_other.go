//go:build !linux

package tunnel

import "net"

// withoutECN returns conn: here packets are marked, for 4 to 6 bytes each.
func withoutECN(conn net.PacketConn) net.PacketConn { return conn }
