package stomp

import (
	"bytes"

	"sheaf/parsers"
)

const (
	// maxFront is more than parseFront ever asks for: a command and headers.
	maxFront = 4096
	// maxBody is the largest content-length that is believed.
	maxBody = 256 << 20
)

// A front is what the command and headers of a frame tell. Offsets are from the
// frame's first byte.
type front struct {
	name   Name
	lower  bool // the command is in lower case
	count  int  // headers
	length int  // of the body as a header tells it, -1 when none does
	body   int  // offset of the body
	event  span // the destination

	span *parsers.Span // gets the holes, if there is one
}

// size returns the bytes of the frame with its NUL, 0 when only the NUL tells.
func (f *front) size() int {
	if f.length < 0 {
		return 0
	}
	return f.body + f.length + 1
}

// parseFront reads the command and headers of a frame into f, which is zero but for
// its span. It returns short when it needs more bytes, of which maxFront are always
// enough and the whole frame is too. What it says does not depend on the bytes
// after those it needs.
func parseFront(b []byte, f *front) fault {
	name, at, lower, bad := command(b)
	if bad != ok {
		return bad
	}
	f.name, f.lower, f.length, f.body = name, lower, -1, at
	b = b[:min(len(b), maxFront)]
	for {
		from := at
		at = parsers.TokenEnd(b, at, ' ', ':')
		switch {
		case at == len(b):
			return f.cut(b)
		case b[at] == ':' && at > from:
		case b[at] == '\r' && at == from && at+1 == len(b): // 1.2
			return f.cut(b)
		case b[at] == '\r' && at == from && b[at+1] == '\n':
			f.body = at + 2
			return ok
		case b[at] == '\n' && at == from:
			f.body = at + 1
			return ok
		default:
			return faultHeader
		}
		v := span{off: at + 1}
		end := parsers.TokenEnd(b, v.off, 1, '\n')
		switch {
		case end == len(b):
			return f.cut(b)
		case b[end] == 0: // it would have ended the frame
			return faultHeader
		}
		v.len = end - v.off
		next := end + 1
		if v.len > 0 && b[next-2] == '\r' {
			v.len--
		}
		if bad := f.header(b, b[from:at], v); bad != ok {
			return bad
		}
		f.count++
		at = next
		f.body = at
	}
}

// cut returns the fault of headers that do not end in b.
func (f *front) cut(b []byte) fault {
	switch {
	case bytes.IndexByte(b, 0) >= 0:
		return faultHeader
	case len(b) >= maxFront:
		return faultLong
	}
	return short
}

// command returns the command that b begins with and the length of its line.
func command(b []byte) (name Name, n int, lower bool, bad fault) {
	for _, often := range [...]Name{MESSAGE, SEND, ACK} {
		if n := len(names[often]); n < len(b) && b[n] == '\n' && string(b[:n]) == names[often] {
			return often, n + 1, false, ok
		}
	}
	word := b[:min(len(b), maxCommand)]
	end := bytes.IndexByte(word, '\n')
	if end >= 0 {
		word = b[:end]
		if end > 0 && word[end-1] == '\r' {
			word = word[:end-1]
		}
		if name = lookup(word); name != 0 {
			return name, end + 1, false, ok
		}
	}
	if len(word) == 0 {
		if len(b) > 0 {
			return 0, 0, false, faultCommand
		}
		return 0, 0, false, short
	}
	var upper [maxCommand]byte
	lower = word[0] >= 'a' && word[0] <= 'z'
	if lower {
		for i, c := range word {
			if c < 'a' || c > 'z' {
				if c != '\r' || i != len(word)-1 || end >= 0 {
					return 0, 0, false, faultCommand
				}
				c += 'a' - 'A'
			}
			upper[i] = c - ('a' - 'A')
		}
		word = upper[:len(word)]
	}
	if end >= 0 {
		if name = lookup(word); name == 0 {
			return 0, 0, false, faultCommand
		}
		return name, end + 1, lower, ok
	}
	for _, whole := range names[1:HeartBeat] {
		if s := whole + "\r"; len(word) < len(s)+1 && string(word) == s[:min(len(word), len(s))] {
			return 0, 0, lower, short
		}
	}
	return 0, 0, false, faultCommand
}

// maxCommand is more than the longest command with its line end.
const maxCommand = 16

func lookup(word []byte) Name {
	for i, s := range names[1:HeartBeat] {
		if string(word) == s {
			return Name(i + 1)
		}
	}
	return 0
}
