package netstack

import (
	"net/netip"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"sheaf/parsers/ip"
)

// A reset in the name of another host is that host's: its addresses and ports, the
// number that is expected next, no other flag, and checksums that are right.
func TestAppendReset(t *testing.T) {
	for _, tt := range []struct{ from, to string }{
		{"10.2.0.10:1883", "10.1.0.7:40000"},
		{"[fd02::10]:1883", "[fd01::7]:40000"},
	} {
		from, to := netip.MustParseAddrPort(tt.from), netip.MustParseAddrPort(tt.to)
		before := []byte("before")
		b := AppendReset(before, from, to, 0xfffffffe)
		if string(b[:len(before)]) != "before" {
			t.Errorf("%s: %q", tt.from, b[:len(before)])
		}
		p := b[len(before):]
		var h ip.Header
		if h.Parse(p) != nil || h.Src() != from.Addr() || h.Dst() != to.Addr() || h.Proto != ip.TCP || h.Fragment != ip.Whole {
			t.Fatalf("%s: % x", tt.from, p)
		}
		if from.Addr().Is4() && !header.IPv4(p).IsChecksumValid() {
			t.Errorf("%s: IP checksum", tt.from)
		}
		s := header.TCP(p[len(p)-minTCP:])
		src, dst := tcpip.AddrFromSlice(h.Src().AsSlice()), tcpip.AddrFromSlice(h.Dst().AsSlice())
		if s.SourcePort() != from.Port() || s.DestinationPort() != to.Port() || s.SequenceNumber() != 0xfffffffe ||
			s.Flags() != header.TCPFlagRst || !s.IsChecksumValid(src, dst, 0, 0) {
			t.Errorf("%s: % x", tt.from, p)
		}
	}
}
