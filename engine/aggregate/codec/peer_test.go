package codec

import (
	"bytes"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

// rebuild makes a layout of a header as a peer may send it, and builds the header
// of a packet from it. It reports whether the layout is valid.
func rebuild(h []byte, ip int, proto uint8) (*layout, bool) {
	l, ok := newLayout(h, ip, proto)
	if !ok {
		return nil, false
	}
	key := parsers.FlowKey{Version: h[0] >> 4, Proto: proto, SrcPort: 1, DstPort: 2}
	f := Fields{layout: l, sack: &sack{n: l.blocks}, opaque: make([]byte, l.opaque), tsval: 0x01020304, tsecr: 0x05060708}
	appendHeader(nil, &key, &f, parsers.FlagACK, payloadOf(make([]byte, 9)))
	return l, true
}

// Whatever lengths a peer's layout gives to TCP options, what it makes of them
// stays inside the header.
func TestOptionLengthsOfAPeer(t *testing.T) {
	for _, kind := range []byte{2, 3, optionSACK, optionTimestamps, 19, 254} {
		for n := range 256 {
			for room := 2; room <= 60; room++ { // from the option to the end of the header
				for _, before := range []int{0, 1, 3} {
					h := append(codectest.Segment{}.Packet()[:40], bytes.Repeat([]byte{optionNop}, before)...)
					h = append(h, kind, byte(n))
					h = append(h, make([]byte, room-2)...)
					l, ok := rebuild(h, 20, ip.TCP)
					if !ok {
						t.Fatalf("option %d of %d bytes in %d: no layout", kind, n, room)
					}
					if stamped := kind == optionTimestamps && n == 10 && room >= n; stamped != (l.tsval == 42+before) {
						t.Fatalf("option %d of %d bytes in %d: timestamps at %d", kind, n, room, l.tsval)
					}
					if sacked := kind == optionSACK && n >= 10 && n <= 34 && n%8 == 2 && room >= n; sacked != (l.sack == 42+before) {
						t.Fatalf("option %d of %d bytes in %d: SACK blocks at %d", kind, n, room, l.sack)
					}
					if r := l.runs; len(r) > 0 && int(r[0].to) > len(h) {
						t.Fatalf("option %d of %d bytes in %d: bytes to %d of %d", kind, n, room, r[0].to, len(h))
					}
				}
			}
		}
	}
}

// A peer's layout has the headers that its kind has.
func TestLayoutsOfAPeer(t *testing.T) {
	for proto, valid := range map[uint8]func(transport int) bool{
		ip.TCP: func(n int) bool { return n == 0 || n >= 20 },
		ip.UDP: func(n int) bool { return n == 0 || n == 8 },
		1:      func(n int) bool { return n == 0 },
	} {
		for version, fixed := range map[byte]int{4: 20, 6: 40, 5: 256} {
			for n := 20; n <= maxHeader; n++ {
				for ip := range n + 2 {
					h := make([]byte, n)
					h[0] = version << 4
					want := ip >= fixed && ip <= n && valid(n-ip)
					if _, ok := rebuild(h, ip, proto); ok != want {
						t.Fatalf("IPv%d, protocol %d, %d bytes, %d of them IP: valid %v", version, proto, n, ip, ok)
					}
				}
			}
		}
	}
}

// FuzzLayout: a layout of a peer is invalid, or a header can be built from it.
func FuzzLayout(f *testing.F) {
	for _, b := range somePackets() {
		if len(b) < v4Len {
			continue
		}
		ip, proto := v4Len, b[9]
		if b[0]>>4 == 6 {
			ip, proto = v6Len, b[v6Next]
		}
		for _, n := range []int{20, 28, 40, 52, 60, 72} {
			f.Add(b[:min(n, len(b))], ip, proto)
		}
	}
	f.Add(append(codectest.Segment{}.Packet()[:40], 1, 1, 8, 200, 0, 0, 0, 0), 20, uint8(ip.TCP))
	f.Fuzz(func(t *testing.T, h []byte, ip int, proto uint8) {
		if len(h) < v4Len || len(h) > maxHeader { // codeNewLayout refuses these
			return
		}
		l, ok := rebuild(h, ip, proto)
		if !ok {
			return
		}
		if l.tsval != 0 && (l.tsval < l.ip+tcpLen || l.tsval+8 > len(h)) || l.opaque > len(h)-v4Len {
			t.Fatalf("timestamps at %d, %d bytes in runs, of %d with %d of IP", l.tsval, l.opaque, len(h), l.ip)
		}
		if l.sack != 0 && (l.sack < l.ip+tcpLen || l.sack+8*l.blocks > len(h) || l.blocks > maxBlocks) {
			t.Fatalf("%d SACK blocks at %d, of %d with %d of IP", l.blocks, l.sack, len(h), l.ip)
		}
	})
}

// somePackets are some of all kinds.
func somePackets() [][]byte {
	s := codectest.Segment{Client: 1, Port: 1, Flags: 0x18, Window: 64, Seq: 1000, Ack: 2000, ID: 5, TSval: 100, TSecr: 50}
	all := [][]byte{
		codectest.SYN(), codectest.UDP(), codectest.ICMP(), codectest.Fragment(), codectest.IPv6TCP(), {0x45, 0, 0},
		s.With(codectest.SACKOption([2]uint32{500, 600}, [2]uint32{300, 400})...), s.With(254, 4, 7, 7),
	}
	for _, payload := range [][]byte{
		nil, codectest.Publish("a/b", `{"seq":1,"t":20.5}`, 0), codectest.Publish("a/b", `{"seq":2,"t":20.6}`, 7),
		{0x40, 2, 0, 7}, []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), append(codectest.Publish("x", "1", 0), codectest.Publish("x", "2", 1)...),
		bytes.Repeat([]byte{0x9c, 0x13, 0xe7, 0x4a, 0xd1}, 200),
	} {
		s.Payload = payload
		all = append(all, s.Packet())
	}
	return all
}
