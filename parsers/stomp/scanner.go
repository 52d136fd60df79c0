package stomp

import (
	"bytes"

	"sheaf/parsers"
)

// A Scanner finds STOMP frames in one flow. It remembers, beside the frame it is
// in, at most maxFront bytes of a frame whose headers were cut.
type Scanner = parsers.Cutter[grammar, *grammar]

// NewScanner returns a scanner at a frame boundary.
func NewScanner(id parsers.ProtocolID) *Scanner {
	return parsers.NewCutter[grammar](id, maxFront, resyncBudget)
}

// A grammar tells a parsers.Cutter of STOMP. Where the frame ends that the flow is
// in, it tells in Rest: the line ends behind it are a part of its span.
type grammar struct {
	parsers.ByValue
	size int // of the frame with its NUL, 0 when only the NUL tells
	body int // offset of the body
}

// Front implements parsers.Grammar.
func (g *grammar) Front(b []byte, whole *parsers.Span) parsers.Verdict {
	if n := lineEnds(b); n > 0 {
		whole.Name = uint8(HeartBeat)
		whole.Class = classes[HeartBeat]
		whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, nil, 0)
		whole.Len, whole.Body = n, n
		return parsers.Good
	}
	f := front{span: whole}
	bad := parseFront(b, &f)
	whole.Name = uint8(f.name)
	whole.Class = classes[f.name]
	switch bad {
	case ok:
	case short:
		return parsers.Short
	default:
		return parsers.Wrong
	}
	g.size, g.body = f.size(), f.body
	whole.Body = f.body
	event := f.event.of(b)
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, event, len(event))
	if len(event) > 0 {
		whole.Event = event
	}
	return parsers.Good
}

// Rest implements parsers.Grammar.
func (g *grammar) Rest(p []byte, at int, _ *parsers.Span) (n int, v parsers.Verdict) {
	n = g.size - at
	if g.size == 0 {
		from := min(max(g.body-at, 0), len(p))
		if n = from + bytes.IndexByte(p[from:], 0) + 1; n == from {
			return len(p), parsers.Short
		}
	}
	switch {
	case n > len(p):
		return len(p), parsers.Short
	case p[n-1] != 0:
		return 0, parsers.Wrong
	}
	return n + lineEnds(p[n:]), parsers.Good
}

// Resync implements parsers.Grammar.
func (g *grammar) Resync(p []byte, begin bool, budget int) (n, left int) {
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
