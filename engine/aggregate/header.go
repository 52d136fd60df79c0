package aggregate

import (
	"bytes"
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"sheaf/engine/wire"
	"sheaf/parsers"
)

const (
	protoTCP = 6
	protoUDP = 17

	flagFIN = 1
	flagSYN = 2
	flagRST = 4
	flagACK = 16

	// maxHeader bounds the headers that a layout describes: the longest IPv4
	// and TCP headers are 60 bytes each; what IPv6 extension headers add past
	// it rides verbatim.
	maxHeader = 240
)

// A layout is what the headers of a flow's packets have in common and share
// with other flows: the whole header with every field zeroed that has a column
// of its own or belongs to the flow (addresses, ports, identification, flow
// label, lengths, numbers, flags, window, checksums, timestamps), and every byte
// that means nothing here (opaque.go).
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
	ip     int    // length of the IP header with extension headers
	stamp  int    // offset of the TCP timestamp values, 0 without
	sack   int    // offset of the blocks of the SACK option, 0 without
	blocks int    // of the SACK option
	kind   kind   // of the groups its segments can be in
	proto  uint8  // IP protocol of the transport header
	place  uint8  // of an entry: in the table; else a hint at where its entry may be
	used   uint32 // of an entry: number of the last group with a segment of it
	runs   []run
	opaque int // bytes of the runs together
}

func (l *layout) same(o *layout) bool {
	return l.ip == o.ip && l.proto == o.proto && bytes.Equal(l.bytes, o.bytes)
}

// fields are the header fields that have columns.
type fields struct {
	layout       *layout
	seq, ack     uint32
	tsval, tsecr uint32
	sack         *sack  // blocks of a SACK option, nil without; borrowed from memory.sacks
	label        uint32 // IPv6 flow label
	id           uint16 // IPv4 identification
	window       uint16
	sum          uint16 // the transport checksum as it is
	ipSum        uint16 // the IPv4 header checksum as it is
	sumMode      sumMode
	ipSumMode    ipSumMode
	opaque       []byte // of the layout's runs; borrowed: writing, from texts; reading, from the flow
}

// sumMode says what the transport checksum is, so that it can mostly be left out.
type sumMode uint8

const (
	sumRight   sumMode = iota // what the bytes compute to
	sumOther                  // right too, with the other of the two ways to write zero
	sumPartial                // the pseudo-header only: the sender left the rest to its network card
	sumZero                   // zero: none (UDP)
	sumRaw                    // anything else
	numSumModes
)

// ipSumMode says what the IPv4 header checksum is: right, but for what a host
// sends to itself or leaves to its network card, which is mostly one value, 0.
type ipSumMode uint8

const (
	ipSumRight ipSumMode = iota // what the header computes to
	ipSumSame                   // not right, and as the flow's last that was not
	ipSumRaw                    // anything else
	numIPSumModes
)

// kind is the kind of a group: what header its members have.
type kind uint8

const (
	kindRaw kind = iota // no header: one packet as it is
	kindTCP4
	kindTCP6
	kindIP4 // UDP and all other protocols
	kindIP6
)

func (k kind) tcp() bool { return k == kindTCP4 || k == kindTCP6 }
func (k kind) v4() bool  { return k == kindTCP4 || k == kindIP4 }

// longest returns how many bytes a packet has at most: its length field has 16
// bits, which in IPv6 do not count the header (RFC 791 section 3.1, RFC 8200
// section 3).
func (k kind) longest() int {
	if k.v4() {
		return 1<<16 - 1
	}
	return wire.MaxPacket
}

// kindOf returns the kind of group for a flow's segments. A fragment's key has
// no ports, and so no TCP flow either.
func kindOf(key *parsers.FlowKey) kind {
	tcp := key.Proto == protoTCP && key.SrcPort|key.DstPort != 0
	switch {
	case key.Version == 4 && tcp:
		return kindTCP4
	case key.Version == 4:
		return kindIP4
	case tcp:
		return kindTCP6
	}
	return kindIP6
}

