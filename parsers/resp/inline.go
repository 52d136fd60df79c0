package resp

import "bytes"

// line reads an inline command: words with blanks between them, some in quotes,
// on a line that need not have a carriage return.
func (f *front) line(b []byte, from side) fault {
	f.inline = true
	f.side = client
	if from == server {
		return faultType
	}
	if b[0] == '\r' || b[0] == '\n' {
		f.name, f.side = Empty, from
		switch {
		case b[0] == '\n':
		case len(b) == 1:
			return short
		case b[1] != '\n':
			return faultLine
		}
		return ok
	}
	n := 0
	for n < len(b) && n <= maxCommand && b[n] > ' ' {
		n++
	}
	switch word := b[:n]; {
	case n > maxCommand || !nameable(word):
		return faultCommand
	case n == len(b):
		return short
	case b[n] != ' ' && b[n] != '\t' && b[n] != '\r' && b[n] != '\n':
		return faultCommand
	default:
		if f.name = command(word); f.name == 0 {
			if from != client {
				return faultCommand
			}
			f.name = COMMAND
		}
	}
	f.body = n
	if f.name.ofConnection() {
		return ok
	}
	f.eventLen = n // at offset 0: of the command itself
	switch f.name {
	case COMMAND, XREAD, XREADGROUP:
		return ok
	}
	return f.word(b, n)
}

// word makes the next word of an inline command the event.
func (f *front) word(b []byte, at int) fault {
	b = b[:min(len(b), maxFront)]
	for at < len(b) && (b[at] == ' ' || b[at] == '\t') {
		at++
	}
	end := bytes.IndexAny(b[at:], " \t\r\n")
	if at < len(b) && (b[at] == '"' || b[at] == '\'') {
		quote := b[at]
		at++
		end = bytes.IndexAny(b[at:], string(quote)+"\n")
	}
	switch {
	case end < 0 && len(b) >= maxFront:
		return ok
	case end < 0:
		return short
	case end > 0:
		f.event, f.eventLen, f.body = at, end, at+end
	}
	return ok
}
