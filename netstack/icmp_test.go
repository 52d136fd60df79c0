package netstack

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"sheaf/parsers/ip"
)

var (
	client4  = netip.MustParseAddr("10.1.0.7")
	server4  = netip.MustParseAddr("10.2.0.10")
	gateway4 = netip.MustParseAddr("10.99.0.2")
	client6  = netip.MustParseAddr("fd01::7")
	server6  = netip.MustParseAddr("fd02::10")
	gateway6 = netip.MustParseAddr("fd99::2")
)

// A testSegment is a TCP segment to be made.
type testSegment struct {
	src, dst netip.Addr
	id       uint16 // IPv4 identification
	flow     uint32 // IPv6 flow label
	ttl      uint8
	tos      uint8
	more     bool   // more fragments
	offset   uint16 // of a fragment
	noDF     bool
	seq, ack uint32
	flags    header.TCPFlags
	window   uint16
	options  []byte
	payload  []byte
}

func (s testSegment) bytes() []byte {
	if !s.src.IsValid() {
		s.src, s.dst = client4, server4
	}
	if s.ttl == 0 {
		s.ttl = 64
	}
	tcpLength := header.TCPMinimumSize + len(s.options)
	ipLength := header.IPv4MinimumSize
	if s.src.Is6() {
		ipLength = header.IPv6MinimumSize
	}
	p := make([]byte, ipLength+tcpLength+len(s.payload))
	src, dst := tcpip.AddrFromSlice(s.src.AsSlice()), tcpip.AddrFromSlice(s.dst.AsSlice())
	if s.src.Is6() {
		header.IPv6(p).Encode(&header.IPv6Fields{TrafficClass: s.tos, FlowLabel: s.flow, PayloadLength: uint16(len(p) - ipLength), TransportProtocol: header.TCPProtocolNumber, HopLimit: s.ttl, SrcAddr: src, DstAddr: dst})
	} else {
		flags := uint8(header.IPv4FlagDontFragment)
		if s.noDF {
			flags = 0
		}
		if s.more {
			flags |= header.IPv4FlagMoreFragments
		}
		header.IPv4(p).Encode(&header.IPv4Fields{TOS: s.tos, TotalLength: uint16(len(p)), ID: s.id, Flags: flags, FragmentOffset: s.offset, TTL: s.ttl, Protocol: uint8(header.TCPProtocolNumber), SrcAddr: src, DstAddr: dst})
		header.IPv4(p).SetChecksum(^header.IPv4(p).CalculateChecksum())
	}
	t := header.TCP(p[ipLength:])
	t.Encode(&header.TCPFields{SrcPort: 40000, DstPort: 1883, SeqNum: s.seq, AckNum: s.ack, DataOffset: uint8(tcpLength), Flags: s.flags, WindowSize: s.window})
	copy(t[header.TCPMinimumSize:], s.options)
	copy(t[tcpLength:], s.payload)
	setTCPChecksum(p, ipLength)
	return p
}

func setTCPChecksum(p []byte, ipLength int) {
	t := header.TCP(p[ipLength:])
	t.SetChecksum(0)
	var sum uint16
	if ipLength == header.IPv6MinimumSize {
		sum = header.PseudoHeaderChecksum(header.TCPProtocolNumber, header.IPv6(p).SourceAddress(), header.IPv6(p).DestinationAddress(), uint16(len(t)))
	} else {
		sum = header.PseudoHeaderChecksum(header.TCPProtocolNumber, header.IPv4(p).SourceAddress(), header.IPv4(p).DestinationAddress(), uint16(len(t)))
	}
	t.SetChecksum(^checksum.Checksum(t, sum))
}

// icmpPacket makes an ICMP message of a type, in a packet from src to dst.
func icmpPacket(src, dst netip.Addr, kind byte, body []byte) []byte {
	message := append([]byte{kind, 0, 0, 0}, body...)
	if src.Is4() {
		p := append(make([]byte, header.IPv4MinimumSize), message...)
		header.IPv4(p).Encode(&header.IPv4Fields{TotalLength: uint16(len(p)), TTL: 64, Protocol: ip.ICMP, SrcAddr: tcpip.AddrFromSlice(src.AsSlice()), DstAddr: tcpip.AddrFromSlice(dst.AsSlice())})
		header.IPv4(p).SetChecksum(^header.IPv4(p).CalculateChecksum())
		i := header.ICMPv4(p[header.IPv4MinimumSize:])
		i.SetChecksum(^checksum.Checksum(i, 0))
		return p
	}
	p := append(make([]byte, header.IPv6MinimumSize), message...)
	header.IPv6(p).Encode(&header.IPv6Fields{PayloadLength: uint16(len(message)), TransportProtocol: header.ICMPv6ProtocolNumber, HopLimit: 64, SrcAddr: tcpip.AddrFromSlice(src.AsSlice()), DstAddr: tcpip.AddrFromSlice(dst.AsSlice())})
	i := header.ICMPv6(p[header.IPv6MinimumSize:])
	i.SetChecksum(header.ICMPv6Checksum(header.ICMPv6ChecksumParams{Header: i, Src: header.IPv6(p).SourceAddress(), Dst: header.IPv6(p).DestinationAddress()}))
	return p
}