// dissect fills f from the headers of seg and returns its header with the
// fields zeroed, in buf. SACK blocks go to where f.sack points. It reports false
// for headers no layout can describe.
func dissect(seg *parsers.Segment, buf []byte, f *fields) ([]byte, bool) {
	n := seg.HeaderLen + seg.TransportLen
	if n > maxHeader || seg.HeaderLen < 20 || len(seg.Packet) < n {
		return nil, false
	}
	buf = append(buf[:0], seg.Packet[:n]...)
	h := buf
	if seg.Key.Version == 4 {
		f.id = binary.BigEndian.Uint16(h[4:])
		f.ipSum = binary.BigEndian.Uint16(h[10:])
		clear(h[2:6])
		clear(h[10:20])
	} else {
		f.label = binary.BigEndian.Uint32(h) & 0xfffff
		h[1] &= 0xf0
		clear(h[2:6])
		clear(h[8:40])
	}
	t := h[seg.HeaderLen:]
	switch {
	case seg.TransportLen == 0:
	case seg.Key.Proto == protoTCP:
		f.seq, f.ack = binary.BigEndian.Uint32(t[4:]), binary.BigEndian.Uint32(t[8:])
		f.window = binary.BigEndian.Uint16(t[14:])
		f.sum = binary.BigEndian.Uint16(t[16:])
		clear(t[:12])
		clear(t[13:18])
		o := optionsOf(t)
		if at := o.stamp; at != 0 {
			f.tsval, f.tsecr = binary.BigEndian.Uint32(t[at:]), binary.BigEndian.Uint32(t[at+4:])
			clear(t[at : at+8])
		}
		if o.sack != 0 {
			f.sack.take(t[o.sack:], o.blocks)
		}
	case seg.Key.Proto == protoUDP:
		f.sum = binary.BigEndian.Uint16(t[6:])
		clear(t[:8])
	default:
		return nil, false
	}
	return buf, true
}

// options are where the values begin of those options of a TCP header that change
// from segment to segment; 0 where there is none.
type options struct {
	stamp  int // of the first timestamp option (RFC 7323 section 3.2)
	sack   int // of the first SACK option with blocks (RFC 2018 section 3)
	blocks int // of that
}

func optionsOf(tcp []byte) (o options) {
	for i := 20; i+1 < len(tcp); {
		switch tcp[i] {
		case optionEnd:
			return o
		case optionNop:
			i++
			continue
		}
		n := int(tcp[i+1])
		if n < 2 || i+n > len(tcp) {
			return o
		}
		switch {
		case tcp[i] == optionStamp && n == 10 && o.stamp == 0:
			o.stamp = i + 2
		case tcp[i] == optionSACK && sackBlocks(n) > 0 && o.sack == 0:
			o.sack, o.blocks = i+2, sackBlocks(n)
		}
		i += n
	}
	return o
}

// newLayout describes the zeroed header b, which it copies. It reports false
// where b is not one: only a peer can make that happen.
func newLayout(b []byte, ip int, proto uint8) (*layout, bool) {
	if ip < 20 || ip > len(b) || len(b) > maxHeader {
		return nil, false
	}
	l := &layout{bytes: append([]byte(nil), b...), ip: ip, proto: proto}
	version := b[0] >> 4
	if version != 4 && (version != 6 || ip < 40) {
		return nil, false
	}
	key := parsers.FlowKey{Version: version, Proto: proto, SrcPort: uint16(len(b) - ip)}
	l.kind = kindOf(&key)
	switch t := b[ip:]; {
	case l.kind.tcp():
		if len(t) < 20 {
			return nil, false
		}
		o := optionsOf(t)
		if o.stamp != 0 {
			l.stamp = ip + o.stamp
		}
		if o.sack != 0 {
			l.sack, l.blocks = ip+o.sack, o.blocks
		}
	case len(t) != 0 && (proto != protoUDP || len(t) != 8):
		return nil, false
	}
	l.runs = appendRuns(nil, b, ip, l.kind.tcp())
	for _, r := range l.runs {
		l.opaque += int(r.to - r.from)
	}
	return l, true
}

