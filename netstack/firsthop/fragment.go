package firsthop

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip/checksum"

	"sheaf/parsers/ip"
)

// The flags of an IPv4 header's fragment fields, RFC 791 section 3.1.
const (
	dontFragment  = 0x4000
	moreFragments = 0x2000
	offsetMask    = 0x1fff // in units of 8 bytes
)

// mayFragment reports whether a router may take a packet apart: IPv4 without "don't
// fragment", whose header was read.
func mayFragment(h *ip.Header) bool {
	return h.Version == 4 && h.Len != 0 && binary.BigEndian.Uint16(h.Packet[6:])&dontFragment == 0
}

// fragment calls emit for each fragment of an IPv4 packet that fits an MTU, in order (RFC
// 791 section 3.2). Their bytes are borrowed for the call. A later one has those options
// that say that they are to be copied.
func fragment(h *ip.Header, mtu int, emit func(packet []byte)) {
	fields := binary.BigEndian.Uint16(h.Packet[6:])
	total := min(h.Total(), len(h.Packet))
	data := h.Packet[h.Len:max(total, h.Len)]
	head := append(make([]byte, 0, mtu), h.Packet[:h.Len]...)
	offset := fields & offsetMask
	for len(data) > 0 {
		n := len(data)
		flags := fields &^ offsetMask
		if room := mtu - len(head); n > room {
			n = room &^ 7
			flags |= moreFragments
		}
		binary.BigEndian.PutUint16(head[2:], uint16(len(head)+n))
		binary.BigEndian.PutUint16(head[6:], flags|offset&offsetMask)
		binary.BigEndian.PutUint16(head[10:], 0)
		binary.BigEndian.PutUint16(head[10:], ^checksum.Checksum(head, 0))
		emit(append(head, data[:n]...))
		data = data[n:]
		offset += uint16(n / 8)
		if len(head) == h.Len {
			head = copiedOptions(head)
		}
	}
}

// copiedOptions makes the header of the first fragment that of the others, in place: it
// keeps the options whose type has the bit of those to be copied, and fills up with the
// end of options (RFC 791 section 3.1).
func copiedOptions(head []byte) []byte {
	options := head[ip.MinIPv4:]
	kept := head[:ip.MinIPv4]
	for len(options) > 0 && options[0] != 0 {
		n := 1
		if options[0] != 1 { // not "no operation", which has no length
			if len(options) < 2 || options[1] < 2 || int(options[1]) > len(options) {
				break
			}
			n = int(options[1])
		}
		if options[0]&0x80 != 0 {
			kept = append(kept, options[:n]...)
		}
		options = options[n:]
	}
	for len(kept)%4 != 0 {
		kept = append(kept, 0)
	}
	kept[0] = 0x40 | byte(len(kept)/4)
	return kept
}
