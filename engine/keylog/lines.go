package keylog

import "bytes"

// maxLine is the longest line, in bytes without its end. A secret's has 193 at most; it
// is the labels to come that want room, and the configurations of encrypted
// ClientHellos.
const maxLine = 4096

// Lines cuts text into lines, however it is split. They end with CR, LF or both (RFC 9850
// section 2), and also where a hole of the file begins, which reads as zeros.
type lines struct {
	rest []byte // the beginning of a line whose end has not come; owned, cleared once it has
	over bool   // that line is too long, and nothing of it is kept
}

// add calls line for each whole line in p and before; ok tells whether it is of a length
// that lines have, else b is empty. What add gets and gives is borrowed until it returns.
func (l *lines) add(p []byte, line func(b []byte, ok bool)) {
	for {
		i := bytes.IndexFunc(p, isEnd)
		if i < 0 {
			break
		}
		switch {
		case l.over || len(l.rest)+i > maxLine:
			line(nil, false)
		case len(l.rest) > 0:
			line(l.join(p[:i]), true)
		default:
			line(p[:i], true)
		}
		l.reset()
		p = p[i+1:]
	}
	if l.over || len(l.rest)+len(p) > maxLine {
		l.reset()
		l.over = true
		return
	}
	l.join(p)
}

// end calls line for a line that has no end, as add does.
func (l *lines) end(line func(b []byte, ok bool)) {
	if l.over || len(l.rest) > 0 {
		line(l.rest, !l.over)
	}
	l.reset()
}

// join appends p to the line that has begun, and returns it.
func (l *lines) join(p []byte) []byte {
	if len(p) > 0 && l.rest == nil {
		l.rest = make([]byte, 0, maxLine) // does not move, so that clear finds all of it
	}
	l.rest = append(l.rest, p...)
	return l.rest
}

// reset forgets the line that has begun.
func (l *lines) reset() {
	clear(l.rest)
	l.rest, l.over = l.rest[:0], false
}

func isEnd(r rune) bool { return r == '\n' || r == '\r' || r == 0 }
