package codec

import (
	"bytes"
	"encoding/binary"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers"
)

// decode returns where the parts of a packet begin.
func decode(t tester, packet []byte) *parsers.Segment {
	t.Helper()
	var dec parsers.Decoder
	seg := new(parsers.Segment)
	if err := dec.Decode(packet, seg); err != nil {
		t.Fatalf("the packet goes as it is: %v", err)
	}
	return seg
}

// describe returns the fields of a packet with their layout, and where its parts are.
func describe(t tester, packet []byte) (*Fields, *parsers.Segment) {
	t.Helper()
	seg := decode(t, packet)
	f := &Fields{sack: new(sack)}
	h, ok := dissect(seg, nil, f)
	if !ok {
		t.Fatalf("not dissected: %x", packet)
	}
	if f.layout, ok = newLayout(h, seg.HeaderLen, seg.Key.Proto); !ok {
		t.Fatalf("no layout for %x", h)
	}
	if f.layout.opaque > 0 {
		f.opaque = cut(nil, h, f.layout.runs)
		f.layout, _ = newLayout(h, seg.HeaderLen, seg.Key.Proto)
	}
	return f, seg
}

// A header comes out of its fields as it was, whatever it is of, and out of the modes
// of its checksums where these say all of them.
func TestHeaderRebuilds(t *testing.T) {
	tcp := codectest.Segment{Client: 1, Flags: 0x18, Window: 9, Seq: 5, Ack: 6, ID: 7, TSval: 8, TSecr: 9, Payload: []byte("payload")}
	six := tcp
	six.IPv6, six.Label, six.Options = true, 0xabcde, []byte{1, 1, 1, 0}
	change := func(b []byte, edit func([]byte)) []byte {
		edit(b)
		return b
	}
	for _, tt := range []struct {
		name   string
		packet []byte
		mode   sumMode
		tsval  int // where the timestamps are
		ip     ipSumMode
	}{
		{"TCP", tcp.Packet(), sumRight, 44, ipSumRight},
		{"SYN", codectest.SYN(), sumRight, 48, ipSumRight},
		{"IPv6", six.Packet(), sumRight, 64, ipSumRight},
		{"UDP without checksum", codectest.UDP(), sumZero, 0, ipSumRight},
		{"ICMP", codectest.ICMP(), sumRight, 0, ipSumRight},
		{"fragment", codectest.Fragment(), sumRight, 0, ipSumRight},
		{"wrong checksum", change(tcp.Packet(), func(b []byte) { b[36] ^= 0x5a }), sumExplicit, 44, ipSumRight},
		{"checksum left to the card", change(tcp.Packet(), partial), sumPartial, 44, ipSumRight},
		{"the other zero", change(tcp.Packet(), otherZero), sumOther, 44, ipSumRight},
		{"SACK", codectest.Segment{Client: 1, Flags: 0x10, TSval: 8}.With(codectest.SACKOption([2]uint32{5, 9}, [2]uint32{1, 3})...), sumRight, 44, ipSumRight},
		{"four blocks", codectest.Segment{Client: 1}.With(codectest.SACKOption(make([][2]uint32, 4)...)...), sumRight, 0, ipSumRight},
		{"no timestamps", codectest.Segment{Client: 1, Flags: 0x10}.Packet(), sumRight, 0, ipSumRight},
		{"odd options", change(tcp.Packet(), func(b []byte) { b[40], b[41] = 99, 12; codectest.FixSum(b) }), sumRight, 0, ipSumRight},
		{"header checksum left to the card", change(tcp.Packet(), func(b []byte) { b[10], b[11] = 0, 0 }), sumRight, 44, ipSumExplicit},
		{"wrong header checksum", change(codectest.ICMP(), func(b []byte) { b[11] ^= 1 }), sumRight, 0, ipSumExplicit},
		{"both wrong", change(tcp.Packet(), func(b []byte) { b[10] ^= 7; b[36] ^= 0x5a }), sumExplicit, 44, ipSumExplicit},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f, seg := describe(t, tt.packet)
			n := seg.HeaderLen + seg.TransportLen
			if f.layout.tsval != tt.tsval {
				t.Errorf("timestamps at %d, expected at %d", f.layout.tsval, tt.tsval)
			}
			f.sumMode = unresolved
			got := appendHeader([]byte("before"), &seg.Key, f, seg.Flags, payloadOf(seg.Payload()))
			if string(got) != "before"+string(tt.packet[:n]) {
				t.Fatalf("rebuilt %x from %x", got[6:], tt.packet[:n])
			}
			if f.sumMode != tt.mode || f.ipSumMode != tt.ip {
				t.Errorf("checksum modes %d and %d, expected %d and %d", f.sumMode, f.ipSumMode, tt.mode, tt.ip)
			}
			if f.sumMode != sumExplicit {
				f.sum = 0
			}
			if f.ipSumMode == ipSumRight {
				f.ipSum = 0
			}
			if got := appendHeader(nil, &seg.Key, f, seg.Flags, payloadOf(seg.Payload())); !bytes.Equal(got, tt.packet[:n]) {
				t.Errorf("rebuilt %x from the modes", got)
			}
		})
	}
}

