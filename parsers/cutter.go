package parsers

import "math"

// An Outcome is what a Framer says of bytes.
type Outcome uint8

const (
	Complete Outcome = iota // what was looked for is there
	NeedMore                // more bytes are needed to tell
	Invalid                 // they are not what should be there
)

// A Framer tells where a protocol's messages begin and end, and what they are: all
// that a Cutter has to know of it. It belongs to one flow and may remember what it
// learns.
type Framer interface {
	// Begin says that a segment is about to be cut, and whether its bytes come out
	// of their turn. After those the framer gets back the value that it had; what
	// it points to it has to leave alone.
	Begin(again bool)
	// Front reads the message that b begins with into whole, as if the message
	// lay in one piece. All of whole but its protocol is zero. Len is to be
	// the message's size, 0 when that is not known yet; where it is no more than
	// b has, the message is there and ends as it should. Event may borrow from b.
	// At NeedMore only Name and Class count, as far as b tells; it is never said of
	// as many bytes as NewCutter was told of. b is borrowed until Front returns.
	Front(b []byte, whole *Span) Outcome
	// Rest goes on with a message whose front was Complete, of which p holds what
	// follows its first at bytes. It returns how many bytes of p are the
	// message's: at NeedMore all of them, at Complete as many as there are to its
	// end, at Invalid those before the fault. It may set whole.Body where Front
	// could not.
	Rest(p []byte, at int, whole *Span) (n int, v Outcome)
	// Resync returns how many bytes of p come before the first message boundary
	// in it, len(p) when there is none. begin says that p begins a segment, and
	// budget is what may be spent on looking, in messages; left is what is left.
	Resync(p []byte, begin bool, budget int) (n, left int)
}

// ByValue is the Begin of a Framer that points to nothing.
type ByValue struct{}

// Begin implements Framer.
func (ByValue) Begin(bool) {}

// Sized is the Rest of protocols whose messages begin with their size.
type Sized struct{}

// Rest implements Framer.
func (Sized) Rest(p []byte, at int, whole *Span) (n int, v Outcome) {
	if left := whole.Len - at; left <= len(p) {
		return left, Complete
	}
	return len(p), NeedMore
}

// A Cutter is the Scanner of a protocol that has a Framer, which F is the type of:
// it cuts a flow into its messages, whatever segments they come in. Beside the
// message that the flow is in, it remembers at most maxFront bytes of one whose
// front was cut.
type Cutter[F any, P framerOf[F]] struct {
	Framer F
	cutter
}

// framerOf says that it is *F which implements Framer.
type framerOf[F any] interface {
	*F
	Framer
}

// NewCutter returns a Cutter at a message boundary, with a Framer that is zero.
// Of a message maxFront bytes at its beginning are enough for its Front, and each Scan
// has budget for Resync.
func NewCutter[F any, P framerOf[F]](id ProtocolID, maxFront, budget uint16) *Cutter[F, P] {
	return &Cutter[F, P]{cutter: cutter{protocol: id, maxFront: maxFront, budget: budget}}
}

// Lost implements Scanner.
func (c *Cutter[F, P]) Lost() { c.state = lost }

// Scan implements Scanner.
func (c *Cutter[F, P]) Scan(dst []Span, payload []byte) []Span {
	fr := P(&c.Framer)
	fr.Begin(false)
	return c.scan(fr, dst, payload)
}

// Rescan implements Scanner.
func (c *Cutter[F, P]) Rescan(dst []Span, payload []byte) []Span {
	was := *c
	c.state, c.again = lost, true
	fr := P(&c.Framer)
	fr.Begin(true)
	dst = c.scan(fr, dst, payload)
	*c = was
	return dst
}

// A cutter is the part of a Cutter that does not depend on the framer's type.
type cutter struct {
	protocol ProtocolID
	state    cutterState
	again    bool // scans bytes out of their turn and keeps none of them
	maxFront uint16
	budget   uint16

	cut *cutMessage // nil until a message is cut
}

// cutterState is where a cutter stands between two calls of Scan.
type cutterState uint8

const (
	boundary cutterState = iota // the next byte begins a message
	inFront                     // inside a message whose front is in carry, not complete
	inRest                      // inside a message whose front is known
	lost                        // anywhere
)

// A cutMessage is a message that straddles segments.
type cutMessage struct {
	whole Span   // without its event
	at    int    // bytes that were seen
	carry []byte // owned: those bytes, while the flow is inFront
}

