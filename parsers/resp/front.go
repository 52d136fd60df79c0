package resp

import (
	"bytes"

	"sheaf/parsers"
)

// maxFront is how far parseFront ever looks.
const maxFront = 512

// A front is what the beginning of a message tells. Offsets are from the
// message's first byte.
type front struct {
	name     Name
	inline   bool
	event    int // offset of the event, 0 when there is none
	eventLen int
	body     int // offset of what follows it
	side     side
	hole     hole

	// How far the elements were found to be whole, 0 when not even the first:
	// the walker need not go there again.
	to     int
	left   int // elements still to come there
	proofs int
}

// A hole is a field of the flow: where it is in the message, and what follows. Its
// len is 0 when there is none.
type hole struct {
	off           int
	len           uint8
	kind          parsers.HoleKind
	counter, step uint8
}

// parseFront reads the beginning of a message into f, which is zero. It returns
// short when it
// needs more bytes, of which maxFront are always enough and the whole message is
// too. What it says does not depend on the bytes after those it needs. from is
// the side that is known to send in the flow.
func parseFront(b []byte, from side, f *front) fault {
	if len(b) == 0 {
		return short
	}
	f.side = server
	switch b[0] {
	case '*', '>', '%':
		return f.aggregate(b, from)
	case '+':
		f.body = 1
		const longest = len("+PONG\r\n")
		switch line := b[:min(len(b), longest)]; {
		case bytes.IndexByte(line, '\n') < 0 && len(line) < longest:
			return short
		case bytes.HasPrefix(line, []byte("+OK\r\n")):
			f.name = OK
		case string(line) == "+PONG\r\n":
			f.name = Pong
		default:
			f.name = Status
		}
		return ok
	}
	f.name = plain(b[0])
	if f.name == 0 {
		return f.line(b, from)
	}
	h, n, bad := element(b)
	if bad != ok {
		return bad
	}
	f.body = n
	if h.kind == kindScalar {
		f.body = 1
	}
	return ok
}

// plain returns the kind of a reply by its type.
func plain(c byte) Name {
	switch c {
	case '-', '!':
		return Failed
	case ':':
		return Integer
	case '$':
		return Bulk
	case '_':
		return Null
	case '#':
		return Boolean
	case ',':
		return Double
	case '(':
		return BigNumber
	case '=':
		return Verbatim
	case '~':
		return Set
	case '|':
		return Attribute
	}
	return 0
}

// aggregate reads an array, a push or a map as far as what it is about.
func (f *front) aggregate(b []byte, from side) fault {
	h, at, bad := element(b)
	if bad != ok {
		return bad
	}
	f.body = at
	switch b[0] {
	case '%':
		f.name = Map
		return f.stream(b, at, h.n, false)
	case '>':
		f.name = Push
	default:
		f.name = Array
	}
	if h.n < 1 || h.kind == kindScalar {
		if b[0] == '*' {
			f.side = from // both sides send empty arrays
		}
		return ok
	}
	if at == len(b) {
		return short
	}
	if b[at] == '*' {
		return f.stream(b, at, h.n, true)
	}
	if b[at] != '$' {
		return ok
	}
	word, next, bad := text(b, at)
	if bad != ok {
		return bad
	}
	if word.len > maxCommand {
		f.side = from
		return ok
	}
	if len(b) < word.off+word.len {
		return short
	}
	w := b[word.off : word.off+word.len]
	f.left = h.n
	if bad := f.pass(b, next); bad != ok {
		return bad
	}
	if b[0] == '>' || from != client {
		if name := push(w); name != 0 && h.n == name.elements() {
			return f.push(b, next, name)
		}
	}
	if b[0] == '>' {
		f.event, f.eventLen, f.body = word.off, word.len, next
		return ok
	}
	if from != server {
		if h.n > 1 { // a command's words are all strings
			switch {
			case next >= maxFront:
			case next >= len(b):
				return short
			case b[next] != '$':
				return ok
			}
		}
		if name := command(w); name != 0 {
			f.side = client
			return f.command(b, next, h.n, name, word)
		}
		if from == client && nameable(w) {
			f.side = client
			return f.command(b, next, h.n, COMMAND, word)
		}
	}
	f.side = from // by chance it is a command nobody knows
	return ok
}

