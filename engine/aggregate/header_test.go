package aggregate

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"
	"pgregory.net/rapid"

	"sheaf/parsers"
)

func TestHeaderRebuilds(t *testing.T) {
	tcp := segment{client: 1, flags: 0x18, window: 9, seq: 5, ack: 6, id: 7, tsval: 8, tsecr: 9, payload: []byte("payload")}
	change := func(b []byte, edit func([]byte)) []byte {
		edit(b)
		return b
	}
	tests := []struct {
		name   string
		packet []byte
		mode   sumMode
		stamp  bool
		odd    bool // the IPv4 header checksum is not right
	}{
		{"TCP", tcp.packet(), sumRight, true, false},
		{"SYN", syn(), sumRight, true, false},
		{"IPv6", ipv6tcp(), sumRight, true, false},
		{"UDP without checksum", udp(), sumZero, false, false},
		{"ICMP", icmp(), sumRight, false, false},
		{"fragment", fragment(), sumRight, false, false},
		{"wrong checksum", change(tcp.packet(), func(b []byte) { b[36] ^= 0x5a }), sumRaw, true, false},
		{"checksum left to the card", change(tcp.packet(), func(b []byte) {
			sum := checksum.Combine(checksum.Checksum(b[12:20], 0), checksum.Combine(6, uint16(len(b)-20)))
			binary.BigEndian.PutUint16(b[36:], sum)
		}), sumPartial, true, false},
		{"the other zero", change(tcp.packet(), func(b []byte) {
			// make the sum come out as zero, then write it as ffff
			b[50], b[51] = 0, 0
			b[36], b[37] = 0, 0
			sum := checksum.Combine(checksum.Checksum(b[12:20], 0), checksum.Combine(6, uint16(len(b)-20)))
			binary.BigEndian.PutUint16(b[50:], ^checksum.Checksum(b[20:], sum))
			b[36], b[37] = 0xff, 0xff
		}), sumOther, true, false},
		{"SACK", segment{client: 1, flags: 0x10, tsval: 8, options: sackOption(block{5, 9}, block{1, 3})}.packet(), sumRight, true, false},
		{"four blocks", segment{client: 1, flags: 0x10, options: sackOption(make([]block, 4)...)}.packet(), sumRight, false, false},
		{"no timestamps", segment{client: 1, flags: 0x10}.packet(), sumRight, false, false},
		{"odd options", change(tcp.packet(), func(b []byte) { b[40], b[41] = 99, 12; fixSum(b) }), sumRight, false, false},
		{"header checksum left to the card", change(tcp.packet(), func(b []byte) { b[10], b[11] = 0, 0 }), sumRight, true, true},
		{"wrong header checksum", change(icmp(), func(b []byte) { b[11] ^= 1 }), sumRight, false, true},
		{"both wrong", change(tcp.packet(), func(b []byte) { b[10] ^= 7; b[36] ^= 0x5a }), sumRaw, true, true},
	}
	var dec parsers.Decoder
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var seg parsers.Segment
			if err := dec.Decode(tt.packet, &seg); err != nil {
				t.Fatal("the decoder has it ride verbatim:", err)
			}
			f := fields{sack: new(sack)}
			h, ok := dissect(&seg, nil, &f)
			if !ok {
				t.Fatal("not dissected")
			}
			f.layout, ok = newLayout(h, seg.HeaderLen, seg.Key.Proto)
			if !ok {
				t.Fatal("no layout")
			}
			if got := f.layout.stamp != 0; got != tt.stamp {
				t.Errorf("timestamps: %v", got)
			}
			payload := seg.Payload()
			sum := checksum.Checksum(payload, 0)
			f.sumMode = unresolved
			got := appendHeader(nil, &seg.Key, &f, seg.Flags, len(payload), sum)
			if !bytes.Equal(got, tt.packet[:len(h)]) {
				t.Fatalf("rebuilt %x from %x", got, tt.packet[:len(h)])
			}
			if f.sumMode != tt.mode {
				t.Errorf("checksum mode %d, expected %d", f.sumMode, tt.mode)
			}
			if odd := f.ipSumMode != ipSumRight; odd != tt.odd {
				t.Errorf("header checksum not right: %v", odd)
			} else if !odd {
				f.ipSum = 0
			}
			// and from the mode alone
			if f.sumMode != sumRaw {
				f.sum = 0
			}
			if got := appendHeader(nil, &seg.Key, &f, seg.Flags, len(payload), sum); !bytes.Equal(got, tt.packet[:len(h)]) {
				t.Errorf("rebuilt %x from the mode", got)
			}
		})
	}
}

