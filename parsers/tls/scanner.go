package tls

import "sheaf/parsers"

// state is where a Scanner stands between two calls of Scan.
type state uint8

const (
	boundary state = iota // the next byte begins a record
	inHead                // inside the head of a record
	inside                // inside a fragment
	lost                  // anywhere
)

// usualMinor is the second byte of the version that TLS 1.2 and 1.3 write.
const usualMinor = 3

// A Scanner finds TLS records in one flow. It implements parsers.Scanner and keeps
// no bytes but the head of a record whose beginning was cut.
type Scanner struct {
	protocol parsers.ProtocolID
	state    state
	changed  bool // a ChangeCipherSpec was seen: what comes is encrypted
	minor    byte // of the last record

	// The record that the flow is in.
	name Name
	have uint8
	head [headSize]byte // its first have bytes
	at   int            // bytes of it that were seen
	rest int            // bytes of its fragment still to come
}

// NewScanner returns a scanner at a record boundary.
func NewScanner(id parsers.ProtocolID) *Scanner { return &Scanner{protocol: id, minor: usualMinor} }

// Lost implements parsers.Scanner.
func (s *Scanner) Lost() { s.state = lost }

// Rescan implements parsers.Scanner.
func (s *Scanner) Rescan(dst []parsers.Span, payload []byte) []parsers.Span {
	c := *s
	c.state = lost
	return c.Scan(dst, payload)
}

// Scan implements parsers.Scanner.
func (s *Scanner) Scan(dst []parsers.Span, p []byte) []parsers.Span {
	for len(p) > 0 {
		var n int
		switch s.state {
		case boundary:
			s.changed = s.changed || s.name == ChangeCipherSpec // the record before
			s.at, s.have = 0, 0
			dst, n = s.begin(dst, p)
		case inHead:
			dst, n = s.begin(dst, p)
		case inside:
			n = s.pass(p)
			dst = s.span(dst, n)
		case lost:
			if n = resync(p, s.minor); n > 0 {
				dst = append(dst, parsers.OpaqueSpan(n))
			}
			if n < len(p) {
				s.state = boundary
			}
		}
		p = p[n:]
	}
	return dst
}

// begin scans a record whose first have bytes are in head and whose others begin
// p. It takes no byte, and is lost, when there is no record.
func (s *Scanner) begin(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	took := copy(s.head[s.have:], p)
	h, bad := parseHead(s.head[:int(s.have)+took])
	s.name = h.name
	switch bad {
	case ok:
		s.state = inside
		s.minor = h.minor
		s.rest = h.size
		n := took + s.pass(p[took:])
		return s.span(dst, n), n
	case short:
		s.state = inHead
		s.have += uint8(took)
		return s.span(dst, took), took
	}
	s.state = lost
	s.name = 0
	return dst, 0
}

// pass goes over the record's next bytes as far as they are its, and returns how
// many they are.
func (s *Scanner) pass(p []byte) (n int) {
	n = min(s.rest, len(p))
	if s.rest -= n; s.rest == 0 {
		s.state = boundary
	}
	return n
}

// span appends the span of the next n bytes of the record.
func (s *Scanner) span(dst []parsers.Span, n int) []parsers.Span {
	dst = append(dst, parsers.Span{})
	sp := &dst[len(dst)-1] // written in place: a Span is large
	sp.Len = n
	sp.At = s.at
	sp.Protocol = s.protocol
	sp.Name = uint8(s.name)
	sp.Class = s.name.class()
	sp.Key = parsers.MessageKey(s.protocol, uint8(s.name), nil, 0)
	sp.Body = min(max(headSize-s.at, 0), n)
	sp.Encrypted = s.name == ApplicationData || s.changed
	s.at += n
	return dst
}