// push reads a push from its second element on.
func (f *front) push(b []byte, at int, name Name) fault {
	f.name = name
	if name == Pong {
		f.body = at
		return ok
	}
	event, next, bad := text(b, at)
	if bad == ok && name == PMsg { // the pattern comes first
		if bad = f.pass(b, next); bad != ok {
			return bad
		}
		event, next, bad = text(b, next)
	}
	switch {
	case bad == short:
		return short
	case bad != ok: // UNSUBSCRIBE of nothing has a null
		return ok
	}
	if bad = f.about(b, event); bad != ok || f.event == 0 {
		return bad
	}
	f.body = next
	if name > SMsg {
		return f.count(b, next)
	}
	if bad = f.pass(b, next); bad != ok {
		return bad
	}
	return f.payload(b, next)
}

// payload reads the head of the last element.
func (f *front) payload(b []byte, at int) fault {
	s, next, bad := text(b, at)
	switch bad {
	case ok:
		f.body = s.off
		return f.pass(b, next)
	case short:
		return short
	}
	return ok
}

// pass notes that the element which ends at next is whole, if it is there.
func (f *front) pass(b []byte, next int) fault {
	if len(b) < next || f.left == 0 {
		return ok
	}
	if !ends(b, next) {
		return faultEnd
	}
	f.to = next
	f.left--
	f.proofs++
	return ok
}

// ends says whether a string that ends before next, with its line end, does.
func ends(b []byte, next int) bool { return b[next-2] == '\r' && b[next-1] == '\n' }

// count reads the number of subscriptions that confirms one.
func (f *front) count(b []byte, at int) fault {
	switch {
	case far(at):
		return ok
	case at >= len(b):
		return short
	case b[at] == '$': // it is a command in lower case
		f.name -= Subscribed - SUBSCRIBE
		f.side = client
		return ok
	case b[at] != ':':
		return ok
	}
	_, n, bad := element(b[at:])
	if bad != ok {
		return bad
	}
	digits := b[at+1 : at+n-2]
	if !parsers.IsDecimal(digits) {
		return ok
	}
	step := uint8(1)
	if f.name >= Unsubscribed {
		step = 0
	}
	f.hole = hole{at + 1, uint8(len(digits)), parsers.HoleDecimal, counterSubscriptions, step}
	return ok
}

// command reads a command from its second element on. n is how many it has.
func (f *front) command(b []byte, at, n int, name Name, word span) fault {
	f.name, f.body = name, at
	if name.ofConnection() {
		return ok
	}
	f.event, f.eventLen = word.off, word.len
	switch name {
	case COMMAND:
		return ok
	case XREAD, XREADGROUP:
		return f.read(b, at, n)
	}
	if n < 2 {
		return ok
	}
	event, next, bad := text(b, at)
	if bad == short {
		return short
	}
	if bad != ok {
		return ok
	}
	if bad = f.about(b, event); bad != ok || f.event == 0 {
		return bad
	}
	f.body = next
	if bad = f.pass(b, next); bad != ok {
		return bad
	}
	if (name == PUBLISH || name == SPUBLISH) && n == 3 {
		return f.payload(b, next)
	}
	return ok
}

// read looks for the first stream of an XREAD or XREADGROUP, and the consumer.
func (f *front) read(b []byte, at, n int) fault {
	streams := false
	for i := 1; i < n; i++ {
		arg, next, bad := text(b, at)
		if bad == short {
			return short
		}
		if bad != ok {
			return ok
		}
		if streams {
			if bad = f.about(b, arg); bad == ok && f.event != 0 {
				f.body = next
			}
			return bad
		}
		if next > maxFront {
			return ok
		}
		if len(b) < next {
			return short
		}
		if f.name == XREADGROUP && i == 3 && next-2-(at+1) <= parsers.MaxHoleText {
			// with its length, which may be another for others
			f.hole = hole{at + 1, uint8(next - 2 - (at + 1)), parsers.HoleText, textConsumer, 0}
		}
		if bad = f.pass(b, next); bad != ok {
			return bad
		}
		const keyword = "STREAMS"
		streams = arg.len == len(keyword) && bytes.EqualFold(b[arg.off:arg.off+arg.len], []byte(keyword))
		at = next
	}
	return ok
}

// about makes a string the event, when it is there as far as it counts.
func (f *front) about(b []byte, s span) fault {
	counts := min(s.len, parsers.MaxKeyEvent)
	switch {
	case s.off+counts > maxFront:
		f.event, f.eventLen = 0, 0
		return ok
	case s.off+counts > len(b):
		return short
	}
	f.event, f.eventLen = s.off, s.len
	return ok
}
