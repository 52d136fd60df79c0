package replay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"sheaf/parsers/builtin"
	"sheaf/pcap"
)

// segment returns a TCP segment with a body, of an IPv4 identification.
func segment(src, dst uint16, fromBroker bool, id uint16, seq uint32, body string) []byte {
	p := append(tcp(src, dst, 0x18, fromBroker), body...)
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	binary.BigEndian.PutUint16(p[4:], id)
	p[8] = 64
	binary.BigEndian.PutUint32(p[24:], seq)
	return p
}

// edited returns a copy of b with v from off on.
func edited(b []byte, off int, v ...byte) []byte {
	b = bytes.Clone(b)
	copy(b[off:], v)
	return b
}

func TestCopies(t *testing.T) {
	const ms = time.Millisecond
	first := segment(40000, 1883, false, 7, 1000, "hello")
	routed := edited(first, 8, 63, 6, 0xbe, 0xef)                             // time to live, checksum
	translated := edited(routed, 12, 10, 9, 9, 9)                             // another source
	answer := edited(segment(1883, 40000, true, 9, 5, "ok"), 16, 10, 9, 9, 9) // to that
	noID := edited(first, 4, 0, 0)
	udp := append([]byte{0x45, 0, 0, 29, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 1, 1, 10, 2, 0, 10, 1, 2, 3, 4, 0, 9, 0, 0}, 'x')
	ip6 := append([]byte{0x60, 0, 0, 0, 0, 21, 6, 64}, make([]byte, 32)...)
	ip6 = append(append(ip6, first[20:40]...), 'x')
	type sight struct {
		at      time.Duration
		tap     byte
		blurred bool
		packet  []byte
		copied  bool
	}
	for _, tt := range []struct {
		name  string
		sees  []sight
		twice uint64
	}{
		{"bridged", []sight{{0, 1, false, first, false}, {ms, 2, false, first, true}, {2 * ms, 3, false, first, true}}, 0},
		{"routed", []sight{{0, 1, false, first, false}, {ms, 2, false, routed, true}}, 0},
		{"routed, late", []sight{{0, 1, false, first, false}, {copyWithin, 2, false, routed, true}}, 0},
		{"too late", []sight{{0, 1, false, first, false}, {copyWithin + 1, 2, false, routed, false}}, 0},
		{"sent again", []sight{{0, 1, false, first, false}, {ms, 2, false, first, true}, {20 * ms, 1, false, first, false}, {21 * ms, 2, false, first, true}}, 0},
		{"translated, and its answer", []sight{{0, 1, false, first, false}, {ms, 2, false, translated, true}, {2 * ms, 2, false, answer, true}}, 0},
		{"translated, back first", []sight{{0, 2, false, translated, false}, {ms, 1, false, first, true}, {2 * ms, 2, false, answer, false}}, 0},
		{"one byte differs", []sight{{0, 1, false, first, false}, {ms, 2, false, edited(first, 44, 'O'), false}}, 0},
		{"another sequence number", []sight{{0, 1, false, first, false}, {ms, 2, false, edited(first, 27, 1), false}}, 0},
		{"another identification", []sight{{0, 1, false, first, false}, {ms, 2, false, edited(first, 5, 8), false}}, 0},
		{"one interface", []sight{{0, 1, false, first, false}, {0, 1, false, first, false}}, 1},
		{"one interface, acknowledgements", []sight{{0, 1, false, first[:40], false}, {0, 1, false, first[:40], false}}, 0},
		{"one interface, later", []sight{{0, 1, false, first, false}, {twiceWithin + 1, 1, false, first, false}}, 0},
		{"cooked v1", []sight{{0, 1, true, first, false}, {twiceWithin, 1, true, first, true}}, 0},
		{"cooked v1, later", []sight{{0, 1, true, first, false}, {twiceWithin + 1, 1, true, first, false}}, 0},
		{"cooked v1, no identification", []sight{{0, 1, true, noID, false}, {0, 1, true, noID, false}}, 1},
		{"cooked v1, another direction", []sight{{0, 1, true, noID, false}, {2 * ms, 2, true, noID, true}}, 0},
		{"UDP", []sight{{0, 1, false, udp, false}, {ms, 2, false, udp, true}, {ms, 1, false, udp, false}}, 0},
		{"UDP, routed", []sight{{0, 1, false, udp, false}, {ms, 2, false, edited(udp, 8, 63), true}}, 0},
		{"UDP from another host", []sight{{0, 1, false, udp, false}, {ms, 2, false, edited(udp, 15, 2), false}}, 0},
		{"IPv6, routed", []sight{{0, 1, false, ip6, false}, {ms, 2, false, edited(ip6, 7, 63), true}}, 0},
		{"a fragment", []sight{{0, 1, false, edited(first, 6, 0x20), false}, {ms, 2, false, edited(translated, 6, 0x20), false}, {ms, 3, false, edited(routed, 6, 0x20), true}}, 0},
	} {
		var c copies
		for i, s := range tt.sees {
			p := pcap.Packet{Data: s.packet, Tap: [24]byte{s.tap}, Blurred: s.blurred}
			if got := c.seen(s.at, &p); got != s.copied {
				t.Errorf("%s: packet %d: copy %v, want %v", tt.name, i, got, s.copied)
			}
		}
		if c.twice != tt.twice {
			t.Errorf("%s: %d seem to be copies, want %d", tt.name, c.twice, tt.twice)
		}
	}
}

