package coap

import "sheaf/parsers"

// A Scanner finds the CoAP messages of one flow, of which every datagram is one.
// It implements parsers.Scanner and remembers nothing but the paths of the last
// datagram.
type Scanner struct {
	protocol parsers.ProtocolID

	// The last event of Scan and of Rescan, where it had to be put together.
	// Owned, at most parsers.MaxKeyEvent bytes each.
	scan, rescan []byte
}

// NewScanner returns a scanner for one flow.
func NewScanner(id parsers.ProtocolID) *Scanner { return &Scanner{protocol: id} }

// Lost implements parsers.Scanner. Datagrams stand alone.
func (s *Scanner) Lost() {}

// Rescan implements parsers.Scanner.
func (s *Scanner) Rescan(dst []parsers.Span, datagram []byte) []parsers.Span {
	return s.span(dst, datagram, &s.rescan)
}

// Scan implements parsers.Scanner.
func (s *Scanner) Scan(dst []parsers.Span, datagram []byte) []parsers.Span {
	return s.span(dst, datagram, &s.scan)
}

func (s *Scanner) span(dst []parsers.Span, b []byte, buf *[]byte) []parsers.Span {
	if len(b) == 0 {
		return dst
	}
	var f front
	if parseFront(b, &f) != ok {
		return append(dst, parsers.OpaqueSpan(len(b)))
	}
	event, n := s.event(b, &f, buf)
	dst = append(dst, parsers.Span{})
	sp := &dst[len(dst)-1] // written in place: a Span is large
	sp.Len = len(b)
	sp.Protocol = s.protocol
	sp.Name = uint8(f.name)
	sp.Class = f.name.class()
	if f.name == Notification {
		// Observers' tokens differ, what they are told does not.
		sp.Key = parsers.MessageKey(s.protocol, sp.Name, nil, 0)
	} else {
		sp.Key = parsers.MessageKey(s.protocol, sp.Name, event, n)
	}
	if n > 0 && len(event) == n {
		sp.Event = event
	}
	sp.Body = f.body
	id := uint8(counterID)
	if f.kind >= Acknowledgement {
		id = counterAck
	}
	sp.AddHole(2, 2, parsers.HoleBig, id, 1)
	if f.token.len > 0 {
		sp.AddHole(f.token.off, f.token.len, parsers.HoleText, counterToken, 0)
	}
	if o := f.observe; o.len > 0 && o.len <= 3 && !f.request() {
		sp.AddHole(o.off, o.len, parsers.HoleBig, counterObserve, 1)
	}
	return dst
}

// event returns the event of a message, as much of it as counts, and its length.
func (s *Scanner) event(b []byte, f *front, buf *[]byte) (event []byte, n int) {
	switch {
	case f.name == Notification:
		return f.token.of(b), f.token.len
	case f.paths == 0 || !f.request():
		return nil, 0
	case f.paths == 1:
		return f.path.of(b), f.pathLen
	}
	event = appendSome((*buf)[:0], f.path.of(b))
	o := options{at: f.path.off + f.path.len, number: optionURIPath}
	for len(event) < parsers.MaxKeyEvent && o.next(b) && o.number == optionURIPath {
		event = appendSome(append(event, '/'), o.value.of(b))
	}
	*buf = event
	return event, f.pathLen
}

// appendSome appends as much of p as counts for a key.
func appendSome(dst, p []byte) []byte {
	return append(dst, p[:min(len(p), parsers.MaxKeyEvent-len(dst))]...)
}
