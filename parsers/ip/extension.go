package ip

import "encoding/binary"

// The extension headers that are gone through, RFC 8200 section 4. Behind others, such
// as ESP (50) and mobility (135), nothing can be read or nothing comes.
const (
	hopByHop       = 0
	routing        = 43
	fragmentHeader = 44
	authentication = 51 // AH, RFC 4302
	destination    = 60
)

// maxExtensions is how many extension headers a packet may have, beside a fragment
// header. RFC 8200 section 4.1 has five other kinds, each at most once and one of
// them twice; with more of them a packet is not worth the time.
const maxExtensions = 8

const (
	lenExtension = 8  // what each has at least, and a fragment header has
	minAH        = 12 // without the value that is checked, RFC 4302 section 2
)

// walk goes on from the IPv6 header through the extension headers.
func (h *Header) walk(b []byte, shallow bool) error {
	for n := 0; ; n++ {
		switch h.Proto {
		case hopByHop:
			if h.Len != MinIPv6 { // section 4.1
				return errHopByHop
			}
		case routing, destination:
		case fragmentHeader:
			if h.Fragment != Whole {
				return errFragment
			}
			n-- // is not counted
		case authentication:
			if shallow {
				return nil
			}
			h.Authenticated = true
		default:
			return nil
		}
		if n == maxExtensions {
			return errMany
		}
		if err := h.step(b[h.Len:]); err != nil {
			return err
		}
		if h.Fragment == Later || shallow && h.Fragment != Whole {
			return nil
		}
	}
}

// step goes over an extension header, which b begins with.
func (h *Header) step(b []byte) error {
	if len(b) < lenExtension {
		return errExtension
	}
	size := lenExtension
	switch h.Proto {
	case fragmentHeader:
		if h.Fragment = fragment(b[3]&1 != 0, binary.BigEndian.Uint16(b[2:])>>3); h.Fragment == Whole {
			h.Fragment = Atomic
		}
	case authentication: // its length counts in words, two of them not
		if size = (int(b[1]) + 2) * 4; size < minAH {
			return errAH
		}
	default:
		size += int(b[1]) * 8
	}
	if len(b) < size {
		return errExtension
	}
	h.Proto = b[0]
	h.Len += size
	return nil
}