// scan appends the spans of the next bytes of the flow.
func (c *cutter) scan(fr Framer, dst []Span, p []byte) []Span {
	budget := int(c.budget)
	refused := 0 // len(p) where no message began
	for all := len(p); len(p) > 0; {
		var n int
		switch c.state {
		case boundary:
			if dst, n = c.first(fr, dst, p); n == 0 {
				refused = len(p)
			}
		case inFront:
			dst, n = c.resume(fr, dst, p)
		case inRest:
			dst, n = c.rest(fr, dst, p)
		case lost:
			n, budget = fr.Resync(p, len(p) == all, budget)
			if n == 0 && refused == len(p) {
				n = 1 // the Framer is of two minds: no message began here
			}
			if n > 0 {
				dst = append(dst, OpaqueSpan(n))
			}
			if n < len(p) {
				c.state = boundary
			}
		}
		p = p[n:]
	}
	return dst
}

// first scans a message from its first byte. It takes no byte, and is lost, when
// there is no message.
func (c *cutter) first(fr Framer, dst []Span, p []byte) ([]Span, int) {
	had := len(dst)
	dst = append(dst, Span{})
	sp := &dst[had] // written in place: a Span is large
	sp.Protocol = c.protocol
	n, v := len(p), fr.Front(p, sp)
	switch {
	case v == Complete && sp.Len > 0 && sp.Len <= len(p): // what there is most of
		return dst, sp.Len
	case v == Complete:
		n, v = fr.Rest(p, 0, sp)
		c.state = after[v]
	case v == NeedMore:
		sp.unknown()
		c.state = inFront
	default:
		n, c.state = 0, lost
	}
	switch {
	case n == 0:
		return dst[:had], 0
	case v == Complete:
		sp.Len = n
		sp.Body = min(sp.Body, n)
		return dst, n
	case v == NeedMore && !c.again:
		c.keep(sp, p)
	}
	sp.piece(sp, 0, n)
	return dst, n
}

// after is where the flow is when a message was gone on with.
var after = [...]cutterState{Complete: boundary, NeedMore: inRest, Invalid: lost}

// keep remembers a message that goes on after its first bytes p.
func (c *cutter) keep(whole *Span, p []byte) {
	if c.cut == nil {
		c.cut = new(cutMessage)
	}
	m := c.cut
	m.whole = *whole
	m.whole.Event = nil
	m.at = len(p)
	if c.state == inFront {
		m.carry = append(m.carry[:0], p...)
	}
}

// resume goes on with a message whose front was cut. Its event, which would borrow
// from carry, is not told.
func (c *cutter) resume(fr Framer, dst []Span, p []byte) ([]Span, int) {
	m := c.cut
	m.carry = append(m.carry, p[:min(len(p), int(c.maxFront)-len(m.carry))]...)
	m.whole = Span{Protocol: c.protocol}
	switch fr.Front(m.carry, &m.whole) {
	case Complete:
		m.whole.Event = nil
		return c.rest(fr, dst, p)
	case NeedMore:
		m.whole.unknown()
		return m.take(dst, len(p)), len(p)
	}
	c.state = lost
	return dst, 0
}

// rest goes on with a message whose front is known.
func (c *cutter) rest(fr Framer, dst []Span, p []byte) ([]Span, int) {
	n, v := fr.Rest(p, c.cut.at, &c.cut.whole)
	c.state = after[v]
	if n > 0 {
		dst = c.cut.take(dst, n)
	}
	return dst, n
}

// take appends the span of the next n bytes of the message.
func (m *cutMessage) take(dst []Span, n int) []Span {
	dst = append(dst, Span{})
	m.whole.piece(&dst[len(dst)-1], m.at, n)
	m.at += n
	return dst
}

// cutEvent stands in the key for the event of messages whose front is cut: the
// beginnings of messages are alike, and would be bad templates for whole ones.
var cutEvent = []byte("\n")

// unknown makes sp that of a message of which little more than the name is known.
func (sp *Span) unknown() {
	sp.Key = MessageKey(sp.Protocol, sp.Name, cutEvent, len(cutEvent))
	sp.Event = nil
	sp.Body = math.MaxInt // not here
	sp.NumHoles = 0
}

// piece makes sp the span of n bytes of a whole message from its byte at on, but
// for the event. The two may be the same.
func (whole *Span) piece(sp *Span, at, n int) {
	sp.Len = n
	sp.At = at
	sp.Protocol = whole.Protocol
	sp.Name = whole.Name
	sp.Class = whole.Class
	sp.Encrypted = whole.Encrypted
	sp.Key = whole.Key
	sp.Body = min(max(whole.Body-at, 0), n)
	holes := 0
	for _, h := range whole.Holes[:whole.NumHoles] {
		if h.Off -= at; h.Off >= 0 && h.Off+h.Len <= n {
			sp.Holes[holes] = h
			holes++
		}
	}
	sp.NumHoles = holes
}
