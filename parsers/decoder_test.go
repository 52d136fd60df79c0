package parsers_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
)

var (
	v4Src = [16]byte{10, 0, 0, 2}
	v4Dst = [16]byte{10, 0, 0, 1}
	v6Src = [16]byte{0: 0xfd, 15: 2}
	v6Dst = [16]byte{0: 0xfd, 15: 1}
)

func key4(proto uint8, src, dst uint16) parsers.FlowKey {
	return parsers.FlowKey{Src: v4Src, Dst: v4Dst, SrcPort: src, DstPort: dst, Proto: proto, Version: 4}
}

func key6(proto uint8, src, dst uint16) parsers.FlowKey {
	return parsers.FlowKey{Src: v6Src, Dst: v6Dst, SrcPort: src, DstPort: dst, Proto: proto, Version: 6}
}

var good = []struct {
	name   string
	packet []byte
	want   parsers.Segment // without Packet
}{
	{"IPv4 TCP", ipv4(6, nil, tcp(1000, 1883, 7, 0x18, timestamps, []byte("data"))),
		parsers.Segment{Key: key4(6, 1000, 1883), HeaderLen: 20, TransportLen: 32, Seq: 7, Ack: 0x01020304, Flags: 0x18}},
	{"IPv4 TCP, all flags, no payload", ipv4(6, nil, tcp(1, 2, 0xffffffff, 0xff, nil, nil)),
		parsers.Segment{Key: key4(6, 1, 2), HeaderLen: 20, TransportLen: 20, Seq: 0xffffffff, Ack: 0x01020304, Flags: 0xff}},
	{"IPv4 options", ipv4(6, []byte{0x94, 4, 0, 0, 1, 1, 1, 0}, tcp(1, 2, 3, 0x10, nil, []byte("x"))),
		parsers.Segment{Key: key4(6, 1, 2), HeaderLen: 28, TransportLen: 20, Seq: 3, Ack: 0x01020304, Flags: 0x10}},
	{"many TCP options", ipv4(6, nil, tcp(1, 2, 3, 2, []byte{2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7}, nil)),
		parsers.Segment{Key: key4(6, 1, 2), HeaderLen: 20, TransportLen: 40, Seq: 3, Ack: 0x01020304, Flags: 2}},
	{"TCP options end early", ipv4(6, nil, tcp(1, 2, 3, 2, []byte{0, 9, 9, 9}, nil)),
		parsers.Segment{Key: key4(6, 1, 2), HeaderLen: 20, TransportLen: 24, Seq: 3, Ack: 0x01020304, Flags: 2}},
	{"IPv4 UDP", ipv4(17, nil, udp(5000, 5683, []byte("coap"))),
		parsers.Segment{Key: key4(17, 5000, 5683), HeaderLen: 20, TransportLen: 8}},
	{"UDP on a port that gopacket knows", ipv4(17, nil, udp(53, 4789, []byte("not DNS"))),
		parsers.Segment{Key: key4(17, 53, 4789), HeaderLen: 20, TransportLen: 8}},
	{"empty UDP", ipv4(17, nil, udp(1, 2, nil)),
		parsers.Segment{Key: key4(17, 1, 2), HeaderLen: 20, TransportLen: 8}},
	{"ICMP", ipv4(1, nil, []byte{8, 0, 0, 0, 0, 0, 0, 0}),
		parsers.Segment{Key: key4(1, 0, 0), HeaderLen: 20}},
	{"nothing after IPv4", ipv4(255, nil, nil),
		parsers.Segment{Key: key4(255, 0, 0), HeaderLen: 20}},
	{"IPv4 in IPv4", ipv4(4, nil, set(ipv4(6, nil, tcp(1, 2, 3, 2, nil, nil)), 15, 99)),
		parsers.Segment{Key: key4(4, 0, 0), HeaderLen: 20}},
	{"IPv6 extension in IPv4", ipv4(60, nil, extension(6, 0, tcp(1, 2, 3, 2, nil, nil))),
		parsers.Segment{Key: key4(60, 0, 0), HeaderLen: 20}},
	{"first IPv4 fragment", set(ipv4(6, nil, tcp(1, 2, 3, 2, nil, nil)), 6, 0x20),
		parsers.Segment{Key: key4(6, 0, 0), HeaderLen: 20, Fragment: true}},
	{"last IPv4 fragment", set(ipv4(17, nil, []byte{1}), 7, 9),
		parsers.Segment{Key: key4(17, 0, 0), HeaderLen: 20, Fragment: true}},
	{"do not fragment", set(ipv4(6, nil, tcp(1, 2, 3, 2, nil, nil)), 6, 0x40),
		parsers.Segment{Key: key4(6, 1, 2), HeaderLen: 20, TransportLen: 20, Seq: 3, Ack: 0x01020304, Flags: 2}},

	{"IPv6 TCP", ipv6(6, tcp(1000, 1883, 7, 0x18, timestamps, []byte("data"))),
		parsers.Segment{Key: key6(6, 1000, 1883), HeaderLen: 40, TransportLen: 32, Seq: 7, Ack: 0x01020304, Flags: 0x18}},
	{"IPv6 UDP", ipv6(17, udp(1, 2, []byte("x"))),
		parsers.Segment{Key: key6(17, 1, 2), HeaderLen: 40, TransportLen: 8}},
	{"IPv6 hop-by-hop", ipv6(0, extension(6, 1, tcp(1, 2, 3, 2, nil, []byte("x")))),
		parsers.Segment{Key: key6(6, 1, 2), HeaderLen: 56, TransportLen: 20, Seq: 3, Ack: 0x01020304, Flags: 2}},
	{"IPv6 hop-by-hop, destination, routing, destination", ipv6(0, extension(60, 0, extension(43, 0, extension(60, 2, extension(17, 0, udp(1, 2, nil)))))),
		parsers.Segment{Key: key6(17, 1, 2), HeaderLen: 88, TransportLen: 8}},
	{"IPv6 fragment", ipv6(60, extension(44, 0, append([]byte{6, 77, 0, 1, 0, 0, 0, 9}, tcp(1, 2, 3, 2, nil, nil)[:9]...))),
		parsers.Segment{Key: key6(6, 0, 0), HeaderLen: 56, Fragment: true}},
	{"IPv6 atomic fragment", ipv6(44, append([]byte{6, 0, 0, 0, 0, 0, 0, 9}, tcp(1, 2, 3, 2, nil, nil)...)),
		parsers.Segment{Key: key6(6, 0, 0), HeaderLen: 48, Fragment: true}},
	{"ESP", ipv6(50, make([]byte, 20)),
		parsers.Segment{Key: key6(50, 0, 0), HeaderLen: 40}},
	{"AH", ipv6(51, extension(6, 4, tcp(1, 2, 3, 2, nil, nil))),
		parsers.Segment{Key: key6(51, 0, 0), HeaderLen: 40}},
	{"nothing after IPv6", ipv6(59, nil),
		parsers.Segment{Key: key6(59, 0, 0), HeaderLen: 40}},
	{"IPv6 in IPv6", ipv6(41, ipv6(6, tcp(1, 2, 3, 2, nil, nil))),
		parsers.Segment{Key: key6(41, 0, 0), HeaderLen: 40}},
}

