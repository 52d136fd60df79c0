package netstack

import (
	"encoding/binary"
	"net/netip"
)

// The PROXY protocol's signature and constants:
// https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt, section 2.2.
const (
	proxySignature = "\r\n\r\n\x00\r\nQUIT\n"
	proxyVersion2  = 0x21 // version 2, command PROXY
	proxyTCP4      = 0x11
	proxyTCP6      = 0x21
	proxyUDP4      = 0x12
	proxyUDP6      = 0x22
)

// appendProxyHeader appends the PROXY protocol version 2 header of a connection
// from src to dst, which are of one family: 28 bytes for IPv4, 52 for IPv6.
func appendProxyHeader(b []byte, kind4, kind6 byte, src, dst netip.AddrPort) []byte {
	kind, length := kind4, 2*4+2*2
	if src.Addr().Is6() {
		kind, length = kind6, 2*16+2*2
	}
	b = append(b, proxySignature...)
	b = append(b, proxyVersion2, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	b = append(b, src.Addr().AsSlice()...)
	b = append(b, dst.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, src.Port())
	return binary.BigEndian.AppendUint16(b, dst.Port())
}
