package engine

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/gaissmai/bart"

	"sheaf/netstack"
	"sheaf/parsers/builtin"
	"sheaf/parsers/ip"
	"sheaf/tunnel"
)

// A sink is a Port that keeps what is written.
type sink struct{ packets [][]byte }

func (*sink) Read([][]byte, []int) (int, error) { return 0, nil }
func (*sink) BatchSize() int                    { return 1 }
func (*sink) Close() error                      { return nil }
func (s *sink) Write(packets [][]byte) error {
	for _, p := range packets {
		s.packets = append(s.packets, append([]byte(nil), p...))
	}
	return nil
}

// datagram makes a packet with room for an UDP header.
func datagram(src, dst string) []byte {
	from, to := netip.MustParseAddr(src), netip.MustParseAddr(dst)
	var p []byte
	if from.Is4() {
		p = append([]byte{0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0}, from.AsSlice()...)
	} else {
		p = append([]byte{0x60, 0, 0, 0, 0, 8, 17, 64}, from.AsSlice()...)
	}
	return append(append(p, to.AsSlice()...), 0x9C, 0x40, 7, 0x5B, 0, 8, 0, 0)
}

// hub returns a gateway with two peers, what lies behind them, and what it hands out.
func hub(t *testing.T, behind map[string]string) (*Gateway, *sink) {
	t.Helper()
	out := &sink{}
	g := &Gateway{port: out, router: newRouter(builtin.Registry()), peers: map[string]*peer{}}
	for name, list := range behind {
		p := &peer{name: name}
		p.allowed.Store(&bart.Lite{})
		g.peers[name] = p
		for prefix := range strings.FieldsSeq(list) {
			if err := g.AddRoute(Route{Prefix: netip.MustParsePrefix(prefix), Peer: name}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return g, out
}

// A peer may send from its prefixes, and from anywhere errors about what was sent
// to them.
func TestDeliver(t *testing.T) {
	g, out := hub(t, map[string]string{
		"broker":  "10.2.0.0/24 fd02::/64",
		"clients": "10.1.0.0/16 10.2.0.128/25 fd01::/64",
	})
	about := func(src, dst, from string) []byte {
		return netstack.AppendUnreachable(nil, datagram(src, dst), netstack.NoHost, netip.MustParseAddr(from))
	}
	truncated := about("10.1.0.7", "10.2.0.10", "172.16.2.2")[:20+8+19]
	binary.BigEndian.PutUint16(truncated[2:], uint16(len(truncated)))
	forged := about("10.1.0.7", "10.2.0.10", "172.16.2.2")
	copy(forged[16:20], []byte{10, 1, 0, 8})
	for _, tt := range []struct {
		name   string
		packet []byte
		ok     bool
	}{
		{"from its prefix", datagram("10.2.0.10", "10.1.0.7"), true},
		{"malformed behind its addresses", set(datagram("fd02::10", "fd01::7"), 6, 60), true},
		{"from elsewhere", datagram("172.16.2.2", "10.1.0.7"), false},
		{"from the longer prefix of another", datagram("10.2.0.200", "10.1.0.7"), true}, // allowed is as it is written
		{"an error from its prefix about anything", about("10.1.0.7", "10.7.0.1", "10.2.0.10"), true},
		{"of a router", about("10.1.0.7", "10.2.0.10", "172.16.2.2"), true},
		{"of a router, IPv6", about("fd01::7", "fd02::10", "fd16::2"), true},
		{"of a router, to one of no peer", about("10.9.0.7", "10.2.0.10", "172.16.2.2"), true},
		{"about what is behind nobody", about("10.1.0.7", "10.7.0.10", "172.16.2.2"), false},
		{"about what is behind another", about("10.9.0.7", "10.1.0.7", "172.16.2.2"), false},
		{"about what the longer prefix sends to another", about("10.1.0.7", "10.2.0.200", "172.16.2.2"), false},
		{"about what it sent itself", about("10.2.0.11", "10.2.0.10", "172.16.2.2"), false},
		{"to another than who sent it", forged, false},
		{"truncated", truncated, false},
		{"IPv6 about IPv4", append(about("fd01::7", "fd02::10", "fd16::2")[:48:48], datagram("10.1.0.7", "10.2.0.10")...), false},
		{"nothing", nil, false},
	} {
		p := g.peers["broker"]
		out.packets = nil
		p.refused.Store(0)
		g.deliver(p, [][]byte{tt.packet})
		if ok := len(out.packets) == 1; ok != tt.ok || p.refused.Load() != map[bool]uint64{true: 0, false: 1}[ok] {
			t.Errorf("%s: delivered %v, %d refused", tt.name, ok, p.refused.Load())
		}
		if tt.ok && len(out.packets) == 1 && fmt.Sprint(out.packets[0]) != fmt.Sprint(tt.packet) {
			t.Errorf("%s: changed", tt.name)
		}
	}
}

// Both directions of a conversation share a lane, whatever extension headers are in
// its packets, and all fragments of a datagram do.
func TestClass(t *testing.T) {
	r := newRouter(builtin.Registry())
	v4 := func(proto byte, sport, dport uint16) []byte {
		b := datagram("10.1.0.7", "10.2.0.10")
		b[9] = proto
		binary.BigEndian.PutUint16(b[20:], sport)
		binary.BigEndian.PutUint16(b[22:], dport)
		return b
	}
	v6 := func(next byte, rest ...byte) []byte {
		b := datagram("fd01::7", "fd02::10")
		b[6] = next
		return append(b[:40], rest...)
	}
	toBroker := []byte{0x9C, 0x40, 7, 0x5B, 0, 8, 0, 0} // 40000 to 1883
	options := []byte{6, 0, 1, 4, 0, 0, 0, 0}
	fragment := func(fields byte, rest ...byte) []byte {
		return v6(44, append([]byte{6, 0, 0, fields, 0, 0, 0, 1}, rest...)...)
	}
	part := func(fields byte) []byte {
		b := v4(6, 40000, 1883)
		b[6], b[7] = 0x20, fields
		return b
	}
	for _, tt := range []struct {
		name   string
		packet []byte
		want   tunnel.Class
	}{
		{"to the broker", v4(6, 40000, 1883), tunnel.ClassMessages},
		{"from the broker", v4(6, 1883, 40000), tunnel.ClassMessages},
		{"to the broker over TLS", v4(6, 40000, 8883), tunnel.ClassMessages},
		{"ping", v4(1, 0, 0), tunnel.ClassMessages},
		{"other TCP", v4(6, 40000, 443), tunnel.ClassBulk},
		{"other UDP", v4(17, 40000, 53), tunnel.ClassBulk},
		{"GRE", v4(47, 40000, 1883), tunnel.ClassBulk},
		{"first fragment", part(0), tunnel.ClassBulk},
		{"later fragment, which looks like a broker's", part(9), tunnel.ClassBulk},
		{"ports cut off", v4(6, 0, 1883)[:23], tunnel.ClassBulk},
		{"malformed, and would look like a broker's", set(v4(6, 40000, 1883), 0, 0x44), tunnel.ClassBulk},
		{"IPv6", v6(6, toBroker...), tunnel.ClassMessages},
		{"IPv6 ping", v6(58, 128, 0), tunnel.ClassMessages},
		{"IPv6 hop-by-hop", v6(0, append(options, toBroker...)...), tunnel.ClassMessages},
		{"IPv6 destination options", v6(60, append(options, toBroker...)...), tunnel.ClassMessages},
		{"IPv6 destination options, ping", v6(60, append([]byte{58}, options[1:]...)...), tunnel.ClassMessages},
		{"IPv6 atomic fragment", fragment(0, toBroker...), tunnel.ClassMessages},
		{"IPv6 first fragment", fragment(1, toBroker...), tunnel.ClassBulk},
		{"IPv6 later fragment, which looks like a broker's", fragment(9, toBroker...), tunnel.ClassBulk},
		{"IPv6 extension header cut off", v6(60, options[:7]...), tunnel.ClassBulk},
	} {
		if got := r.class(headerOf(tt.packet)); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// set returns p, with one byte changed.
func set(p []byte, at int, value byte) []byte {
	p[at] = value
	return p
}

// BenchmarkRoute reads what routing needs of a packet: where it goes, and its lane.
func BenchmarkRoute(b *testing.B) {
	r := newRouter(builtin.Registry())
	for _, tt := range []struct {
		name   string
		packet []byte
	}{
		{"IPv4", syn(40000)},
		{"IPv6", datagram("fd01::7", "fd02::10")},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var h ip.Header
				if h.Parse(tt.packet) != nil || r.to(h.Dst()) != nil || r.class(&h) != tunnel.ClassMessages {
					b.Fatal("not routed")
				}
			}
		})
	}
}