func TestUnreachable(t *testing.T) {
	tests := []struct {
		name   string
		from   netip.Addr
		packet []byte
		reason Unreachable
		code   byte
		quoted int
	}{
		{"v4 host", gateway4, testSegment{payload: make([]byte, 10)}.bytes(), NoHost, 1, 50},
		{"v4 route", gateway4, testSegment{}.bytes(), NoRoute, 0, 40},
		{"v4 long", gateway4, testSegment{payload: make([]byte, 1400)}.bytes(), NoHost, 1, 576 - 28},
		{"v4 ping", gateway4, icmpPacket(client4, server4, 8, make([]byte, 60)), NoHost, 1, 84},
		{"v4 first fragment", gateway4, testSegment{more: true, payload: make([]byte, 16)}.bytes(), NoHost, 1, 56},
		{"v4 port", gateway4, testSegment{}.bytes(), NoPort, 3, 40},
		{"v4 prohibited", gateway4, testSegment{}.bytes(), Prohibited, 13, 40},
		{"v6 host", gateway6, testSegment{src: client6, dst: server6, payload: make([]byte, 10)}.bytes(), NoHost, 3, 70},
		{"v6 port", gateway6, testSegment{src: client6, dst: server6}.bytes(), NoPort, 4, 60},
		{"v6 prohibited", gateway6, testSegment{src: client6, dst: server6}.bytes(), Prohibited, 1, 60},
		{"v6 route", gateway6, testSegment{src: client6, dst: server6}.bytes(), NoRoute, 0, 60},
		{"v6 long", gateway6, testSegment{src: client6, dst: server6, payload: make([]byte, 1401)}.bytes(), NoHost, 3, 1280 - 48},
		{"v6 ping", gateway6, icmpPacket(client6, server6, 128, make([]byte, 60)), NoHost, 3, 104},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := bytes.Clone(tt.packet)
			dst := []byte("head")
			out := AppendUnreachable(dst, tt.packet, tt.reason, tt.from)
			if !bytes.HasPrefix(out, dst) || !bytes.Equal(before, tt.packet) {
				t.Fatal("buffer before or packet quoted changed")
			}
			kind, code, quote := readICMP(t, out[len(dst):], tt.from)
			if want := map[bool]byte{true: 3, false: 1}[tt.from.Is4()]; kind != want || code != tt.code {
				t.Errorf("type %d code %d, want %d and %d", kind, code, want, tt.code)
			}
			if len(quote) != tt.quoted || !bytes.HasPrefix(tt.packet, quote) {
				t.Errorf("quoted %d bytes, want %d of the packet", len(quote), tt.quoted)
			}
		})
	}
}

// What is too big is answered with the MTU where RFC 1191 and RFC 4443 have it.
func TestTooBig(t *testing.T) {
	for _, tt := range []struct {
		from       netip.Addr
		packet     []byte
		kind, code byte
		rest       []byte
	}{
		{gateway4, testSegment{payload: make([]byte, 1400)}.bytes(), 3, 4, []byte{0, 0, 0x05, 0x14}},
		{gateway6, testSegment{src: client6, dst: server6, payload: make([]byte, 1400)}.bytes(), 2, 0, []byte{0, 0, 0x05, 0x14}},
	} {
		out := AppendTooBig(nil, tt.packet, 1300, tt.from)
		kind, code, quote := readICMP(t, out, tt.from)
		at := len(out) - len(quote) - 4
		if kind != tt.kind || code != tt.code || !bytes.HasPrefix(tt.packet, quote) || !bytes.Equal(out[at:at+4], tt.rest) {
			t.Errorf("from %v: type %d code %d, % x", tt.from, kind, code, out[at:at+4])
		}
	}
	if AppendTooBig(nil, icmpPacket(client4, server4, 3, make([]byte, 60)), 1300, gateway4) != nil {
		t.Error("an ICMP error is answered")
	}
}