// What a host sends to itself has a header checksum of 0, or another value that
// stays, and a transport checksum that is only begun. That costs no more than
// right checksums do.
func TestOddChecksumsArePredicted(t *testing.T) {
	cost := func(spoil func(b []byte)) int {
		p := newPair(t, Config{})
		f := newFanout(20)
		before := 0
		for range 40 {
			if f.round == 20 {
				before = p.bytes[0] + p.bytes[1]
			}
			f.send(func(int) []byte { return publish("plant/4/alarms", body(f.round), 0) }, func(d int, now time.Duration, b []byte) {
				spoil(b)
				p.run(d, now, b)
			})
			p.due(f.now + 40*ms)
		}
		for d := range p.ends {
			if n := p.ends[d].Merger.Stats().Verbatim; n != 0 {
				t.Errorf("%d packets verbatim", n)
			}
		}
		return p.bytes[0] + p.bytes[1] - before
	}
	right := cost(func([]byte) {})
	for name, spoil := range map[string]func(b []byte){
		"left to the card": func(b []byte) {
			b[10], b[11] = 0, 0
			sum := checksum.Combine(checksum.Checksum(b[12:20], 0), checksum.Combine(6, uint16(len(b)-20)))
			binary.BigEndian.PutUint16(b[36:], sum)
		},
		"one value": func(b []byte) { b[10], b[11] = 0xde, 0xad },
	} {
		if got := cost(spoil); got > right+20 { // a decision each frame, nearly sure
			t.Errorf("%s: %d bytes, %d with right checksums", name, got, right)
		}
	}
	n := uint16(0)
	if got := cost(func(b []byte) { n += 40503; binary.BigEndian.PutUint16(b[10:], n) }); got < right+1500 { // two for each of 800 packets
		t.Errorf("checksums that cannot be predicted: %d bytes, %d with right ones", got, right)
	}
}

// Whatever is in the places of the checksums comes out again, from flow to flow
// and from one packet of a flow to the next.
func TestAnyChecksumsComeThrough(t *testing.T) {
	bases := [][]byte{
		segment{client: 1, flags: 0x18, window: 9, seq: 5, ack: 6, tsval: 8, tsecr: 9, payload: []byte("payload")}.packet(),
		segment{client: 2, flags: 0x18, window: 9, seq: 5, ack: 6, tsval: 8, tsecr: 9, payload: []byte("payload")}.packet(),
		udp(), icmp(), fragment(), ipv6tcp(),
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := newPair(rt, Config{})
		sums := rapid.SampledFrom([]int{-1, 0, 0xffff, 1, 0x5a5a}) // -1: as it is
		for i := range rapid.IntRange(1, 30).Draw(rt, "packets") {
			b := bytes.Clone(rapid.SampledFrom(bases).Draw(rt, "base"))
			at := []int{-1, 36, 26}[map[byte]int{6: 1, 17: 2}[b[9]]]
			if b[0]>>4 == 6 {
				at = 56
			} else if v := sums.Draw(rt, "header"); v >= 0 {
				binary.BigEndian.PutUint16(b[10:], uint16(v))
			}
			if v := sums.Draw(rt, "transport"); v >= 0 && at >= 0 {
				binary.BigEndian.PutUint16(b[at:], uint16(v))
			}
			p.add(0, time.Duration(i), b)
			if rapid.Bool().Draw(rt, "flush") {
				p.flush(0, time.Duration(i))
			}
		}
		p.flush(0, ms)
		if n := p.ends[0].Merger.Stats().Verbatim; n != 0 {
			rt.Fatalf("%d packets verbatim", n)
		}
	})
}

func TestNewLayoutRefuses(t *testing.T) {
	v4 := make([]byte, 40)
	v4[0] = 0x45
	for name, tt := range map[string]struct {
		b     []byte
		ip    int
		proto uint8
	}{
		"short IP":        {v4, 19, 6},
		"long IP":         {v4, 41, 6},
		"short TCP":       {v4[:39], 20, 6},
		"a version":       {make([]byte, 40), 20, 6},
		"short IPv6":      {append([]byte{0x60}, make([]byte, 59)...), 30, 6},
		"UDP":             {v4, 20, 17},
		"no header of it": {v4, 20, 1},
		"too long":        {append([]byte{0x45}, make([]byte, maxHeader)...), 20, 6},
	} {
		if _, ok := newLayout(tt.b, tt.ip, tt.proto); ok {
			t.Errorf("%s: taken", name)
		}
	}
}
