package pcap

import "encoding/binary"

// The most bytes that an IP packet can have: the length of IPv6 does not count its
// header (RFC 8200 section 3). What hosts hand their network card in one piece (BIG
// TCP) and jumbograms (RFC 2675) can be longer, and are skipped with SkipTooLong.
const (
	MaxIPv4 = 65535
	MaxIPv6 = 40 + 65535
)

// trimIP cuts b, which begins with an IP packet, to that packet's length. The
// rest is Ethernet padding or a frame check sequence. cut says that the capture
// holds less of the frame than was on the wire. The result is borrowed from b.
func trimIP(b []byte, cut bool) ([]byte, SkipReason) {
	if len(b) == 0 {
		return nil, skipShort
	}
	var length, header, most int
	switch b[0] >> 4 {
	case 4:
		if header, most = 20, MaxIPv4; len(b) >= header {
			length = int(binary.BigEndian.Uint16(b[2:]))
			if length < max(header, int(b[0]&15)*4) {
				// 0 in a segment yet to be split by the network card (TSO), and
				// anything in a fuzzed packet: there is no telling where it ends.
				length = 0
			}
		}
	case 6:
		if header, most = 40, MaxIPv6; len(b) >= header {
			length = int(binary.BigEndian.Uint16(b[4:]))
			const noNextHeader = 59
			if length != 0 || b[6] == noNextHeader {
				length += header
			} // else a jumbogram (RFC 2675) or, again, a segment yet to be split
		}
	default:
		return nil, SkipBadIP
	}
	switch {
	case len(b) < header && cut:
		return nil, SkipTruncated
	case len(b) < header:
		return nil, SkipBadIP
	case length > len(b):
		return nil, SkipTruncated
	case length != 0:
		return b[:length:length], SkipNone
	case cut:
		return nil, SkipTruncated
	case len(b) > most:
		return nil, SkipTooLong
	}
	return b[:len(b):len(b)], SkipNone
}