// readICMP checks an ICMP error with gVisor's views and takes it apart.
func readICMP(t *testing.T, p []byte, from netip.Addr) (kind, code byte, quote []byte) {
	t.Helper()
	if from.Is4() {
		h := header.IPv4(p)
		if !h.IsValid(len(p)) || !h.IsChecksumValid() || h.SourceAddress().String() != from.String() || h.DestinationAddress().String() != client4.String() {
			t.Fatalf("bad IPv4 header % x", p[:20])
		}
		if len(p) > 576 {
			t.Errorf("%d bytes", len(p))
		}
		i := header.ICMPv4(h.Payload())
		if checksum.Checksum(i, 0) != 0xFFFF {
			t.Errorf("ICMP checksum wrong")
		}
		return byte(i.Type()), byte(i.Code()), i.Payload()
	}
	h := header.IPv6(p)
	if !h.IsValid(len(p)) || h.SourceAddress().String() != from.String() || h.DestinationAddress().String() != client6.String() {
		t.Fatalf("bad IPv6 header % x", p[:40])
	}
	if len(p) > 1280 {
		t.Errorf("%d bytes", len(p))
	}
	i := header.ICMPv6(h.Payload())
	got := i.Checksum()
	i.SetChecksum(0)
	if want := header.ICMPv6Checksum(header.ICMPv6ChecksumParams{Header: i, Src: h.SourceAddress(), Dst: h.DestinationAddress()}); got != want {
		t.Errorf("ICMPv6 checksum %#x, want %#x", got, want)
	}
	return byte(i.Type()), byte(i.Code()), i.Payload()
}

func TestNoICMP(t *testing.T) {
	addr := netip.MustParseAddr
	v4 := func(src, dst string) []byte { return testSegment{src: addr(src), dst: addr(dst)}.bytes() }
	v6 := func(src, dst string) []byte { return testSegment{src: addr(src), dst: addr(dst)}.bytes() }
	// A packet with one fragment header: offset in units of 8 bytes.
	fragment6 := func(offset uint16) []byte {
		p := v6("fd01::7", "fd02::10")
		f := []byte{ip.TCP, 0, byte(offset >> 5), byte(offset<<3) | 1, 0, 0, 0, 1}
		p[6] = 44
		p = append(p[:40:40], append(f, p[40:]...)...)
		binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
		return p
	}
	if AppendUnreachable(nil, fragment6(0), NoHost, gateway6) == nil {
		t.Error("the first fragment of an IPv6 packet is to be answered")
	}
	// What is authenticated (RFC 4302), here an ICMP message of a type.
	authenticated := func(kind byte) []byte {
		p := icmpPacket(client6, server6, kind, make([]byte, 40))
		p[6] = 51
		p = slices.Concat(p[:40], []byte{ip.ICMPv6, 4}, make([]byte, 22), p[40:])
		binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
		return p
	}
	if AppendUnreachable(nil, authenticated(128), NoHost, gateway6) == nil {
		t.Error("a ping with an authentication header is to be answered")
	}
	chain := bytes.Repeat([]byte{60, 0, 0, 0, 0, 0, 0, 0}, 20)
	endless := append(v6("fd01::7", "fd02::10")[:40:40], chain...)
	endless[6] = 60
	tests := []struct {
		name   string
		packet []byte
		from   netip.Addr
	}{
		{"empty", nil, gateway4},
		{"short", v4("10.1.0.7", "10.2.0.10")[:19], gateway4},
		{"header length beyond the packet", append([]byte{0x4F}, make([]byte, 25)...), gateway4},
		{"v6 short", v6("fd01::7", "fd02::10")[:39], gateway6},
		{"v6 extension short", fragment6(0)[:44], gateway6},
		{"v6 extensions without end", endless, gateway6},
		{"version 5", append([]byte{0x55}, make([]byte, 60)...), gateway4},
		{"other family", v4("10.1.0.7", "10.2.0.10"), gateway6},
		{"no router", v4("10.1.0.7", "10.2.0.10"), netip.Addr{}},
		{"later fragment", testSegment{offset: 8}.bytes(), gateway4},
		{"v6 later fragment", fragment6(1), gateway6},
		{"from nobody", v4("0.0.0.0", "10.2.0.10"), gateway4},
		{"from multicast", v4("224.0.0.1", "10.2.0.10"), gateway4},
		{"from loopback", v4("127.0.0.1", "10.2.0.10"), gateway4},
		{"from broadcast", v4("255.255.255.255", "10.2.0.10"), gateway4},
		{"to multicast", v4("10.1.0.7", "239.1.1.1"), gateway4},
		{"to broadcast", v4("10.1.0.7", "255.255.255.255"), gateway4},
		{"v6 from nobody", v6("::", "fd02::10"), gateway6},
		{"v6 from multicast", v6("ff02::1", "fd02::10"), gateway6},
		{"v6 to multicast", v6("fd01::7", "ff0e::1"), gateway6},
		{"ICMP unreachable", icmpPacket(client4, server4, 3, make([]byte, 40)), gateway4},
		{"ICMP redirect", icmpPacket(client4, server4, 5, make([]byte, 40)), gateway4},
		{"ICMP without type", icmpPacket(client4, server4, 8, nil)[:20], gateway4},
		{"ICMPv6 too big", icmpPacket(client6, server6, 2, make([]byte, 40)), gateway6},
		{"ICMPv6 redirect", icmpPacket(client6, server6, 137, make([]byte, 40)), gateway6},
		{"ICMPv6 too big, authenticated", authenticated(2), gateway6},
		{"hop-by-hop in the second place", append(append(v6("fd01::7", "fd02::10")[:6:6], append([]byte{60}, endless[7:40]...)...), 0, 0, 0, 0, 0, 0, 0, 0, ip.TCP, 0, 0, 0, 0, 0, 0, 0), gateway6},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if out := AppendUnreachable([]byte("head"), tt.packet, NoHost, tt.from); out != nil {
				t.Errorf("answered with % x", out)
			}
		})
	}
	if AppendUnreachable(nil, v4("10.1.0.7", "10.2.0.10"), 200, gateway4) != nil {
		t.Error("answered for an unknown reason")
	}
}

