package codec

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/ip"
)

const (
	// maxHeader bounds the headers that a layout describes, in bytes: the longest IPv4
	// and TCP headers are 60 bytes each; what IPv6 extension headers add past
	// it rides verbatim.
	maxHeader = 240
)

// Where the fields of an IPv4 header are (RFC 791 section 3.1).
const (
	v4Length   = 2
	v4ID       = 4
	v4Fragment = 6
	v4Checksum = 10
	v4Src      = 12
	v4Dst      = 16
	v4Len      = 20 // without options
)

// Where the fields of an IPv6 header are (RFC 8200 section 3).
const (
	v6Label  = 0 // in the low 20 bits of four bytes
	v6Length = 4
	v6Next   = 6
	v6Src    = 8
	v6Dst    = 24
	v6Len    = 40 // without extension headers
)

// Where the fields of a TCP header are (RFC 9293 section 3.1).
const (
	tcpSrcPort  = 0
	tcpDstPort  = 2
	tcpSeq      = 4
	tcpAck      = 8
	tcpOffset   = 12
	tcpFlags    = 13
	tcpWindow   = 14
	tcpChecksum = 16
	tcpUrgent   = 18
	tcpLen      = 20 // without options
)

// Where the fields of a UDP header are (RFC 768); its ports are where TCP's are.
const (
	udpLength   = 4
	udpChecksum = 6
	udpLen      = 8
)

// A layout is what the headers of a flow's packets have in common and share
// with other flows: the whole header with every field zeroed that has a column
// of its own or belongs to the flow (addresses, ports, identification, flow
// label, lengths, numbers, flags, window, checksums, timestamps), and every byte
// that is opaque here (options.go).
//
//	IPv4  45 00 .. .. .. .. 40 00 40 06 .. .. .. .. .. .. .. .. .. ..
//	TCP   .. .. .. .. .. .. .. .. .. .. .. .. 80 .. .. .. .. .. 00 00
//	      01 01 08 0a .. .. .. .. .. .. .. ..
//
// Two layouts are the same where their bytes, ip and proto are. What the two ends
// remember is a layout's entry in the table (layouts.go), never the object that a
// packet was first described with.
type layout struct {
	bytes  []byte
	ip     int          // length of the IP header with extension headers
	tsval  int          // offset of the TCP timestamps, TSval and TSecr; 0 without
	sack   int          // offset of the blocks of the SACK option, 0 without
	blocks int          // of the SACK option
	kind   Kind         // of the groups its segments can be in
	proto  uint8        // IP protocol of the transport header
	number layoutNumber // of an entry; else a hint at where its entry may be
	used   groupNumber  // of an entry: the last group with a segment of it
	runs   []run
	opaque int // bytes of the runs together
}

func (l *layout) same(o *layout) bool {
	return l.ip == o.ip && l.proto == o.proto && string(l.bytes) == string(o.bytes)
}

// Fields are the header fields that have columns.
type Fields struct {
	layout       *layout
	seq, ack     uint32
	tsval, tsecr uint32
	sack         *sack  // blocks of a SACK option, nil without; borrowed from codec.sacks
	label        uint32 // IPv6 flow label
	id           uint16 // IPv4 identification
	window       uint16
	sum          uint16 // the transport checksum as it is
	ipSum        uint16 // the IPv4 header checksum as it is
	sumMode      sumMode
	ipSumMode    ipSumMode
	opaque       []byte // of the layout's runs; borrowed: writing, from codec.texts; reading, from the context
}

// Kind is the kind of a group: what header its members have.
type Kind uint8

const (
	Verbatim Kind = iota // no header: one packet as it is
	TCP4
	TCP6
	IP4 // UDP and all other protocols over IPv4
	IP6 // and over IPv6
)

// TCP tells whether the header has TCP fields.
func (k Kind) TCP() bool { return k == TCP4 || k == TCP6 }