func TestDecode(t *testing.T) {
	var d parsers.Decoder
	for _, tt := range good {
		t.Run(tt.name, func(t *testing.T) {
			var seg parsers.Segment
			if err := d.Decode(tt.packet, &seg); err != nil {
				t.Fatal(err)
			}
			tt.want.Packet = tt.packet
			if diff := cmp.Diff(tt.want, seg); diff != "" {
				t.Error(diff)
			}
			// Whatever a packet is, one that lacks a byte or has one more is not
			// consistent.
			for n := range tt.packet {
				if err := d.Decode(tt.packet[:n], &seg); err == nil {
					t.Fatalf("%d of %d bytes are a packet", n, len(tt.packet))
				}
			}
			if err := d.Decode(append(tt.packet[:len(tt.packet):len(tt.packet)], 0), &seg); !errors.Is(err, parsers.ErrLength) {
				t.Fatalf("with a byte more: %v", err)
			}
		})
	}
}

var bad = []struct {
	name   string
	packet []byte
	want   error
}{
	{"empty", nil, parsers.ErrShort},
	{"version", set(ipv4(6, nil, tcp(1, 2, 3, 2, nil, nil)), 0, 0x55), parsers.ErrVersion},
	{"IPv4 header length", set(ipv4(6, nil, tcp(1, 2, 3, 2, nil, nil)), 0, 0x44), parsers.ErrHeader},
	{"IPv4 header beyond the packet", set(ipv4(1, nil, nil), 0, 0x4f), parsers.ErrShort},
	{"IPv4 total length 0", set(set(ipv4(6, nil, tcp(1, 2, 3, 2, nil, nil)), 2, 0), 3, 0), parsers.ErrLength},
	{"IPv4 options", ipv4(6, []byte{7, 9, 0, 0}, tcp(1, 2, 3, 2, nil, nil)), parsers.ErrHeader},
	{"IPv4 option of length 0", ipv4(6, []byte{7, 0, 0, 0}, tcp(1, 2, 3, 2, nil, nil)), parsers.ErrHeader},
	{"IPv6 payload length 0", set(ipv6(6, tcp(1, 2, 3, 2, nil, nil)), 5, 0), parsers.ErrLength},
	{"IPv6 extension beyond the packet", ipv6(60, []byte{6, 1, 0, 0, 0, 0, 0, 0}), parsers.ErrShort},
	{"IPv6 extension cut", ipv6(60, []byte{6, 0, 0}), parsers.ErrShort},
	{"IPv6 hop-by-hop twice", ipv6(0, extension(0, 0, extension(6, 0, tcp(1, 2, 3, 2, nil, nil)))), parsers.ErrHeader},
	{"IPv6 extensions without end", ipv6(60, endless(20)), parsers.ErrHeader},
	{"TCP cut", ipv4(6, nil, tcp(1, 2, 3, 2, nil, nil)[:19]), parsers.ErrShort},
	{"TCP offset too small", ipv4(6, nil, set(tcp(1, 2, 3, 2, nil, nil), 12, 0x40)), parsers.ErrHeader},
	{"TCP offset beyond the packet", ipv4(6, nil, set(tcp(1, 2, 3, 2, nil, nil), 12, 0x60)), parsers.ErrHeader},
	{"TCP option beyond the header", ipv4(6, nil, tcp(1, 2, 3, 2, []byte{1, 1, 8, 10}, make([]byte, 20))), parsers.ErrHeader},
	{"TCP option of length 1", ipv4(6, nil, tcp(1, 2, 3, 2, []byte{8, 1, 0, 0}, nil)), parsers.ErrHeader},
	{"UDP cut", ipv4(17, nil, udp(1, 2, nil)[:7]), parsers.ErrShort},
	{"UDP length too small", ipv4(17, nil, set(udp(1, 2, []byte("x")), 5, 8)), parsers.ErrLength},
	{"UDP length 0", ipv6(17, set(udp(1, 2, []byte("x")), 5, 0)), parsers.ErrLength},
	{"UDP length too large", ipv4(17, nil, set(udp(1, 2, []byte("x")), 5, 10)), parsers.ErrLength},
}

