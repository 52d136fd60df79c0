package capgen

import (
	"encoding/binary"
	"net/netip"
)

// IP protocol numbers.
const (
	protoHopByHop = 0
	protoICMP     = 1
	protoTCP      = 6
	protoUDP      = 17
	protoRouting  = 43
	protoFragment = 44
	protoGRE      = 47
	protoICMPv6   = 58
	protoNoNext   = 59
	protoDestOpts = 60
)

// TCP flags.
const (
	flagFIN = 1 << iota
	flagSYN
	flagRST
	flagPSH
	flagACK
	flagURG
	flagECE
	flagCWR
)

// IPv4 flags with the fragment offset, as they stand in the header.
const (
	dontFragment  = 0x4000
	moreFragments = 0x2000
)

// ipHeader holds the fields of an IPv4 or IPv6 header; which one it is follows
// from the source address.
type ipHeader struct {
	src, dst netip.Addr
	ttl, tos byte

	id      uint16 // IPv4 identification
	frag    uint16 // IPv4 flags and fragment offset
	options []byte // IPv4 options, a multiple of 4 bytes; borrowed

	label      uint32 // IPv6 flow label
	extension  byte   // protocol number of the first extension header, when there are any
	extensions []byte // IPv6 extension headers, chained to one another and to the payload; borrowed
}

// segment holds the headers of a TCP segment.
type segment struct {
	ip               ipHeader
	srcPort, dstPort uint16
	seq, ack         uint32
	flags            uint16 // with the reserved bits, 12 in all
	window, urgent   uint16
	options          []byte // a multiple of 4 bytes; borrowed
}

// appendIP appends the header for n bytes of payload of a protocol.
func appendIP(dst []byte, h *ipHeader, proto byte, n int) []byte {
	start := len(dst)
	if h.src.Is4() {
		size := 20 + len(h.options)
		dst = append(dst, 0x40|byte(size/4), h.tos)
		dst = binary.BigEndian.AppendUint16(dst, uint16(size+n))
		dst = binary.BigEndian.AppendUint16(dst, h.id)
		dst = binary.BigEndian.AppendUint16(dst, h.frag)
		dst = append(dst, h.ttl, proto, 0, 0)
		src, to := h.src.As4(), h.dst.As4()
		dst = append(append(dst, src[:]...), to[:]...)
		dst = append(dst, h.options...)
		binary.BigEndian.PutUint16(dst[start+10:], ^fold(sum(dst[start:], 0)))
		return dst
	}
	next := proto
	if len(h.extensions) > 0 {
		next = h.extension
	}
	dst = binary.BigEndian.AppendUint32(dst, 6<<28|uint32(h.tos)<<20|h.label)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(h.extensions)+n))
	dst = append(dst, next, h.ttl)
	src, to := h.src.As16(), h.dst.As16()
	dst = append(append(dst, src[:]...), to[:]...)
	return append(dst, h.extensions...)
}

// appendSegment appends a whole packet with right checksums.
func appendSegment(dst []byte, s *segment, payload []byte) []byte {
	size := 20 + len(s.options)
	dst = appendIP(dst, &s.ip, protoTCP, size+len(payload))
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, s.srcPort)
	dst = binary.BigEndian.AppendUint16(dst, s.dstPort)
	dst = binary.BigEndian.AppendUint32(dst, s.seq)
	dst = binary.BigEndian.AppendUint32(dst, s.ack)
	dst = binary.BigEndian.AppendUint16(dst, uint16(size/4)<<12|s.flags)
	dst = binary.BigEndian.AppendUint16(dst, s.window)
	dst = append(dst, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, s.urgent)
	dst = append(dst, s.options...)
	dst = append(dst, payload...)
	binary.BigEndian.PutUint16(dst[start+16:], transportChecksum(&s.ip, protoTCP, dst[start:]))
	return dst
}

// appendDatagram appends a whole UDP packet with right checksums.
func appendDatagram(dst []byte, h *ipHeader, srcPort, dstPort uint16, payload []byte) []byte {
	dst = appendIP(dst, h, protoUDP, 8+len(payload))
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, srcPort)
	dst = binary.BigEndian.AppendUint16(dst, dstPort)
	dst = binary.BigEndian.AppendUint16(dst, uint16(8+len(payload)))
	dst = append(dst, 0, 0)
	dst = append(dst, payload...)
	check := transportChecksum(h, protoUDP, dst[start:])
	if check == 0 {
		check = 0xffff // RFC 768: 0 means that there is no checksum
	}
	binary.BigEndian.PutUint16(dst[start+6:], check)
	return dst
}

// transportChecksum is the checksum over the pseudo-header and b, whose own
// checksum field must be zero.
func transportChecksum(h *ipHeader, proto byte, b []byte) uint16 {
	var s uint64
	if h.src.Is4() {
		src, to := h.src.As4(), h.dst.As4()
		s = sum(src[:], sum(to[:], 0))
	} else {
		src, to := h.src.As16(), h.dst.As16()
		s = sum(src[:], sum(to[:], 0))
	}
	return ^fold(sum(b, s+uint64(proto)+uint64(len(b))))
}

// sum adds b as 16-bit words to s (RFC 1071).
func sum(b []byte, s uint64) uint64 {
	for len(b) >= 4 {
		s += uint64(binary.BigEndian.Uint32(b))
		b = b[4:]
	}
	if len(b) >= 2 {
		s += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		s += uint64(b[0]) << 8
	}
	return s
}

func fold(s uint64) uint16 {
	for s>>16 != 0 {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// appendSYNOptions appends a SYN's options in the order of Linux: MSS, SACK
// permitted, timestamps, window scale 10.
func appendSYNOptions(dst []byte, mss uint16, tsVal, tsEcr uint32) []byte {
	dst = append(dst, 2, 4, byte(mss>>8), byte(mss), 4, 2, 8, 10)
	dst = binary.BigEndian.AppendUint32(dst, tsVal)
	dst = binary.BigEndian.AppendUint32(dst, tsEcr)
	return append(dst, 1, 3, 3, 10)
}

// appendTimestamps appends two NOPs and the timestamps option, 12 bytes.
func appendTimestamps(dst []byte, tsVal, tsEcr uint32) []byte {
	dst = append(dst, 1, 1, 8, 10)
	dst = binary.BigEndian.AppendUint32(dst, tsVal)
	return binary.BigEndian.AppendUint32(dst, tsEcr)
}
