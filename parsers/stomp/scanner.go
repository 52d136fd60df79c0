package stomp

import (
	"bytes"

	"sheaf/parsers"
)

// A Scanner finds STOMP frames in one flow. It remembers, beside the frame it is
// in, at most maxFront bytes of a frame whose headers were cut.
type Scanner = parsers.Cutter[framer, *framer]

// NewScanner returns a scanner at a frame boundary.
func NewScanner(id parsers.ProtocolID) *Scanner {
	return parsers.NewCutter[framer](id, maxFront, resyncBudget)
}

// A framer tells a parsers.Cutter of STOMP. Where the frame ends that the flow is
// in, it tells in Rest: the line ends behind it are a part of its span.
type framer struct {
	parsers.ByValue
	size int // of the frame with its NUL, 0 when only the NUL tells
	body int // offset of the body
}

// Front implements parsers.Framer.
func (fr *framer) Front(b []byte, whole *parsers.Span) parsers.Outcome {
	if n := lineEnds(b); n > 0 {
		whole.Name = uint8(HeartBeat)
		whole.Class = classes[HeartBeat]
		whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, nil, 0)
		whole.Len, whole.Body = n, n
		return parsers.Complete
	}
	f := front{span: whole}
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
	fr.size, fr.body = f.size(), f.body
	whole.Body = f.body
	event := f.event.of(b)
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, event, len(event))
	if len(event) > 0 {
		whole.Event = event
	}
	return parsers.Complete
}

// Rest implements parsers.Framer.
func (fr *framer) Rest(p []byte, at int, _ *parsers.Span) (n int, v parsers.Outcome) {
	n = fr.size - at
	if fr.size == 0 {
		from := min(max(fr.body-at, 0), len(p))
		if n = from + bytes.IndexByte(p[from:], 0) + 1; n == from {
			return len(p), parsers.NeedMore
		}
	}
	switch {
	case n > len(p):
		return len(p), parsers.NeedMore
	case p[n-1] != 0:
		return 0, parsers.Invalid
	}
	return n + lineEnds(p[n:]), parsers.Complete
}

// Resync implements parsers.Framer.
func (fr *framer) Resync(p []byte, begin bool, budget int) (n, left int) {
	n = resync(p, begin, &budget)
	return n, budget
}

// lineEnds returns how many line ends p begins with, in bytes.
func lineEnds(p []byte) (n int) {
	for n < len(p) && (p[n] == '\n' || p[n] == '\r') {
		n++
	}
	return n
}