// TestCopiesAreBounded holds that a packet is forgotten when so many others came,
// and not before, and that nothing grows beyond that.
func TestCopiesAreBounded(t *testing.T) {
	var c copies
	see := func(tap byte, n uint32) bool {
		p := pcap.Packet{Data: segment(40000, 1883, false, 7, n, "hello"), Tap: [24]byte{tap}}
		return c.seen(0, &p)
	}
	for n := range uint32(maxSightings) {
		if see(1, n) {
			t.Fatalf("packet %d is a copy", n)
		}
	}
	if !see(2, 0) {
		t.Error("the oldest was forgotten too soon")
	}
	if see(1, maxSightings); see(2, 0) {
		t.Error("the oldest is still remembered")
	}
	for n := range uint32(3 * maxSightings) {
		see(1, n)
	}
	if len(c.recent) != maxSightings || len(c.ring) != maxSightings {
		t.Errorf("%d packets remembered, %d in the ring", len(c.recent), len(c.ring))
	}
}

// cooked2 returns a capture of all interfaces, in the format of Linux cooked v2.
func cooked2(frames ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	b = append(b, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(pcap.LinkSLL2))
	for i, f := range frames {
		for _, v := range []int{1_700_000_000, i * 10, len(f), len(f)} {
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
		b = append(b, f...)
	}
	return b
}

// at2 returns a packet as it is in a cooked capture v2 of an interface.
func at2(iface byte, p []byte) []byte {
	head := make([]byte, 20)
	head[0], head[7], head[9] = 8, iface, 1
	return append(head, p...)
}

// TestAnyInterface replays what tcpdump -i any sees beside a container whose port is
// published: each packet at the network card, and translated at the bridge and at
// the container's end.
func TestAnyInterface(t *testing.T) {
	var any, one [][]byte
	for i := range 50 {
		body := fmt.Sprintf("\x30\x0b\x00\x05a/b/c%04d", i)
		card := segment(40000, 1883, false, uint16(i+1), uint32(1+13*i), body)
		inside := edited(card, 8, 63, 6, 0xbe, 0xef, 10, 1, 1, 1, 172, 17, 0, 2)
		back := segment(1883, 40000, true, uint16(1000+i), 1, "")
		insideBack := edited(back, 12, 172, 17, 0, 2)
		one = append(one, at2(2, card), at2(2, back))
		any = append(any, at2(2, card), at2(3, inside), at2(4, inside), at2(4, insideBack), at2(3, insideBack), at2(2, back))
	}
	replay := func(capture []byte) *Report {
		in, err := pcap.NewReader(bytes.NewReader(capture))
		if err != nil {
			t.Fatal(err)
		}
		cfg := config(5 * time.Millisecond)
		cfg.Lane.Registry = builtin.Registry()
		r, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = r.Run(in)
		return r.Report("", err)
	}
	once, often := replay(cooked2(one...)), replay(cooked2(any...))
	if often.Copies != 200 || often.Skipped != 200 || often.SkipReasons[copied] != 200 || !often.Exact() || often.Packets != 300 {
		t.Errorf("of %d packets %d copies, skipped %v, exact %v: %s", often.Packets, often.Copies, often.SkipReasons, often.Exact(), often.Difference)
	}
	if often.BytesIn != once.BytesIn || often.Protocols["mqtt"].Messages != 50 {
		t.Errorf("%d bytes, %d at one interface; %d messages", often.BytesIn, once.BytesIn, often.Protocols["mqtt"].Messages)
	}
	if once.Copies != 0 || once.Twice != 0 {
		t.Errorf("at one interface %d copies, %d twice", once.Copies, once.Twice)
	}
}
