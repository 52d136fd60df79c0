package tls

// The parts of a record:
//
//	type(1) version(2) length(2) fragment(length)
const (
	headSize = 5

	// HeadLen is the length of what each record begins with, bytes (RFC 8446 section 5.1).
	HeadLen = headSize

	// maxFragment is the largest fragment, bytes (RFC 8446 section 5.2).
	maxFragment = 1<<14 + 256

	major              = 3 // of all versions
	minMinor, maxMinor = 1, 4
)

// A head is what a record begins with.
type head struct {
	name  Name // known from the first byte on
	minor byte
	size  int // bytes of the fragment
}

// parseHead reads a record's head. It returns short when it needs more bytes, of
// which headSize are always enough. What is wrong is seen as soon as it is there.
func parseHead(b []byte) (h head, bad fault) {
	if len(b) == 0 {
		return h, short
	}
	h.name = Name(b[0])
	if h.name < ChangeCipherSpec || h.name > Heartbeat {
		return h, faultType
	}
	if len(b) > 1 && b[1] != major {
		return h, faultVersion
	}
	if len(b) > 2 {
		if h.minor = b[2]; h.minor < minMinor || h.minor > maxMinor {
			return h, faultVersion
		}
	}
	if len(b) > 3 && b[3] > maxFragment>>8 {
		return h, faultLarge
	}
	if len(b) < headSize {
		return h, short
	}
	h.size = int(b[3])<<8 | int(b[4])
	if h.size > maxFragment {
		return h, faultLarge
	}
	return h, h.fits()
}

// fits says whether the fragment can be of its type (RFC 8446 section 5.1: only
// application data may be empty).
func (h *head) fits() fault {
	good := true
	switch h.name {
	case ChangeCipherSpec:
		good = h.size == 1 || h.size >= minEncrypted // encrypted where 1.0 to 1.2 change keys anew
	case Alert:
		good = h.size == 2 || h.size >= minEncrypted
	case Handshake:
		good = h.size >= minHandshake
	case Heartbeat:
		good = h.size >= minHeartbeat
	}
	if !good {
		return faultLength
	}
	return ok
}

const (
	minEncrypted = 17     // a byte and a tag or MAC of 16
	minHandshake = 4      // type(1) length(3), RFC 8446 section 4
	minHeartbeat = 3 + 16 // type(1) length(2) padding(16), RFC 6520 section 4
)

// A Record is one record taken apart.
type Record struct {
	Name    Name
	Version uint16 // as it is written: 0x0303 in TLS 1.2 and 1.3
	Length  int    // bytes of the whole
}

// Fragment returns what the record holds in the bytes of the record, which it
// borrows.
func (r Record) Fragment(record []byte) []byte { return record[headSize:r.Length] }

// Parse takes apart the record that b begins with and returns its size. The error
// is parsers.ErrCut when it goes on after b, else a *parsers.Error.
func Parse(b []byte) (Record, int, error) {
	h, bad := parseHead(b)
	if bad == ok && headSize+h.size > len(b) {
		bad = short
	}
	if bad != ok {
		return Record{}, 0, bad.err()
	}
	r := Record{Name: h.name, Version: major<<8 | uint16(h.minor), Length: headSize + h.size}
	return r, r.Length, nil
}
