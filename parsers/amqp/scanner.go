package amqp

import "sheaf/parsers"

// state is where a Scanner stands between two calls of Scan.
type state uint8

const (
	boundary state = iota // the next byte begins a frame
	inFront               // inside a frame whose front is in carry, not complete
	inFrame               // inside a frame whose front is known
	lost                  // anywhere
)

// A Scanner finds AMQP messages in one flow. It implements parsers.Scanner and
// remembers, beside the message it is in, at most maxFront bytes of a frame
// whose beginning was cut, and the events of one payload.
type Scanner struct {
	protocol parsers.ProtocolID
	state    state
	frozen   bool // leaves carry and the content alone
	open     bool // the last span ends here, inside the message that goes on

	// The frame that the flow is in.
	follows bool // it belongs to the content
	kind    byte
	channel uint16
	size    int32 // of the whole frame, valid in inFrame
	seen    int32 // bytes of it that were seen

	// The message that it is of.
	name    Name
	key     uint64
	at      int64 // bytes of it that were seen
	carries int64 // bytes of content that a content header announces

	content content
	carry   []byte // owned: the bytes seen of a frame in inFront
	texts   *texts
}

// A content is a message of which more frames are to come.
type content struct {
	active  bool
	header  bool // the content header comes next, else a content body
	name    Name
	channel uint16
	key     uint64
	at      int64 // bytes of the message that were seen
	rest    int64 // bytes of content still to come
}

// texts holds the events of the last payload. All fields are owned.
type texts struct {
	scan, rescan []byte
	last         []byte // the newest event, nil at the beginning of a payload
}

// NewScanner returns a scanner at a frame boundary.
func NewScanner(id parsers.ProtocolID) *Scanner { return &Scanner{protocol: id} }

// Lost implements parsers.Scanner.
func (s *Scanner) Lost() {
	s.state = lost
	s.content.active = false
}

// Rescan implements parsers.Scanner.
func (s *Scanner) Rescan(dst []parsers.Span, payload []byte) []parsers.Span {
	c := *s
	c.frozen = true
	c.Lost()
	if s.texts != nil {
		s.texts.rescan, s.texts.last = s.texts.rescan[:0], nil
	}
	dst = c.scan(dst, payload)
	s.texts = c.texts
	return dst
}

// Scan implements parsers.Scanner.
func (s *Scanner) Scan(dst []parsers.Span, payload []byte) []parsers.Span {
	if s.texts != nil {
		s.texts.scan, s.texts.last = s.texts.scan[:0], nil
	}
	return s.scan(dst, payload)
}

func (s *Scanner) scan(dst []parsers.Span, p []byte) []parsers.Span {
	budget := resyncBudget
	s.open = false
	for all := len(p); len(p) > 0; {
		var n int
		switch s.state {
		case boundary:
			dst, n = s.first(dst, p)
		case inFront:
			dst, n = s.resume(dst, p)
		case inFrame:
			if n = min(len(p), int(s.size-s.seen)); s.ends(p, n) {
				dst = s.take(dst, n, nil, nil)
			} else {
				s.Lost()
				n = 0
			}
		case lost:
			n = resync(p, len(p) == all, &budget)
			if n > 0 {
				dst = append(dst, parsers.OpaqueSpan(n))
				s.open = false
			}
			if n < len(p) {
				s.state = boundary
			}
		}
		p = p[n:]
	}
	return dst
}

// ends says that the next n bytes do not end the frame, or end it as they should.
func (s *Scanner) ends(p []byte, n int) bool {
	return s.seen+int32(n) < s.size || s.kind == typePreamble || p[n-1] == frameEnd
}

// first scans a frame from its first byte. It takes no byte, and is lost, when
// there is no frame.
func (s *Scanner) first(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	var f front
	s.seen = 0
	switch parseFront(p, &f) {
	case ok:
		if n := min(len(p), f.size); f.size > n || f.ends(p) {
			event := s.enter(p, &f)
			return s.take(dst, n, &f, event), n
		}
	case short:
		if !s.frozen {
			s.carry = append(s.carry[:0], p...)
		}
		return s.cut(dst, p, p), len(p)
	}
	s.Lost()
	return dst, 0
}

// resume goes on with a frame whose front was cut.
func (s *Scanner) resume(dst []parsers.Span, p []byte) ([]parsers.Span, int) {
	s.carry = append(s.carry, p[:min(len(p), maxFront-len(s.carry))]...)
	var f front
	switch parseFront(s.carry, &f) {
	case ok:
		event := s.enter(s.carry, &f)
		if n := min(len(p), f.size-int(s.seen)); s.ends(p, n) {
			return s.take(dst, n, &f, event), n
		}
	case short:
		return s.cut(dst, s.carry, p), len(p)
	}
	s.Lost()
	return dst, 0
}

// cut appends the span of bytes p that end before their frame's front does. b
// is what was seen of the frame, with them.
func (s *Scanner) cut(dst []parsers.Span, b, p []byte) []parsers.Span {
	var f front
	parseFront(b, &f) // what little it tells
	s.state = inFront
	if s.kind = b[0]; s.seen == 0 {
		c := &s.content
		if s.follows = c.active && (s.kind == typeHeader) == c.header && (s.kind == typeBody) == !c.header; s.follows {
			s.name, s.key, s.at = c.name, c.key, c.at
		} else {
			s.at, s.open = 0, false
		}
	}
	if !s.follows {
		s.name = [...]Name{typeMethod: Method, typeHeader: ContentHeader, typeBody: ContentBody, typeHeartbeat: Heartbeat, typePreamble: ProtocolHeader}[s.kind]
		if f.name != 0 {
			s.name = f.name
		}
		s.key = parsers.MessageKey(s.protocol, uint8(s.name), nil, 0)
	}
	dst = s.span(dst, len(p), nil)
	s.seen += int32(len(p))
	s.at += int64(len(p))
	return dst
}

