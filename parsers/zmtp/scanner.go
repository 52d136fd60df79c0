package zmtp

import (
	"math"

	"sheaf/parsers"
)

// nowhere is the offset of a body that is not known yet.
const nowhere = math.MaxInt

// A Scanner finds ZMTP messages in one flow. It remembers, beside the message it
// is in, at most maxFront bytes of a message whose beginning was cut.
type Scanner = parsers.Cutter[grammar, *grammar]

// NewScanner returns a scanner at a message boundary.
func NewScanner(id parsers.ProtocolID) *Scanner {
	return parsers.NewCutter[grammar](id, maxFront, resyncBudget)
}

// A grammar tells a parsers.Cutter of ZMTP.
type grammar struct {
	parsers.ByValue
	subscriber bool // the sender's socket subscribes

	// The message that the flow is in.
	more bool          // frames follow the one that the flow is in
	end  int           // where that one ends, in the message
	have uint8         // bytes of head, more than none when the flow is in a header
	head [maxHead]byte // the beginning of a later frame's header
}

// Front implements parsers.Grammar.
func (g *grammar) Front(b []byte, whole *parsers.Span) parsers.Verdict {
	var f front
	bad := parseFront(b, g.subscriber, &f)
	switch bad {
	case ok:
	case short:
		if f.name == 0 { // a header alone is a message's, or by its flags a command's
			f.name = Message
			if b[0]&flagCommand != 0 {
				f.name = Command
			}
		}
		whole.Name = uint8(f.name)
		whole.Class = f.name.class()
		return parsers.Short
	default:
		return parsers.Wrong
	}
	whole.Name = uint8(f.name)
	whole.Class = f.name.class()
	g.more, g.end, g.have = f.more, f.size, 0
	whole.Body = f.body
	if f.more {
		whole.Body = nowhere // behind the next frame's header
	} else {
		whole.Len = f.size
	}
	switch f.name {
	case Greeting, Ready, Initiate:
		g.subscriber = f.subscriber
	}
	event := b[f.event : f.event+min(f.eventLen, parsers.MaxKeyEvent)]
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, event, f.eventLen)
	if len(event) == f.eventLen && len(event) > 0 {
		whole.Event = event
	}
	return parsers.Good
}

// Rest implements parsers.Grammar. It goes over the frames of a message.
func (g *grammar) Rest(p []byte, at int, whole *parsers.Span) (n int, v parsers.Verdict) {
	for {
		if g.have == 0 {
			left := g.end - at - n
			switch {
			case left > len(p)-n:
				return len(p), parsers.Short
			case !g.more:
				return n + left, parsers.Good
			}
			n += left
		}
		// A header mostly lies whole before us.
		var h frame
		var bad fault
		took := 0
		if g.have == 0 {
			h, bad = parseFrame(p[n:])
			took = h.head
		} else {
			took = copy(g.head[g.have:], p[n:])
			h, bad = parseFrame(g.head[:int(g.have)+took])
			took = h.head - int(g.have)
		}
		switch bad {
		case ok:
			n += took
			g.have = 0
			g.end = at + n + h.size
			g.more = h.goesOn(false)
			if whole.Body == nowhere && h.flags&flagCommand == 0 {
				whole.Body = at + n
			}
		case short:
			g.have += uint8(copy(g.head[g.have:], p[n:]))
			return len(p), parsers.Short
		default:
			return n, parsers.Wrong
		}
	}
}

// Resync implements parsers.Grammar.
func (g *grammar) Resync(p []byte, begin bool, budget int) (n, left int) {
	n = resync(p, g.subscriber, begin, &budget)
	return n, budget
}
