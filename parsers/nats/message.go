package nats

import (
	"bytes"

	"sheaf/parsers"
)

// A FieldKind says what a Field of a message is.
type FieldKind uint8

// The fields.
const (
	FieldOptions FieldKind = iota + 1 // the object of an INFO or CONNECT
	FieldError                        // the text of an -ERR
	FieldSubject
	FieldSID
	FieldQueue // SUB
	FieldReply
	FieldMax        // UNSUB
	FieldStatus     // what follows NATS/1.0 in the headers: 503, or 100 Idle Heartbeat
	FieldHeaderName // followed by its value
	FieldHeaderValue
	FieldPayload
)

// A Field is a place in a message.
type Field struct {
	Kind     FieldKind
	Off, Len int // from the message's first byte
}

// Bytes returns the field's bytes in the message it is of, which it borrows.
func (f Field) Bytes(message []byte) []byte { return message[f.Off : f.Off+f.Len] }

// A Message is one NATS message taken apart.
type Message struct {
	Name   Name
	Length int // bytes of the whole message
	Fields []Field
}

// Field returns the first field of a kind.
func (m *Message) Field(kind FieldKind) (Field, bool) {
	for _, f := range m.Fields {
		if f.Kind == kind {
			return f, true
		}
	}
	return Field{}, false
}

// Header returns the value of a header, whose name is told in its case.
func (m *Message) Header(message []byte, name string) (Field, bool) {
	for i, f := range m.Fields[:max(len(m.Fields)-1, 0)] {
		if f.Kind == FieldHeaderName && string(f.Bytes(message)) == name {
			return m.Fields[i+1], true
		}
	}
	return Field{}, false
}

// Parse takes apart the message that b begins with and returns its size. The
// error is parsers.ErrCut when the message goes on after b, else a *parsers.Error.
func Parse(b []byte) (Message, int, error) {
	var f front
	if bad := parseFront(b, &f); bad != ok {
		name, _, _ := verb(b)
		return Message{}, 0, bad.err(name, f.body)
	}
	if f.size == 0 || len(b) < f.size {
		return Message{}, 0, parsers.ErrCut
	}
	m := Message{Name: f.name, Length: f.size}
	note := func(kind FieldKind, a arg) {
		if a.len > 0 {
			m.Fields = append(m.Fields, Field{kind, int(a.off), int(a.len)})
		}
	}
	text := len(bytes.TrimRight(b[f.body:max(f.line, f.body)], "\r\n"))
	switch f.name {
	case INFO, CONNECT:
		m.Fields = []Field{{FieldOptions, f.body, text}}
	case ERR:
		m.Fields = []Field{{FieldError, f.body, text}}
	case SUB:
		note(FieldSubject, f.args[f.subject])
		note(FieldQueue, between(b, f.args[f.subject], f.args[f.sid]))
		note(FieldSID, f.args[f.sid])
	case UNSUB:
		note(FieldSID, f.args[f.sid])
		note(FieldMax, between(b, f.args[f.sid], arg{off: int32(f.line)}))
	case PUB, HPUB, MSG, HMSG:
		note(FieldSubject, f.args[f.subject])
		note(FieldSID, f.args[f.sid])
		note(FieldReply, f.args[f.reply])
		if bad := m.headers(b, f.line, f.body); bad != ok {
			return Message{}, 0, bad.err(f.name, f.line)
		}
		m.Fields = append(m.Fields, Field{FieldPayload, f.body, f.size - 2 - f.body})
	}
	return m, f.size, nil
}

// between returns the field between two others.
func between(b []byte, left, right arg) arg {
	from, to := int(left.off+left.len), int(right.off)
	rest := bytes.TrimLeft(b[from:to], " \t")
	from = to - len(rest)
	return arg{int32(from), int32(len(bytes.TrimRight(rest, " \t\r\n")))}
}

// headers notes the headers in b[at:end]: a line with the version, lines with a
// name and a value, and an empty one.
func (m *Message) headers(b []byte, at, end int) fault {
	for first := true; at < end; first = false {
		line := bytes.Index(b[at:end], []byte("\r\n"))
		switch {
		case line < 0:
			return faultHeaders
		case line == 0 && at+2 == end && !first:
			return ok
		case line == 0:
			return faultHeaders
		}
		stop := at + line
		colon := bytes.IndexByte(b[at:stop], ':')
		switch {
		case first:
			if space := bytes.IndexByte(b[at:stop], ' '); space >= 0 {
				m.Fields = append(m.Fields, Field{FieldStatus, at + space + 1, line - space - 1})
			}
		case colon < 1:
			return faultHeaders
		default:
			value := at + colon + 1
			for value < stop && blank(b[value]) {
				value++
			}
			m.Fields = append(m.Fields, Field{FieldHeaderName, at, colon}, Field{FieldHeaderValue, value, stop - value})
		}
		at = stop + 2
	}
	if end > 0 && m.Name != PUB && m.Name != MSG && at == end {
		return faultHeaders // no empty line
	}
	return ok
}