// enter makes a frame the one that the flow is in, and returns its event. b
// holds what was seen of it, from its first byte.
func (s *Scanner) enter(b []byte, f *front) (event []byte) {
	s.state = inFrame
	s.kind = f.kind
	s.channel = f.channel
	s.size = int32(f.size)
	s.carries = f.content
	c := &s.content
	s.follows = false
	if c.active && c.channel == f.channel {
		switch {
		case f.kind == typeMethod: // the content will not come
			c.active = false
		case f.kind == typeHeader && c.header, f.kind == typeBody && !c.header:
			s.follows = true
			s.name, s.key, s.at = c.name, c.key, c.at+int64(s.seen)
			return nil
		}
	}
	s.open = false
	s.name, s.at = f.name, int64(s.seen)
	if f.name.HasContent() {
		event = s.event(f.exchange.of(b), f.key.of(b))
	}
	s.key = parsers.MessageKey(s.protocol, uint8(f.name), event, len(event))
	return event
}

// event returns the event of an exchange and a routing key.
func (s *Scanner) event(exchange, key []byte) []byte {
	t := s.texts
	if t == nil {
		t = new(texts)
		s.texts = t
	}
	n := len(exchange)
	if e := t.last; len(e) == n+1+len(key) && string(e[:n]) == string(exchange) && string(e[n+1:]) == string(key) {
		return e // in one payload they are mostly all the same
	}
	buf := &t.scan
	if s.frozen {
		buf = &t.rescan // a Scan may follow while the event is still borrowed
	}
	from := len(*buf)
	*buf = append(append(append(*buf, exchange...), '/'), key...)
	t.last = (*buf)[from:len(*buf):len(*buf)]
	return t.last
}

// take appends the span of the next n bytes of the frame, or adds them to the
// last one. f is the frame's front where it was completed by them.
func (s *Scanner) take(dst []parsers.Span, n int, f *front, event []byte) []parsers.Span {
	dst = s.span(dst, n, event)
	sp := &dst[len(dst)-1]
	base := sp.Len - n
	if at := max(frameHead-int(s.seen), 0); s.kind == typeBody && at < n && sp.Body == sp.Len && s.size > frameRest {
		sp.Body = base + at
	}
	if f != nil && f.channel != 0 {
		from := int(s.seen)
		to := from + n
		hole := func(off, n int, kind parsers.HoleKind, counter, step uint8) {
			if off >= from && off+n <= to {
				sp.AddHole(base+off-from, n, kind, counter, step)
			}
		}
		hole(1, 2, parsers.HoleBig, counterChannel, 0)
		if c := f.consumer; c.len > 0 && c.len <= parsers.MaxHoleText {
			// The size goes with the tag: else tags of other lengths would
			// make other messages.
			hole(3, 4, parsers.HoleBig, counterConsumer, 0)
			hole(c.off, c.len, parsers.HoleText, counterConsumer, 0)
		}
		if f.delivery > 0 {
			counter := uint8(counterDelivery)
			if classes[f.name] == parsers.ClassAck {
				counter = counterAck
			}
			hole(f.delivery, 8, parsers.HoleBig, counter, 1)
		}
	}
	s.seen += int32(n)
	s.at += int64(n)
	s.open = true
	if s.seen == s.size {
		s.finish()
	}
	return dst
}

// span appends a span of n bytes of the message, or makes the last one longer
// where it is of the same message.
func (s *Scanner) span(dst []parsers.Span, n int, event []byte) []parsers.Span {
	if s.open {
		sp := &dst[len(dst)-1]
		if sp.Body == sp.Len {
			sp.Body += n
		}
		sp.Len += n
		return dst
	}
	dst = append(dst, parsers.Span{})
	sp := &dst[len(dst)-1] // written in place: a Span is large
	sp.Len = n
	sp.At = int(s.at)
	sp.Protocol = s.protocol
	sp.Name = uint8(s.name)
	sp.Class = classes[s.name]
	sp.Event = event
	sp.Key = s.key
	sp.Body = n
	return dst
}

// finish ends a frame, and with it the message unless there is content to come.
func (s *Scanner) finish() {
	s.state = boundary
	c := &s.content
	switch s.kind {
	case typeMethod:
		if s.open = s.name.HasContent(); s.open {
			c.active, c.header = true, true
			c.name, c.channel, c.key, c.at, c.rest = s.name, s.channel, s.key, s.at, 0
		}
	case typeHeader:
		s.open = s.carries > 0
		c.active, c.header = s.open, false
		c.name, c.channel, c.key, c.at, c.rest = s.name, s.channel, s.key, s.at, s.carries
	case typeBody:
		if s.open = s.follows; s.open {
			c.at = s.at
			c.rest -= int64(s.size - frameRest)
			c.active = c.rest > 0
			s.open = c.active
		}
	default:
		s.open = false
	}
}
