package netstack

import (
	"bytes"
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"sheaf/parsers/ip"
)

const (
	minTCP = 20

	flagPSH = 0x08
	flagACK = 0x10
)

// splittable returns how many of the packets, from the first on, may go to the
// kernel as one super-segment: at least one, and only as many as will come back
// with the same bytes when the kernel cuts the super-segment apart
// (inet_gso_segment, ipv6_gso_segment, tcp_gso_segment). wireguard's tun.Write
// joins more than that, and takes packets out of their order to do so; it is only
// ever given what is splittable.
//
// The kernel repeats the first packet's headers and for each piece
//
//   - adds one to the IPv4 identification;
//   - sets the lengths and both checksums, as right ones: so they must be right
//     before, and the TCP checksum neither 0x0000 nor 0xFFFF, which are equally
//     right;
//   - moves the sequence number on by the segment size: every piece but the last
//     has the same payload length;
//   - clears PSH and FIN on all pieces but the last.
func splittable(packets [][]byte) int {
	first := packets[0]
	at, ok := segmentStart(first)
	if !ok || first[at+13] != flagACK {
		return 1
	}
	options := at + int(first[at+12]>>4)*4
	size := len(first) - options
	total := len(first)
	seq := binary.BigEndian.Uint32(first[at+4:])
	for n, p := range packets[1:] {
		pAt, ok := segmentStart(p)
		if !ok || pAt != at || !sameHeaders(first, p, at, options, n+1) {
			return n + 1
		}
		payload := len(p) - options
		total += payload
		seq += uint32(size)
		if payload > size || total > MaxPacket || binary.BigEndian.Uint32(p[at+4:]) != seq {
			return n + 1
		}
		if payload < size || p[at+13] != flagACK {
			return n + 2
		}
	}
	return len(packets)
}

// sameHeaders reports whether p's headers are what the kernel would make of
// first's for the piece with the given number. Both have passed segmentStart; at
// is where their TCP header begins, options where first's ends.
func sameHeaders(first, p []byte, at, options, number int) bool {
	if len(p) <= options {
		return false
	}
	if first[0]>>4 == 4 {
		id := binary.BigEndian.Uint16(first[4:]) + uint16(number)
		if !bytes.Equal(first[0:2], p[0:2]) || binary.BigEndian.Uint16(p[4:]) != id ||
			!bytes.Equal(first[6:10], p[6:10]) || !bytes.Equal(first[12:20], p[12:20]) {
			return false
		}
	} else if !bytes.Equal(first[0:4], p[0:4]) || !bytes.Equal(first[6:40], p[6:40]) {
		return false
	}
	a, b := first[at:options], p[at:options]
	return bytes.Equal(a[0:4], b[0:4]) && // ports
		bytes.Equal(a[8:13], b[8:13]) && // acknowledgement, data offset, reserved bits
		a[13] == b[13]&^flagPSH &&
		bytes.Equal(a[14:16], b[14:16]) && // window
		bytes.Equal(a[18:], b[18:]) // urgent pointer, options
}

// segmentStart returns where the TCP header begins in a packet that the kernel
// could have cut from a super-segment: no IP options or extension headers, no
// fragment, lengths and IP checksum right, with payload. The TCP checksum is left
// to wireguard, which does not join packets where it is wrong.
func segmentStart(p []byte) (at int, ok bool) {
	switch {
	case len(p) >= ip.MinIPv4+minTCP && p[0] == 0x45:
		at = ip.MinIPv4
		header := binary.BigEndian.Uint16(p[10:])
		if p[9] != ip.TCP || int(binary.BigEndian.Uint16(p[2:])) != len(p) ||
			p[6]&^0x40 != 0 || p[7] != 0 || // anything but "don't fragment"
			header == 0xFFFF || checksum.Checksum(p[:ip.MinIPv4], 0) != 0xFFFF {
			return 0, false
		}
	case len(p) >= ip.MinIPv6+minTCP && p[0]>>4 == 6:
		at = ip.MinIPv6
		if p[6] != ip.TCP || int(binary.BigEndian.Uint16(p[4:])) != len(p)-ip.MinIPv6 {
			return 0, false
		}
	default:
		return 0, false
	}
	header := int(p[at+12]>>4) * 4
	sum := binary.BigEndian.Uint16(p[at+16:])
	return at, header >= minTCP && at+header < len(p) && sum != 0 && sum != 0xFFFF
}