// pseudo returns the sum over the pseudo-header of a TCP segment over IPv4.
func pseudo(b []byte) uint16 {
	return checksum.Combine(checksum.Checksum(b[12:20], 0), checksum.Combine(6, uint16(len(b)-20)))
}

// partial leaves the checksum of a TCP segment over IPv4 to the network card.
func partial(b []byte) { binary.BigEndian.PutUint16(b[36:], pseudo(b)) }

// otherZero makes the checksum come out as zero, and writes it as ffff.
func otherZero(b []byte) {
	b[36], b[37], b[50], b[51] = 0, 0, 0, 0
	binary.BigEndian.PutUint16(b[50:], ^checksum.Checksum(b[20:], pseudo(b)))
	b[36], b[37] = 0xff, 0xff
}

// Each field has what is at its place in the header, and the layout has zeros there.
func TestDissect(t *testing.T) {
	s := codectest.Segment{
		Client: 1, Port: 2, ID: 0x0304, Seq: 0x05060708, Ack: 0x090a0b0c, Flags: 0x18, Window: 0x0d0e,
		TSval: 0x0f101112, TSecr: 0x13141516, Options: codectest.SACKOption([2]uint32{21, 22}),
	}
	f, _ := describe(t, s.Packet())
	if f.seq != s.Seq || f.ack != s.Ack || f.window != s.Window || f.id != s.ID || f.tsval != s.TSval || f.tsecr != s.TSecr {
		t.Errorf("%+v of %+v", f, s)
	}
	if *f.sack != (sack{n: 1, blocks: [maxBlocks]block{{21, 22}}}) || f.layout.sack != 56 || f.layout.blocks != 1 {
		t.Errorf("SACK blocks %+v at %d", f.sack, f.layout.sack)
	}
	want := make([]byte, 64)
	copy(want, []byte{0x45, 6: 0x40, 8: 64, 9: 6, 32: 11 << 4, 40: 1, 1, 8, 10, 52: 1, 1, 5, 10})
	if !bytes.Equal(f.layout.bytes, want) || f.layout.ip != 20 || f.layout.kind != TCP4 || f.layout.proto != 6 {
		t.Errorf("layout % x, expected % x", f.layout.bytes, want)
	}
	s = codectest.Segment{IPv6: true, Label: 0xabcde}
	b := s.Packet()
	b[0], b[1] = 0x6f, 0xfa // traffic class ff, which stays
	f, _ = describe(t, b)
	want = make([]byte, 60)
	copy(want, []byte{0x6f, 0xf0, 6: 6, 7: 64, 52: 5 << 4})
	if f.label != s.Label || !bytes.Equal(f.layout.bytes, want) || f.layout.kind != TCP6 {
		t.Errorf("label %x, layout % x, expected % x", f.label, f.layout.bytes, want)
	}
	udp := codectest.UDP()
	udp[26], udp[27] = 0x12, 0x34
	f, _ = describe(t, udp)
	want = make([]byte, 28)
	copy(want, []byte{0x45, 6: 0x40, 8: 64, 9: 17})
	if f.sum != 0x1234 || !bytes.Equal(f.layout.bytes, want) || f.layout.kind != IP4 {
		t.Errorf("checksum %x, layout % x, expected % x", f.sum, f.layout.bytes, want)
	}
}

// No layout can describe headers that are too long, cut off, or of a transport protocol
// that has no columns.
func TestDissectRefuses(t *testing.T) {
	long := func(n int) *parsers.Segment {
		return &parsers.Segment{Packet: make([]byte, n), HeaderLen: n, Key: parsers.FlowKey{Version: 6, Proto: 59}}
	}
	tcp := func(edit func(*parsers.Segment)) *parsers.Segment {
		s := decode(t, codectest.Segment{}.Packet())
		edit(s)
		return s
	}
	for name, tt := range map[string]struct {
		seg *parsers.Segment
		ok  bool
	}{
		"as it is":                   {tcp(func(*parsers.Segment) {}), true},
		"the longest":                {long(maxHeader), true},
		"too long":                   {long(maxHeader + 1), false},
		"cut off":                    {tcp(func(s *parsers.Segment) { s.Packet = s.Packet[:39] }), false},
		"no IP header":               {tcp(func(s *parsers.Segment) { s.HeaderLen, s.TransportLen = 19, 0 }), false},
		"a transport header of SCTP": {tcp(func(s *parsers.Segment) { s.Key.Proto = 132 }), false},
		"SCTP":                       {tcp(func(s *parsers.Segment) { s.Key.Proto, s.TransportLen = 132, 0 }), true},
	} {
		if _, ok := dissect(tt.seg, nil, &Fields{sack: new(sack)}); ok != tt.ok {
			t.Errorf("%s: %v", name, ok)
		}
	}
}