// appendHeader appends the header that f, a flow's key and the TCP flags give
// to a payload of n bytes whose checksum (not inverted) is sum.
func appendHeader(dst []byte, key *parsers.FlowKey, f *fields, flags uint8, n int, sum uint16) []byte {
	l := f.layout
	at := len(dst)
	dst = append(dst, l.bytes...)
	h := dst[at:]
	paste(h, f.opaque, l.runs)
	total := len(h) + n
	var pseudo uint16
	if l.kind.v4() {
		binary.BigEndian.PutUint16(h[2:], uint16(total))
		binary.BigEndian.PutUint16(h[4:], f.id)
		copy(h[12:16], key.Src[:4])
		copy(h[16:20], key.Dst[:4])
		f.resolveIP(^checksum.Checksum(h[:l.ip], 0))
		binary.BigEndian.PutUint16(h[10:], f.ipSum)
		pseudo = checksum.Checksum(h[12:20], 0)
	} else {
		binary.BigEndian.PutUint32(h, binary.BigEndian.Uint32(h)|f.label)
		binary.BigEndian.PutUint16(h[4:], uint16(total-40))
		copy(h[8:24], key.Src[:])
		copy(h[24:40], key.Dst[:])
		pseudo = checksum.Checksum(h[8:40], 0)
	}
	t := h[l.ip:]
	if len(t) == 0 {
		f.sumMode = sumRight // no transport header, no checksum
		return dst
	}
	binary.BigEndian.PutUint16(t, key.SrcPort)
	binary.BigEndian.PutUint16(t[2:], key.DstPort)
	pseudo = checksum.Combine(pseudo, checksum.Combine(uint16(l.proto), uint16(total-l.ip)))
	place := t[6:8]
	if l.kind.tcp() {
		binary.BigEndian.PutUint32(t[4:], f.seq)
		binary.BigEndian.PutUint32(t[8:], f.ack)
		t[13] = flags
		binary.BigEndian.PutUint16(t[14:], f.window)
		if l.stamp != 0 {
			binary.BigEndian.PutUint32(h[l.stamp:], f.tsval)
			binary.BigEndian.PutUint32(h[l.stamp+4:], f.tsecr)
		}
		if l.sack != 0 {
			f.sack.put(h[l.sack:])
		}
		place = t[16:18]
	} else {
		binary.BigEndian.PutUint16(t[4:], uint16(total-l.ip))
	}
	right := ^checksum.Combine(checksum.Checksum(t, pseudo), sum)
	f.resolve(right, pseudo)
	binary.BigEndian.PutUint16(place, f.sum)
	return dst
}

// unresolved marks fields whose checksum mode is still to be found.
const unresolved sumMode = 0xff

// resolveIP finds the header checksum from its mode or, while encoding, whether
// it is right; if not, which mode it has is found when it is coded.
func (f *fields) resolveIP(right uint16) {
	switch {
	case f.sumMode != unresolved:
		if f.ipSumMode == ipSumRight {
			f.ipSum = right
		}
	case f.ipSum == right:
		f.ipSumMode = ipSumRight
	default:
		f.ipSumMode = ipSumRaw
	}
}

// resolve finds the checksum from its mode or, while encoding, the mode from
// the checksum.
func (f *fields) resolve(right, partial uint16) {
	other := right
	if right == 0 || right == 0xffff {
		other = ^right
	}
	switch f.sumMode {
	case unresolved:
		switch f.sum {
		case right:
			f.sumMode = sumRight
		case other:
			f.sumMode = sumOther
		case partial:
			f.sumMode = sumPartial
		case 0:
			f.sumMode = sumZero
		default:
			f.sumMode = sumRaw
		}
	case sumRight:
		f.sum = right
	case sumOther:
		f.sum = other
	case sumPartial:
		f.sum = partial
	case sumZero:
		f.sum = 0
	}
}
