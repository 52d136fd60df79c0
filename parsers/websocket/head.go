package websocket

import "encoding/binary"

const (
	flagFin        = 0x80
	flagCompressed = 0x40 // RSV1, of permessage-deflate (RFC 7692, 6)
	flagReserved   = 0x30
	flagMasked     = 0x80

	// maxHead is the longest header of a frame: two bytes, a length, a key.
	maxHead = 2 + 8 + 4
	// maxFrame bounds the frames that are believed.
	maxFrame = 1 << 30
)

// A head is the header of a frame.
type head struct {
	name       Name
	fin        bool
	compressed bool
	masked     bool
	key        uint32
	size       int // bytes of the header
	len        int // bytes behind it
}

var opcodes = [16]Name{0: Continuation, 1: Text, 2: Binary, 8: Close, 9: Ping, 10: Pong}

// control says whether a name is of a control frame.
func (n Name) control() bool { return n == Close || n == Ping || n == Pong }

// firstByte reads what the first byte of a frame says into h.
func firstByte(b byte, h *head) fault {
	*h = head{name: opcodes[b&15], fin: b&flagFin != 0, compressed: b&flagCompressed != 0}
	switch {
	case h.name == Upgrade:
		return faultOpcode
	case b&flagReserved != 0 || h.compressed && (h.name.control() || h.name == Continuation):
		return faultReserved
	case h.name.control() && !h.fin:
		return faultControl
	}
	return ok
}

// parseHead reads the header of a frame (5.2) into h. It returns short when it
// needs more bytes, of which maxHead are always enough.
func parseHead(b []byte, h *head) fault {
	if len(b) == 0 {
		return short
	}
	if bad := firstByte(b[0], h); bad != ok {
		return bad
	}
	if len(b) < 2 {
		return short
	}
	h.masked = b[1]&flagMasked != 0
	h.size, h.len = 2, int(b[1]&^flagMasked)
	if h.len > 125 && h.name.control() {
		return faultControl
	}
	switch h.len {
	case 126:
		if len(b) < 4 {
			return short
		}
		h.size, h.len = 4, int(binary.BigEndian.Uint16(b[2:]))
		if h.len < 126 {
			return faultLength
		}
	case 127:
		if len(b) < 10 {
			return short
		}
		n := binary.BigEndian.Uint64(b[2:])
		switch {
		case n < 1<<16:
			return faultLength
		case n > maxFrame:
			return faultSize
		}
		h.size, h.len = 10, int(n)
	}
	if h.masked {
		if len(b) < h.size+4 {
			return short
		}
		h.key = binary.BigEndian.Uint32(b[h.size:])
		h.size += 4
	}
	return ok
}
