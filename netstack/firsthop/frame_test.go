package firsthop

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// A checksum that computes to 0 is sent as 0xffff, and all are right.
func TestDatagramChecksum(t *testing.T) {
	for _, pair := range [][2]netip.Addr{{router4, a4}, {router6, a6}} {
		src, dst := pair[0], pair[1]
		payload, zero := make([]byte, 4), 0
		for i := range 1 << 16 {
			binary.BigEndian.PutUint16(payload, uint16(i))
			p := datagram(netip.AddrPortFrom(src, 53), netip.AddrPortFrom(dst, 4000), payload)
			u := header.UDP(p[len(p)-12:])
			sum := header.PseudoHeaderChecksum(header.UDPProtocolNumber, tcpip.AddrFromSlice(src.AsSlice()), tcpip.AddrFromSlice(dst.AsSlice()), 12)
			if checksum.Checksum(u, sum) != 0xffff || u.Checksum() == 0 {
				t.Fatalf("% x: checksum %x", payload, u.Checksum())
			}
			if u.Checksum() == 0xffff {
				zero++
			}
		}
		if zero == 0 {
			t.Error("none of the checksums is the one that this is about")
		}
	}
}
