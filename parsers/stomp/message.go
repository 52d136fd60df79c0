package stomp

import (
	"bytes"

	"sheaf/parsers"
)

// A FieldKind says what a Field of a frame is.
type FieldKind uint8

// The fields. A header's name is followed by its value.
const (
	FieldHeaderName FieldKind = iota + 1
	FieldHeaderValue
	FieldBody
)

// A Field is a place in a frame.
type Field struct {
	Kind     FieldKind
	Off, Len int // from the frame's first byte
}

// Bytes returns the field's bytes in the frame it is of, which it borrows.
func (f Field) Bytes(frame []byte) []byte { return frame[f.Off : f.Off+f.Len] }

// A Message is one STOMP frame, or heart-beats, taken apart.
type Message struct {
	Name   Name
	Length int // bytes of the whole frame, with the line ends behind its NUL
	Fields []Field
}

// Body returns the body of a frame.
func (m *Message) Body() Field {
	if n := len(m.Fields); n > 0 {
		return m.Fields[n-1]
	}
	return Field{Kind: FieldBody}
}

// Header returns the value of a header: the first, where there are several.
func (m *Message) Header(frame []byte, name string) (Field, bool) {
	for i, f := range m.Fields {
		if f.Kind == FieldHeaderName && string(f.Bytes(frame)) == name {
			return m.Fields[i+1], true
		}
	}
	return Field{}, false
}

// Parse takes apart the frame that b begins with and returns its size. The error
// is parsers.ErrCut when the frame goes on after b, else a *parsers.Error.
func Parse(b []byte) (Message, int, error) {
	if n := lineEnds(b); n > 0 {
		return Message{Name: HeartBeat, Length: n}, n, nil
	}
	var f front
	if bad := parseFront(b, &f); bad != ok {
		return Message{}, 0, bad.err(f.name, f.body)
	}
	size := f.size()
	if size == 0 {
		size = f.body + bytes.IndexByte(b[f.body:], 0) + 1
	}
	switch {
	case size == f.body || size > len(b):
		return Message{}, 0, parsers.ErrCut
	case b[size-1] != 0:
		return Message{}, 0, faultEnd.err(f.name, size-1)
	}
	m := Message{Name: f.name}
	at := bytes.IndexByte(b, '\n') + 1
	for range f.count {
		end := at + bytes.IndexByte(b[at:], '\n')
		line := bytes.TrimSuffix(b[at:end], []byte("\r"))
		colon := bytes.IndexByte(line, ':')
		m.Fields = append(m.Fields, Field{FieldHeaderName, at, colon},
			Field{FieldHeaderValue, at + colon + 1, len(line) - colon - 1})
		at = end + 1
	}
	m.Fields = append(m.Fields, Field{FieldBody, f.body, size - 1 - f.body})
	m.Length = size + lineEnds(b[size:])
	return m, m.Length, nil
}
