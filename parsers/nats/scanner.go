package nats

import (
	"bytes"

	"sheaf/parsers"
)

// A Scanner finds NATS messages in one flow. It remembers, beside the message it
// is in, at most maxFront bytes of a message whose control line was cut.
type Scanner = parsers.Cutter[framer, *framer]

// NewScanner returns a scanner at a message boundary.
func NewScanner(id parsers.ProtocolID) *Scanner {
	return parsers.NewCutter[framer](id, maxFront, resyncBudget)
}

// A framer tells a parsers.Cutter of NATS.
type framer struct {
	parsers.ByValue
	side    side // which end of the connection sends
	payload bool // the message ends with a payload, and so with CR LF
}

// Front implements parsers.Framer.
func (fr *framer) Front(b []byte, whole *parsers.Span) parsers.Outcome {
	var f front
	bad := parseFront(b, &f)
	whole.Name = uint8(f.name)
	whole.Class = classes[f.name]
	switch bad {
	case ok:
	case short:
		return parsers.NeedMore
	default:
		return parsers.Invalid
	}
	whole.Len = f.size
	whole.Body = f.body
	fr.payload = f.size > f.line
	if side := sides[f.name]; side != unknown {
		fr.side = side
	}
	if fr.side == keepAlive[f.name] {
		whole.Class = parsers.ClassAck
	}
	event := f.fields(b, whole)
	like := event
	if f.name == SUB {
		like = root(f.field(b, f.subject))
	}
	whole.Key = parsers.MessageKey(whole.Protocol, uint8(f.name), like, len(like))
	if len(event) > 0 {
		whole.Event = event
	}
	return parsers.Complete
}

// Rest implements parsers.Framer.
func (fr *framer) Rest(p []byte, at int, whole *parsers.Span) (n int, v parsers.Outcome) {
	n = whole.Len - at
	if whole.Len == 0 { // it ends with its line
		if n = bytes.IndexByte(p, '\n') + 1; n == 0 {
			return len(p), parsers.NeedMore
		}
	}
	switch {
	case n > len(p):
		return len(p), parsers.NeedMore
	case fr.payload && !ends(p[:n]):
		return 0, parsers.Invalid
	}
	return n, parsers.Complete
}

// Resync implements parsers.Framer.
func (fr *framer) Resync(p []byte, begin bool, budget int) (n, left int) {
	n = resync(p, begin, &budget)
	return n, budget
}

// ends says whether p can be the end of a payload.
func ends(p []byte) bool {
	return p[len(p)-1] == '\n' && (len(p) < 2 || p[len(p)-2] == '\r')
}

// root returns the first token of a subject that has several, else nothing: the
// subscriptions that share it are alike but for a token or two, while those to
// subjects of one token have each another.
func root(subject []byte) []byte { return subject[:max(bytes.IndexByte(subject, '.'), 0)] }