// icmpError makes an ICMP error with nothing between its header and the quote.
func icmpError(src, dst netip.Addr, kind byte, quote []byte) []byte {
	return icmpPacket(src, dst, kind, append(make([]byte, 4), quote...))
}

func TestQuoted(t *testing.T) {
	router4, router6 := netip.MustParseAddr("172.16.2.2"), netip.MustParseAddr("fd00:16::2")
	segment4, segment6 := testSegment{payload: make([]byte, 1400)}.bytes(), testSegment{src: client6, dst: server6, payload: make([]byte, 1100)}.bytes()
	options4 := append([]byte{0x46}, segment4[1:20]...)
	options4 = append(append(options4, 1, 1, 1, 0), segment4[20:]...)
	fragment6 := func(offset uint16, next byte) []byte {
		return append(append(append(segment6[:6:6], 44), segment6[7:40]...), next, 0, byte(offset>>5), byte(offset<<3)|1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8)
	}
	extensions := append(segment4[:128:128], 0x20, 0, 0xDF, 0xFF, 0, 8, 1, 1, 0, 0, 0, 0) // RFC 4884: behind 128 bytes of the quote
	ping4, ping6 := icmpPacket(client4, server4, 8, make([]byte, 60)), icmpPacket(client6, server6, 128, make([]byte, 60))
	loop, group := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("224.0.0.1")
	tests := []struct {
		name   string
		packet []byte
		ok     bool
	}{
		{"too big", icmpError(router4, client4, 3, segment4[:548]), true},
		{"the least quote", icmpError(router4, client4, 3, segment4[:28]), true},
		{"time exceeded", icmpError(router4, client4, 11, segment4[:28]), true},
		{"parameter problem", icmpError(router4, client4, 12, segment4[:28]), true},
		{"about a ping", icmpError(router4, client4, 11, ping4), true},
		{"about a first fragment", icmpError(router4, client4, 3, testSegment{more: true, payload: make([]byte, 16)}.bytes()), true},
		{"IP options quoted", icmpError(router4, client4, 3, options4[:60]), true},
		{"extensions", icmpError(router4, client4, 11, extensions), true},
		{"v6 unreachable", icmpError(router6, client6, 1, segment6), true},
		{"v6 too big", icmpError(router6, client6, 2, segment6), true},
		{"v6 time exceeded", icmpError(router6, client6, 3, segment6), true},
		{"v6 parameter problem", icmpError(router6, client6, 4, segment6[:48]), true},
		{"v6 about a ping", icmpError(router6, client6, 3, ping6), true},
		{"v6 about a first fragment", icmpError(router6, client6, 2, fragment6(0, ip.TCP)), true},
		{"v6 about a later fragment", icmpError(router6, client6, 2, fragment6(1, ip.ICMPv6)), true}, // RFC 4443 has no rule against it

		{"nothing", nil, false},
		{"no error", segment4, false},
		{"a ping", ping4, false},
		{"v6 ping", ping6, false},
		{"redirect", icmpError(router4, client4, 5, segment4[:28]), false},
		{"source quench", icmpError(router4, client4, 4, segment4[:28]), false},
		{"v6 type 0", icmpError(router6, client6, 0, segment6), false},
		{"v6 type 5", icmpError(router6, client6, 5, segment6), false},
		{"v6 redirect", icmpError(router6, client6, 137, segment6), false},
		{"no ICMP header", icmpPacket(router4, client4, 3, nil)[:24], false},
		{"no quote", icmpError(router4, client4, 3, nil), false},
		{"quote ends in its header", icmpError(router4, client4, 3, segment4[:19]), false},
		{"quote ends in its options", icmpError(router4, client4, 3, options4[:23]), false},
		{"quoted header too short", icmpError(router4, client4, 3, append([]byte{0x44}, segment4[1:40]...)), false},
		{"v6 quote ends in its header", icmpError(router6, client6, 1, segment6[:39]), false},
		{"v6 quote ends in its extensions", icmpError(router6, client6, 1, fragment6(0, ip.TCP)[:44]), false},
		{"sent to another than the quoted source", icmpError(router4, server4, 3, segment4[:28]), false},
		{"v6 sent to another", icmpError(router6, server6, 1, segment6), false},
		{"about an error", icmpError(router4, client4, 3, icmpError(client4, server4, 11, segment4[:28])), false},
		{"v6 about an error", icmpError(router6, client6, 1, icmpError(client6, server6, 3, segment6)), false},
		{"about a redirect", icmpError(router6, client6, 1, icmpError(client6, server6, 137, segment6)), false},
		{"about what may be an error", icmpError(router4, client4, 3, ping4[:20]), false},
		{"about a later fragment", icmpError(router4, client4, 3, testSegment{offset: 8}.bytes()), false},
		{"about IPv6", icmpError(router4, client4, 3, segment6), false},
		{"from loopback", icmpError(loop, client4, 3, segment4[:28]), false},
		{"from a group", icmpError(group, client4, 3, segment4[:28]), false},
		{"to loopback", icmpError(router4, loop, 3, testSegment{src: loop, dst: server4}.bytes()), false},
		{"to a group", icmpError(router4, group, 3, testSegment{src: group, dst: server4}.bytes()), false},
	}
	for _, tt := range tests {
		src, dst, ok := Quoted(tt.packet)
		want4, want6 := src == client4 && dst == server4, src == client6 && dst == server6
		if ok != tt.ok || ok && !want4 && !want6 {
			t.Errorf("%s: %v to %v, %v", tt.name, src, dst, ok)
		}
	}
	later := icmpError(router4, client4, 3, segment4[:28])
	later[7] = 1
	if _, _, ok := Quoted(later); ok {
		t.Error("a later fragment was read as an error")
	}
}

func FuzzICMP(f *testing.F) {
	f.Add(testSegment{payload: make([]byte, 30)}.bytes())
	f.Add(testSegment{src: client6, dst: server6}.bytes())
	f.Add(icmpPacket(client6, server6, 128, make([]byte, 20)))
	f.Add(icmpError(gateway4, client4, 3, testSegment{}.bytes()))
	f.Add(icmpError(gateway6, client6, 2, testSegment{src: client6, dst: server6}.bytes()))
	f.Fuzz(func(t *testing.T, packet []byte) {
		Quoted(packet)
		for _, from := range []netip.Addr{gateway4, gateway6} {
			b := AppendUnreachable(nil, packet, NoHost, from)
			if b == nil {
				continue
			}
			var h ip.Header
			_ = h.Parse(packet)
			if src, dst, ok := Quoted(b); (src != h.Src() || dst != h.Dst() || !ok) && len(packet) <= maxICMPv4-ip.MinIPv4-lenICMP {
				t.Errorf("quotes %v to %v, %v; want %v to %v", src, dst, ok, h.Src(), h.Dst())
			}
		}
	})
}
