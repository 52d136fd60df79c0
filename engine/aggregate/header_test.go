package aggregate

import (
	"bytes"
	"encoding/binary"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

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
	}{
		{"TCP", tcp.packet(), sumRight, true},
		{"SYN", syn(), sumRight, true},
		{"IPv6", ipv6tcp(), sumRight, true},
		{"UDP without checksum", udp(), sumZero, false},
		{"ICMP", icmp(), sumRight, false},
		{"fragment", fragment(), sumRight, false},
		{"wrong checksum", change(tcp.packet(), func(b []byte) { b[36] ^= 0x5a }), sumRaw, true},
		{"checksum left to the card", change(tcp.packet(), func(b []byte) {
			sum := checksum.Combine(checksum.Checksum(b[12:20], 0), checksum.Combine(6, uint16(len(b)-20)))
			binary.BigEndian.PutUint16(b[36:], sum)
		}), sumPartial, true},
		{"the other zero", change(tcp.packet(), func(b []byte) {
			// make the sum come out as zero, then write it as ffff
			b[50], b[51] = 0, 0
			b[36], b[37] = 0, 0
			sum := checksum.Combine(checksum.Checksum(b[12:20], 0), checksum.Combine(6, uint16(len(b)-20)))
			binary.BigEndian.PutUint16(b[50:], ^checksum.Checksum(b[20:], sum))
			b[36], b[37] = 0xff, 0xff
		}), sumOther, true},
		{"no timestamps", segment{client: 1, flags: 0x10}.packet(), sumRight, false},
		{"odd options", change(tcp.packet(), func(b []byte) { b[40], b[41] = 99, 12; fixSum(b) }), sumRight, false},
	}
	var dec parsers.Decoder
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var seg parsers.Segment
			if err := dec.Decode(tt.packet, &seg); err != nil {
				t.Fatal("the decoder has it ride verbatim:", err)
			}
			var f fields
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
