package websocket

import "sheaf/parsers"

// state is where a Scanner stands between two calls of Scan.
type state uint8

const (
	boundary  state = iota // the next byte begins a frame, or the connection
	inUpgrade              // inside an HTTP head
	inHead                 // inside a frame's header, of which carry has the beginning
	inFrame                // inside a frame
	lost                   // anywhere
)

// A Scanner finds WebSocket messages in one flow, and the inner protocol's in
// them. It implements parsers.Scanner. Beside what the inner scanner remembers it
// keeps the beginning of a header, and the unmasked bytes of a segment.
type Scanner struct {
	protocol parsers.ProtocolID
	state    state
	frozen   bool              // leaves the inner scanner alone
	newline  bool              // inUpgrade: a line has just ended
	have     uint8             // bytes in carry
	carry    [maxHead]byte     // the beginning of a header
	of       *parsers.Protocol // the inner protocol; nil without
	inner    parsers.Scanner   // nil without

	// The frame that the flow is in.
	head
	passed int // bytes of it that were seen behind its header
	lead   int // bytes of its header that earlier spans have

	// Messages: of this protocol's own kinds, [1] for what stands between the
	// frames of another; and of the inner protocol.
	kind     Name   // Text or Binary, of the last message that is of data
	deflated bool   // that message is compressed
	at       [2]int // bytes of the message that were seen
	extra    int    // bytes of headers in the inner message
	shape    uint64 // what its keys differ by from those of messages with a header

	plain []byte // owned: the unmasked bytes of the last Scan
	again []byte // owned: those of the last Rescan, whose spans are valid beside
}

// NewScanner returns a scanner at the beginning of a flow, for what inner is
// scanned for; nil for nothing.
func NewScanner(id parsers.ProtocolID, inner *parsers.Protocol) *Scanner {
	s := &Scanner{protocol: id, of: inner, kind: Binary}
	if inner != nil {
		s.inner = inner.New(id)
	}
	return s
}

// Lost implements parsers.Scanner.
func (s *Scanner) Lost() {
	s.state = lost
	if s.inner != nil && !s.frozen {
		s.inner.Lost()
	}
}

// Rescan implements parsers.Scanner.
func (s *Scanner) Rescan(dst []parsers.Span, payload []byte) []parsers.Span {
	c := *s
	c.state = lost
	c.frozen = true
	c.plain = s.again[:0]
	dst = c.scan(dst, payload)
	s.again = c.plain
	return dst
}

// Scan implements parsers.Scanner.
func (s *Scanner) Scan(dst []parsers.Span, payload []byte) []parsers.Span {
	s.plain = s.plain[:0]
	return s.scan(dst, payload)
}

