package pcap

import "encoding/binary"

// trimIP cuts b, which begins with an IP packet, to that packet's length. The
// rest is Ethernet padding or a frame check sequence. cut says that the capture
// holds less of the frame than was on the wire. The result is borrowed from b.
func trimIP(b []byte, cut bool) ([]byte, SkipReason) {
	if len(b) == 0 {
		return nil, skipShort
	}
	var length, header int
	switch b[0] >> 4 {
	case 4:
		if header = 20; len(b) >= header {
			length = int(binary.BigEndian.Uint16(b[2:]))
			if length < max(header, int(b[0]&15)*4) {
				// 0 in a segment yet to be split by the network card (TSO), and
				// anything in a fuzzed packet: there is no telling where it ends.
				length = 0
			}
		}
	case 6:
		if header = 40; len(b) >= header {
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
	}
	return b[:len(b):len(b)], SkipNone
}