func (k Kind) v4() bool { return k == TCP4 || k == IP4 }

func (k Kind) v6() bool { return k == TCP6 || k == IP6 }

// longest returns how many bytes a packet has at most: its length field has 16
// bits, which in IPv6 do not count the header (RFC 791 section 3.1, RFC 8200
// section 3).
func (k Kind) longest() int {
	if k.v4() {
		return 1<<16 - 1
	}
	return wire.MaxPacket
}

// KindOf returns the kind of group for a flow's segments. A fragment's key has
// no ports, and so no TCP flow either.
func KindOf(key *parsers.FlowKey) Kind {
	tcp := key.Proto == ip.TCP && key.SrcPort|key.DstPort != 0
	switch {
	case key.Version == 4 && tcp:
		return TCP4
	case key.Version == 4:
		return IP4
	case tcp:
		return TCP6
	}
	return IP6
}

// dissect fills f from the headers of seg and returns its header with the
// fields zeroed, in buf. SACK blocks go to where f.sack points. It reports false
// for headers no layout can describe.
func dissect(seg *parsers.Segment, buf []byte, f *Fields) ([]byte, bool) {
	n := seg.HeaderLen + seg.TransportLen
	if n > maxHeader || seg.HeaderLen < v4Len || len(seg.Packet) < n {
		return nil, false
	}
	buf = append(buf[:0], seg.Packet[:n]...)
	h := buf
	if seg.Key.Version == 4 {
		f.id = binary.BigEndian.Uint16(h[v4ID:])
		f.ipSum = binary.BigEndian.Uint16(h[v4Checksum:])
		clear(h[v4Length:v4Fragment])
		clear(h[v4Checksum:v4Len])
	} else {
		f.label = binary.BigEndian.Uint32(h[v6Label:]) & 0xfffff
		h[1] &= 0xf0
		clear(h[2:v6Next])
		clear(h[v6Src:v6Len])
	}
	t := h[seg.HeaderLen:]
	switch {
	case seg.TransportLen == 0:
	case seg.Key.Proto == ip.TCP:
		f.dissectTCP(t)
	case seg.Key.Proto == ip.UDP:
		f.sum = binary.BigEndian.Uint16(t[udpChecksum:])
		clear(t[:udpLen])
	default:
		return nil, false
	}
	return buf, true
}

// dissectTCP fills f from a TCP header, in which it zeroes the fields.
func (f *Fields) dissectTCP(t []byte) {
	f.seq, f.ack = binary.BigEndian.Uint32(t[tcpSeq:]), binary.BigEndian.Uint32(t[tcpAck:])
	f.window = binary.BigEndian.Uint16(t[tcpWindow:])
	f.sum = binary.BigEndian.Uint16(t[tcpChecksum:])
	clear(t[:tcpOffset])
	clear(t[tcpFlags:tcpUrgent])
	o := optionsOf(t)
	if at := o.tsval; at != 0 {
		f.tsval, f.tsecr = binary.BigEndian.Uint32(t[at:]), binary.BigEndian.Uint32(t[at+4:])
		clear(t[at : at+8])
	}
	if o.sack != 0 {
		f.sack.take(t[o.sack:], o.blocks)
	}
}

// newLayout describes the zeroed header b, which it copies. It reports false
// where b is not one: only a peer can make it so.
func newLayout(b []byte, ipLen int, proto uint8) (*layout, bool) {
	if ipLen < v4Len || ipLen > len(b) || len(b) > maxHeader {
		return nil, false
	}
	l := &layout{bytes: append([]byte(nil), b...), ip: ipLen, proto: proto}
	version := b[0] >> 4
	if version != 4 && (version != 6 || ipLen < v6Len) {
		return nil, false
	}
	key := parsers.FlowKey{Version: version, Proto: proto, SrcPort: uint16(len(b) - ipLen)}
	l.kind = KindOf(&key)
	switch t := b[ipLen:]; {
	case l.kind.TCP():
		if len(t) < tcpLen {
			return nil, false
		}
		o := optionsOf(t)
		if o.tsval != 0 {
			l.tsval = ipLen + o.tsval
		}
		if o.sack != 0 {
			l.sack, l.blocks = ipLen+o.sack, o.blocks
		}
	case len(t) != 0 && (proto != ip.UDP || len(t) != udpLen):
		return nil, false
	}
	l.runs = appendRuns(nil, b, ipLen, l.kind.TCP())
	for _, r := range l.runs {
		l.opaque += int(r.to - r.from)
	}
	return l, true
}

