package nats

import (
	"bytes"

	"sheaf/parsers"
)

const (
	// maxFront is more than parseFront ever asks for: a control line with fields.
	maxFront = 1024
	// maxPayload is the largest payload that a server can be told to allow.
	maxPayload = 64 << 20
	// maxArgs is how many fields an operation has at most.
	maxArgs = 5
)

// An arg is a field of a control line: where it is in the message.
type arg struct{ off, len int32 }

func (a arg) of(b []byte) []byte { return b[a.off : a.off+a.len] }

// A front is what the control line of a message tells. Offsets are from the
// message's first byte.
type front struct {
	name    Name
	size    int // bytes of the whole message, 0 when it ends with a line whose end is not there
	line    int // bytes of the control line with its end, 0 when that is not there
	body    int // offset of what follows the control line and headers
	headers int // bytes of the headers

	args                [1 + maxArgs]arg // fields; the first is none
	subject, sid, reply uint8            // which of args
}

// field returns one of args.
func (f *front) field(b []byte, i uint8) []byte { return f.args[i].of(b) }

// parseFront reads the control line of a message into f, which is zero. It returns
// short when it needs more bytes, of which maxFront are always enough and the
// whole message is too. What it says does not depend on the bytes after those it
// needs, but for this: where headers and the end of a payload are there, they are
// looked at.
func parseFront(b []byte, f *front) fault {
	name, n, bad := verb(b)
	f.name, f.body = name, n
	if bad != ok {
		return bad
	}
	switch name {
	case PING, PONG, OK:
		return f.bare(b, n)
	case INFO, CONNECT, ERR:
		return f.open(b, n)
	}
	line := b[:min(len(b), maxFront)]
	count, end, bad := f.split(line, n)
	if bad != ok {
		end = bytes.IndexByte(line, '\n')
	}
	if end < 0 {
		switch {
		case !printable(line[n:]):
			return faultLine
		case len(b) >= maxFront:
			return faultLong
		}
		return short
	}
	f.line = end + 1
	f.size = f.line
	f.body = f.line
	if bad != ok {
		return bad
	}
	return f.operation(b, count)
}

// split finds the fields of a control line, which follow its first n bytes, and the
// line feed that ends it, if it is there.
func (f *front) split(line []byte, n int) (count uint8, end int, bad fault) {
	for at := n; at < len(line); {
		switch c := line[at]; {
		case c > ' ':
			if at == n {
				return 0, 0, faultVerb
			}
			if count == maxArgs {
				return 0, 0, faultFields
			}
			count++
			a := &f.args[count]
			from := at
			at = parsers.LowEnd(line, at, ' '+1)
			a.off, a.len = int32(from), int32(at-from)
		case blank(c):
			at++
		case c == '\n':
			return count, at, ok
		case c == '\r' && at+1 < len(line) && line[at+1] == '\n':
			return count, at + 1, ok
		case at == n:
			return 0, 0, faultVerb
		default:
			return 0, 0, faultLine
		}
	}
	return 0, 0, short
}

// operation gives the fields of a control line their meaning.
func (f *front) operation(b []byte, count uint8) fault {
	least, most := uint8(1), uint8(2) // UNSUB sid [max]
	switch f.name {
	case PUB, SUB: // subject [reply] bytes; subject [queue] sid
		least, most = 2, 3
	case HPUB, MSG: // subject [reply] header total; subject sid [reply] bytes
		least, most = 3, 4
	case HMSG: // subject sid [reply] header total
		least, most = 4, 5
	}
	if count < least || count > most {
		return faultFields
	}
	switch f.name {
	case UNSUB:
		f.sid = 1
		if count == 2 {
			if _, good := parsers.Decimal(f.field(b, 2)); !good {
				return faultNumber
			}
		}
		return ok
	case SUB:
		f.subject = 1
		f.sid = count
		return ok
	}

	headers := f.name == HPUB || f.name == HMSG
	f.subject = 1
	if f.name == MSG || f.name == HMSG {
		f.sid = 2
	}
	if count == most {
		f.reply = least
		if headers {
			f.reply--
		}
	}
	total, good := parsers.Decimal(f.field(b, count))
	if !good {
		return faultNumber
	}
	if total > maxPayload {
		return faultSize
	}
	if headers {
		if f.headers, good = parsers.Decimal(f.field(b, count-1)); !good {
			return faultNumber
		}
		if f.headers > total {
			return faultHeaders
		}
		const magic = "NATS/"
		if have := b[f.line:min(len(b), f.line+min(f.headers, len(magic)))]; string(have) != magic[:len(have)] {
			return faultHeaders
		}
	}
	f.size = f.line + total + 2
	f.body = f.line + f.headers
	if len(b) >= f.size && (b[f.size-2] != '\r' || b[f.size-1] != '\n') {
		return faultEnd
	}
	return ok
}