func TestNewLayoutRefuses(t *testing.T) {
	v4 := make([]byte, 40)
	v4[0] = 0x45
	for name, tt := range map[string]struct {
		b     []byte
		ip    int
		proto uint8
		ok    bool
	}{
		"IPv4":            {v4, 20, 6, true},
		"short IP":        {v4, 19, 6, false},
		"long IP":         {v4, 41, 6, false},
		"no transport":    {v4, 40, 6, true},
		"short TCP":       {v4[:39], 20, 6, false},
		"a version":       {make([]byte, 40), 20, 6, false},
		"IPv6":            {append([]byte{0x60}, make([]byte, 59)...), 40, 6, true},
		"short IPv6":      {append([]byte{0x60}, make([]byte, 59)...), 39, 6, false},
		"UDP":             {v4[:28], 20, 17, true},
		"long UDP":        {v4[:29], 20, 17, false},
		"short UDP":       {v4[:27], 20, 17, false},
		"no header of it": {v4, 20, 1, false},
		"the longest":     {append([]byte{0x45}, make([]byte, maxHeader-1)...), 20, 6, true},
		"too long":        {append([]byte{0x45}, make([]byte, maxHeader)...), 20, 6, false},
	} {
		l, ok := newLayout(tt.b, tt.ip, tt.proto)
		if ok != tt.ok {
			t.Errorf("%s: %v", name, ok)
		}
		if ok && &l.bytes[0] == &tt.b[0] {
			t.Errorf("%s: the bytes are not a copy", name)
		}
	}
}

// Two layouts are the same where their bytes, the length of the IP header and the
// protocol are.
func TestLayoutSame(t *testing.T) {
	l := layout{bytes: []byte{1, 2}, ip: 20, proto: 6}
	same := l
	same.bytes, same.number, same.used = []byte{1, 2}, layoutAt(3), 7
	if !l.same(&same) {
		t.Error("a copy elsewhere in the table is another")
	}
	for name, change := range map[string]func(*layout){
		"bytes":    func(l *layout) { l.bytes = []byte{1, 3} },
		"ip":       func(l *layout) { l.ip++ },
		"protocol": func(l *layout) { l.proto++ },
	} {
		other := l
		if change(&other); l.same(&other) {
			t.Errorf("the same with other %s", name)
		}
	}
}

func TestKindOf(t *testing.T) {
	for _, tt := range []struct {
		key       parsers.FlowKey
		kind      Kind
		tcp, v4   bool
		longest   int
		described string
	}{
		{parsers.FlowKey{Version: 4, Proto: 6, SrcPort: 1}, TCP4, true, true, 65535, "TCP over IPv4"},
		{parsers.FlowKey{Version: 4, Proto: 6, DstPort: 1}, TCP4, true, true, 65535, "TCP over IPv4 from port 0"},
		{parsers.FlowKey{Version: 6, Proto: 6, SrcPort: 1}, TCP6, true, false, 65575, "TCP over IPv6"},
		{parsers.FlowKey{Version: 4, Proto: 6}, IP4, false, true, 65535, "a fragment of TCP"},
		{parsers.FlowKey{Version: 6, Proto: 6}, IP6, false, false, 65575, "a fragment of TCP over IPv6"},
		{parsers.FlowKey{Version: 4, Proto: 17, SrcPort: 1}, IP4, false, true, 65535, "UDP"},
		{parsers.FlowKey{Version: 6, Proto: 17, SrcPort: 1}, IP6, false, false, 65575, "UDP over IPv6"},
	} {
		k := KindOf(&tt.key)
		if k != tt.kind || k.TCP() != tt.tcp || k.v4() != tt.v4 || k.v6() == tt.v4 || k.longest() != tt.longest {
			t.Errorf("%s: kind %d, TCP %v, IPv4 %v, IPv6 %v, at most %d bytes", tt.described, k, k.TCP(), k.v4(), k.v6(), k.longest())
		}
	}
	if Verbatim.TCP() || Verbatim.v4() || Verbatim.v6() {
		t.Error("a packet as it is has a header")
	}
}