func endless(n int) []byte {
	if n == 0 {
		return nil
	}
	return extension(60, 0, endless(n-1))
}

func TestDecodeErrors(t *testing.T) {
	var d parsers.Decoder
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			var seg parsers.Segment
			if err := d.Decode(tt.packet, &seg); !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
		})
	}
}

// TestDecodeAfterAnything holds that no packet leaves traces in the next one.
func TestDecodeAfterAnything(t *testing.T) {
	var d parsers.Decoder
	for _, before := range bad {
		for _, tt := range good {
			var seg parsers.Segment
			if d.Decode(before.packet, &seg) == nil {
				t.Fatal(before.name)
			}
			if err := d.Decode(tt.packet, &seg); err != nil {
				t.Fatalf("%s after %s: %v", tt.name, before.name, err)
			}
			tt.want.Packet = tt.packet
			if diff := cmp.Diff(tt.want, seg); diff != "" {
				t.Fatalf("%s after %s: %s", tt.name, before.name, diff)
			}
		}
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	var d parsers.Decoder
	var seg parsers.Segment
	for _, tt := range good {
		if n := testing.AllocsPerRun(100, func() {
			if err := d.Decode(tt.packet, &seg); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
	for _, tt := range bad {
		if n := testing.AllocsPerRun(100, func() {
			if d.Decode(tt.packet, &seg) == nil {
				t.Fatal("no error")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	for _, tt := range good {
		f.Add(tt.packet)
	}
	for _, tt := range bad {
		f.Add(tt.packet)
	}
	var d parsers.Decoder
	f.Fuzz(func(t *testing.T, b []byte) {
		var seg parsers.Segment
		if d.Decode(b, &seg) != nil {
			return
		}
		if seg.HeaderLen < 20 || seg.TransportLen < 0 || seg.HeaderLen+seg.TransportLen+len(seg.Payload()) != len(b) {
			t.Fatalf("parts do not add up: %+v", seg)
		}
		if seg.Key.Version != b[0]>>4 || (seg.TransportLen > 0) != (!seg.Fragment && (seg.Key.Proto == 6 || seg.Key.Proto == 17)) {
			t.Fatalf("inconsistent: %+v", seg)
		}
		if seg.TransportLen == 0 && (seg.Key.SrcPort != 0 || seg.Key.DstPort != 0 || seg.Seq != 0 || seg.Flags != 0) {
			t.Fatalf("ports without a transport: %+v", seg)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, tt := range good {
		switch tt.name {
		case "IPv4 TCP", "IPv4 UDP", "IPv6 TCP", "ICMP", "IPv6 hop-by-hop":
		default:
			continue
		}
		b.Run(tt.name, func(b *testing.B) {
			var d parsers.Decoder
			var seg parsers.Segment
			b.ReportAllocs()
			for b.Loop() {
				if err := d.Decode(tt.packet, &seg); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