// bare reads an operation that has no fields.
func (f *front) bare(b []byte, n int) fault {
	const most = 16 // blanks that anybody would send
	for i := n; i < min(len(b), n+most); i++ {
		switch {
		case b[i] == '\n':
			f.size, f.line, f.body = i+1, i+1, i+1
			return ok
		case b[i] != '\r' && !blank(b[i]):
			return faultVerb
		}
	}
	if len(b) >= n+most {
		return faultLine
	}
	return short
}

// open reads an operation whose line may have any length, so that its end need
// not be there.
func (f *front) open(b []byte, n int) fault {
	at := n
	for at < len(b) && at < maxFront && blank(b[at]) {
		at++
	}
	switch {
	case at == len(b) && at < maxFront:
		return short
	case at == n || at == maxFront:
		return faultVerb
	case b[at] < ' ' || f.name != ERR && b[at] != '{':
		return faultLine
	}
	f.body = at
	if end := bytes.IndexByte(b[at:], '\n'); end >= 0 {
		f.size = at + end + 1
		f.line = f.size
	}
	return ok
}

// verb returns the operation that b begins with and its length. Operations may
// be written in any case.
func verb(b []byte) (Name, int, fault) {
	if len(b) == 0 {
		return 0, 0, short
	}
	if len(b) >= 4 { // as nearly all are written
		switch string(b[:4]) {
		case "MSG ":
			return MSG, 3, ok
		case "PUB ":
			return PUB, 3, ok
		case "HMSG":
			return HMSG, 4, ok
		case "HPUB":
			return HPUB, 4, ok
		case "PING":
			return PING, 4, ok
		case "PONG":
			return PONG, 4, ok
		}
	}
	var name Name
	second := byte(0)
	if len(b) > 1 {
		second = b[1] | 0x20
	}
	switch b[0] | 0x20 {
	case 'm':
		name = MSG
	case 'p':
		switch second {
		case 'u':
			name = PUB
		case 'i':
			name = PING
		case 'o':
			name = PONG
		}
	case 'h':
		switch second {
		case 'm':
			name = HMSG
		case 'p':
			name = HPUB
		}
	case 's':
		name = SUB
	case 'u':
		name = UNSUB
	case 'i':
		name = INFO
	case 'c':
		name = CONNECT
	case '+' | 0x20:
		name = OK
	case '-' | 0x20:
		name = ERR
	default:
		return 0, 0, faultVerb
	}
	if name == 0 {
		if len(b) == 1 {
			return 0, 0, short
		}
		return 0, 0, faultVerb
	}
	word := names[name]
	for i := range min(len(word), len(b)) {
		c := b[i]
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return 0, 0, faultVerb
		}
	}
	if len(b) < len(word) {
		return name, 0, short
	}
	return name, len(word), ok
}

func blank(c byte) bool { return c == ' ' || c == '\t' }

// printable says whether b can be a part of a control line, with half of its end.
func printable(b []byte) bool {
	for i, c := range b {
		if c < ' ' && c != '\t' && !(c == '\r' && i == len(b)-1) {
			return false
		}
	}
	return true
}