func (s *Scanner) scan(dst []parsers.Span, p []byte) []parsers.Span {
	budget := resyncBudget
	for all := len(p); len(p) > 0; {
		var n int
		switch s.state {
		case boundary, inHead:
			dst, n = s.enter(dst, p)
		case inUpgrade:
			dst, n = s.upgrade(dst, p)
		case inFrame:
			dst, n = s.frame(dst, p, 0)
		case lost:
			n = s.resync(p, len(p) == all, &budget)
			if n > 0 {
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

// enter scans from a frame's first byte, or goes on with its header. It takes no
// byte, and is lost, when there is no frame.
func (s *Scanner) enter(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	if s.state == boundary {
		s.have = 0
		if p[0] == 'G' || p[0] == 'H' { // no frame begins so
			return s.upgrade(dst, p)
		}
	}
	b := p
	if s.have > 0 {
		b = s.carry[:int(s.have)+copy(s.carry[s.have:], p)]
	}
	switch parseHead(b, &s.head) {
	case ok:
		s.open()
		return s.frame(dst, p, s.size-int(s.have))
	case short:
		if s.have == 0 {
			copy(s.carry[:], p)
			s.open()
		}
		s.state = inHead
		s.have += uint8(len(p))
		return s.own(dst, len(p), len(p)), len(p)
	}
	s.Lost()
	return dst, 0
}

// open begins a frame.
func (s *Scanner) open() {
	s.passed, s.lead = 0, int(s.have)
	switch {
	case s.have > 0:
		// the spans of its header have begun it
	case s.name.control():
		s.at[1] = 0
	case s.name != Continuation:
		s.kind, s.at[0] = s.name, 0
		if s.deflated = s.compressed; s.deflated && s.inner != nil && !s.frozen {
			s.inner.Lost()
		}
	}
}

// frame scans what p has of the frame, the first front bytes of which are of its
// header.
func (s *Scanner) frame(dst []parsers.Span, p []byte, front int) ([]parsers.Span, int) {
	n := min(len(p), front+s.len-s.passed)
	before := len(dst)
	if s.inner == nil || s.deflated || s.name.control() || n == front {
		dst = s.own(dst, n, front)
	} else {
		dst = s.inside(dst, p[front:n], front, n < len(p))
	}
	if s.masked {
		s.mask(dst[before:], front)
	}
	s.lead += front
	s.passed += n - front
	s.state = inFrame
	if s.passed == s.len {
		s.state = boundary
	}
	return dst, n
}

// own appends the span of the next n bytes of a message of this protocol itself,
// the first front bytes of which are of a header.
func (s *Scanner) own(dst []parsers.Span, n, front int) []parsers.Span {
	dst = append(dst, parsers.Span{Len: n, Body: front})
	s.describe(&dst[len(dst)-1])
	return dst
}

// describe makes a span one of this protocol itself.
func (s *Scanner) describe(sp *parsers.Span) {
	name, at := s.name, &s.at[0]
	switch name {
	case Text, Binary, Continuation:
		name = s.kind
	default:
		at = &s.at[1]
	}
	sp.At = *at
	sp.Protocol = s.protocol
	sp.Class = name.class()
	sp.Name = uint8(name)
	if s.of != nil {
		sp.Name += uint8(len(s.of.MessageNames))
	}
	sp.Key = parsers.MessageKey(s.protocol, sp.Name, nil, 0)
	*at += sp.Len
}

// headless tells keys of messages that do not begin their frame from those that
// do, and so have its header and its key.
const headless = 0x9e3779b97f4a7c15

// inside appends the spans of a frame's next bytes, as the inner scanner finds
// them. The first has the front bytes of the header that come before. more says
// that another frame follows in the segment.
func (s *Scanner) inside(dst []parsers.Span, data []byte, front int, more bool) []parsers.Span {
	if s.masked {
		from := len(s.plain)
		s.plain = parsers.Mask(s.plain, data, s.key, uint8(s.passed&3))
		data = s.plain[from:]
	}
	before := len(dst)
	if s.frozen {
		dst = s.inner.Rescan(dst, data)
	} else {
		dst = s.inner.Scan(dst, data)
	}
	for i := before; i < len(dst); i++ {
		sp := &dst[i]
		begun := 0 // bytes of the frame's header that are of the message, before this span
		if i == before && s.passed == 0 {
			begun = s.lead
		}
		if sp.At == 0 {
			s.extra, s.shape = 0, 0
			if i > before || s.passed > 0 {
				s.shape = headless
			}
		}
		sp.At += s.extra + begun
		if i == before {
			s.extra += begun + front
			sp.Len += front
			sp.Body += front
			for k := range sp.Holes[:sp.NumHoles] {
				sp.Holes[k].Off += front
			}
		}
		if sp.Protocol == parsers.Opaque {
			s.describe(sp)
			continue
		}
		s.at[0] += sp.Len
		sp.Key ^= s.shape
		if more && len(sp.Event) > 0 {
			from := len(s.plain) // what the inner scanner lent may change in the next frame
			s.plain = append(s.plain, sp.Event...)
			sp.Event = s.plain[from:]
		}
	}
	return dst
}

// mask gives the spans of a frame's next bytes their masks.
func (s *Scanner) mask(spans []parsers.Span, front int) {
	phase := s.passed
	for i := range spans {
		sp := &spans[i]
		h := parsers.Hole{Off: front, Kind: parsers.HoleMask, Counter: maskCounter, Key: s.key}
		switch {
		case front >= 4:
			h.Off, h.Len = front-4, 4
		case front == sp.Len:
			return // of a header alone
		default:
			h.Phase = uint8(phase & 3)
		}
		n := min(sp.NumHoles, parsers.MaxHoles-1)
		copy(sp.Holes[1:], sp.Holes[:n])
		sp.Holes[0], sp.NumHoles = h, n+1
		phase += sp.Len - front
		front = 0
	}
}

// upgrade scans an HTTP head, from its first byte or from where it goes on.
func (s *Scanner) upgrade(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	if s.state == boundary {
		var u upgrade
		if bad := parseUpgrade(p, &u); bad != ok && bad != short {
			s.Lost()
			return dst, 0
		}
		s.head = head{}
		s.state, s.newline, s.at[1] = inUpgrade, false, 0
	}
	n := 0
	for s.state == inUpgrade && n < len(p) {
		switch p[n] {
		case '\n':
			if s.newline {
				s.state = boundary
			}
			s.newline = true
		case '\r':
		default:
			s.newline = false
		}
		n++
	}
	dst = s.own(dst, n, n)
	if s.at[1] > maxUpgrade {
		s.Lost()
	}
	return dst, n
}
