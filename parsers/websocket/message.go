package websocket

import "sheaf/parsers"

// A Message is one frame, or the HTTP head before the first, taken apart.
type Message struct {
	Name       Name
	Length     int    // bytes of the whole
	Fin        bool   // the last frame of its message
	Compressed bool   // RSV1
	Masked     bool   // by Key
	Key        uint32 // the first byte is the most significant
	Body       int    // offset of the payload; Length for an HTTP head
}

// Parse takes apart the frame or HTTP head that b begins with and returns its
// size. The error is parsers.ErrCut when it goes on after b, else a *parsers.Error.
func Parse(b []byte) (Message, int, error) {
	if len(b) > 0 && (b[0] == 'G' || b[0] == 'H') {
		var u upgrade
		if bad := parseUpgrade(b, &u); bad != ok {
			return Message{}, 0, bad.err()
		}
		return Message{Name: Upgrade, Length: u.size, Body: u.size}, u.size, nil
	}
	var h head
	if bad := parseHead(b, &h); bad != ok {
		return Message{}, 0, bad.err()
	}
	n := h.size + h.len
	if n > len(b) {
		return Message{}, 0, parsers.ErrCut
	}
	return Message{
		Name: h.name, Length: n, Fin: h.fin, Compressed: h.compressed,
		Masked: h.masked, Key: h.key, Body: h.size,
	}, n, nil
}

// AppendPayload appends the payload of the frame, whose bytes are given, without
// its mask.
func (m *Message) AppendPayload(dst, frame []byte) []byte {
	if !m.Masked {
		return append(dst, frame[m.Body:m.Length]...)
	}
	return parsers.Mask(dst, frame[m.Body:m.Length], m.Key, 0)
}
