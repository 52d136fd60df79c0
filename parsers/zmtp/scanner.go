package zmtp

import (
	"math"

	"sheaf/parsers"
)

// nowhere is the offset of a body that is not known yet.
const nowhere = math.MaxInt

// A Scanner finds ZMTP messages in one flow. It remembers, beside the message it
// is in, at most maxFront bytes of a message whose beginning was cut.
type Scanner = parsers.Cutter[framer, *framer]

// NewScanner returns a scanner at a message boundary.
func NewScanner(id parsers.ProtocolID) *Scanner {
	return parsers.NewCutter[framer](id, maxFront, resyncBudget)
}

// A framer tells a parsers.Cutter of ZMTP.
type framer struct {
	parsers.ByValue
	subscriber bool // the sender's socket subscribes

	// The message that the flow is in.
	more bool          // frames follow the one that the flow is in
	end  int           // where that one ends, in the message
	have uint8         // bytes of head, more than none when the flow is in a header
	head [maxHead]byte // the beginning of a later frame's header
}

// Front implements parsers.Framer.
func (fr *framer) Front(b []byte, whole *parsers.Span) parsers.Outcome {
	var f front
	bad := parseFront(b, fr.subscriber, &f)
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
		return parsers.NeedMore
	default:
		return parsers.Invalid
	}
	whole.Name = uint8(f.name)
	whole.Class = f.name.class()
	fr.more, fr.end, fr.have = f.more, f.size, 0
	whole.Body = f.body
	if f.more {
		whole.Body = nowhere // behind the next frame's header
	} else {
		whole.Len = f.size
	}
	switch f.name {
	case Greeting, Ready, Initiate:
		fr.subscriber = f.subscriber
	}
	event := b[f.event : f.event+min(f.eventLen, parsers.MaxKeyEvent)]
	whole.Key = parsers.MessageKey(whole.Protocol, whole.Name, event, f.eventLen)
	if len(event) == f.eventLen && len(event) > 0 {
		whole.Event = event
	}
	return parsers.Complete
}

// Rest implements parsers.Framer. It goes over the frames of a message.
func (fr *framer) Rest(p []byte, at int, whole *parsers.Span) (n int, v parsers.Outcome) {
	for {
		if fr.have == 0 {
			left := fr.end - at - n
			switch {
			case left > len(p)-n:
				return len(p), parsers.NeedMore
			case !fr.more:
				return n + left, parsers.Complete
			}
			n += left
		}
		// A header mostly lies whole before us.
		var h frame
		var bad fault
		took := 0
		if fr.have == 0 {
			h, bad = parseFrame(p[n:])
			took = h.head
		} else {
			took = copy(fr.head[fr.have:], p[n:])
			h, bad = parseFrame(fr.head[:int(fr.have)+took])
			took = h.head - int(fr.have)
		}
		switch bad {
		case ok:
			n += took
			fr.have = 0
			fr.end = at + n + h.size
			fr.more = h.goesOn(false)
			if whole.Body == nowhere && h.flags&flagCommand == 0 {
				whole.Body = at + n
			}
		case short:
			fr.have += uint8(copy(fr.head[fr.have:], p[n:]))
			return len(p), parsers.NeedMore
		default:
			return n, parsers.Invalid
		}
	}
}

// Resync implements parsers.Framer.
func (fr *framer) Resync(p []byte, begin bool, budget int) (n, left int) {
	n = resync(p, fr.subscriber, begin, &budget)
	return n, budget
}