// A payload is what a header says of the bytes behind it.
type payload struct {
	len int
	sum uint16 // checksum of them, not inverted
}

func payloadOf(b []byte) payload { return payload{len(b), checksum.Checksum(b, 0)} }

// appendHeader appends the header that f, a flow's key and the TCP flags give
// to a payload.
func appendHeader(dst []byte, key *parsers.FlowKey, f *Fields, flags uint8, p payload) []byte {
	l := f.layout
	at := len(dst)
	dst = append(dst, l.bytes...)
	h := dst[at:]
	paste(h, f.opaque, l.runs)
	total := len(h) + p.len
	var pseudo uint16
	if l.kind.v4() {
		binary.BigEndian.PutUint16(h[v4Length:], uint16(total))
		binary.BigEndian.PutUint16(h[v4ID:], f.id)
		copy(h[v4Src:v4Dst], key.Src[:4])
		copy(h[v4Dst:v4Len], key.Dst[:4])
		f.resolveIP(^checksum.Checksum(h[:l.ip], 0))
		binary.BigEndian.PutUint16(h[v4Checksum:], f.ipSum)
		pseudo = checksum.Checksum(h[v4Src:v4Len], 0)
	} else {
		binary.BigEndian.PutUint32(h[v6Label:], binary.BigEndian.Uint32(h)|f.label)
		binary.BigEndian.PutUint16(h[v6Length:], uint16(total-v6Len))
		copy(h[v6Src:v6Dst], key.Src[:])
		copy(h[v6Dst:v6Len], key.Dst[:])
		pseudo = checksum.Checksum(h[v6Src:v6Len], 0)
	}
	t := h[l.ip:]
	if len(t) == 0 {
		f.sumMode = sumRight // no transport header, no checksum
		return dst
	}
	binary.BigEndian.PutUint16(t[tcpSrcPort:], key.SrcPort)
	binary.BigEndian.PutUint16(t[tcpDstPort:], key.DstPort)
	pseudo = checksum.Combine(pseudo, checksum.Combine(uint16(l.proto), uint16(total-l.ip)))
	sum := t[udpChecksum:udpLen]
	if l.kind.TCP() {
		f.putTCP(h, t, flags)
		sum = t[tcpChecksum:tcpUrgent]
	} else {
		binary.BigEndian.PutUint16(t[udpLength:], uint16(total-l.ip))
	}
	right := ^checksum.Combine(checksum.Checksum(t, pseudo), p.sum)
	f.resolve(right, pseudo)
	binary.BigEndian.PutUint16(sum, f.sum)
	return dst
}

// putTCP fills in the TCP header t of the packet's header h, but for the ports and
// the checksum.
func (f *Fields) putTCP(h, t []byte, flags uint8) {
	l := f.layout
	binary.BigEndian.PutUint32(t[tcpSeq:], f.seq)
	binary.BigEndian.PutUint32(t[tcpAck:], f.ack)
	t[tcpFlags] = flags
	binary.BigEndian.PutUint16(t[tcpWindow:], f.window)
	if l.tsval != 0 {
		binary.BigEndian.PutUint32(h[l.tsval:], f.tsval)
		binary.BigEndian.PutUint32(h[l.tsval+4:], f.tsecr)
	}
	if l.sack != 0 {
		f.sack.put(h[l.sack:])
	}
}
