package resp

import "sheaf/parsers"

// A FieldKind says what a Field of a message is.
type FieldKind uint8

// The fields.
const (
	FieldHead    FieldKind = iota + 1 // the number of elements of an aggregate
	FieldElement                      // any string, number or line but these:
	FieldWord                         // a command's name, or a push's kind
	FieldEvent                        // the channel or key
	FieldPayload                      // of a PUBLISH or a message
	FieldNull                         // a string or array that RESP2 says is none
	FieldLine                         // what follows the name of an inline command
)

// A Field is a place in a message. Strings and numbers are without their type,
// length and line end.
type Field struct {
	Kind     FieldKind
	Type     byte // by which RESP writes it, '$' for a string; 0 in inline commands
	Depth    int  // aggregates around it
	Off, Len int  // from the message's first byte
}

// Bytes returns the field's bytes in the message it is of, which it borrows.
func (f Field) Bytes(message []byte) []byte { return message[f.Off : f.Off+f.Len] }

// A Message is one RESP message taken apart.
type Message struct {
	Name   Name
	Inline bool
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

// Parse takes apart the message that b begins with and returns its size. It
// cannot know which side sends: an array of strings is a command when its first
// is the name of one. The error is parsers.ErrCut when the message goes on after b,
// else a *parsers.Error.
func Parse(b []byte) (Message, int, error) {
	var f front
	bad := parseFront(b, unknown, &f)
	if bad != ok && bad != short {
		return Message{}, 0, bad.err(0)
	}
	if len(b) == 0 {
		return Message{}, 0, parsers.ErrCut
	}
	var w walker
	n, done, worse := w.start(b, &f)
	if worse != ok {
		return Message{}, 0, worse.err(0)
	}
	if bad == short || !done {
		return Message{}, 0, parsers.ErrCut
	}
	m := Message{Name: f.name, Inline: f.inline, Length: n}
	m.list(b[:n], &f)
	return m, n, nil
}

// list notes the elements of a message that the walker has been over.
func (m *Message) list(b []byte, f *front) {
	end := func(from int) int { // of a line
		for i := from; ; i++ {
			if b[i] == '\n' {
				if i > from && b[i-1] == '\r' {
					i--
				}
				return i
			}
		}
	}
	if m.Inline {
		if f.name != Empty {
			word := 0
			for b[word] > ' ' {
				word++
			}
			m.Fields = append(m.Fields, Field{Kind: FieldWord, Len: word})
			if f.event > 0 {
				m.Fields = append(m.Fields, Field{Kind: FieldEvent, Off: f.event, Len: f.eventLen})
			}
			if stop := end(f.body); stop > f.body {
				m.Fields = append(m.Fields, Field{Kind: FieldLine, Off: f.body, Len: stop - f.body})
			}
		}
		return
	}
	worded := m.Name >= COMMAND && m.Name <= Push || m.Name == Pong && b[0] != '+'
	var open []int // values still to come, by depth
	for at := 0; at < len(b); {
		h, n, _ := element(b[at:])
		field := Field{Kind: FieldElement, Type: b[at], Depth: len(open), Off: at + 1, Len: n - 3}
		next := at + n
		more := 0
		switch h.kind {
		case kindLine:
			field.Len = end(at+1) - (at + 1)
			next = at + 1 + field.Len + 2
		case kindBulk:
			field.Off, field.Len = next, h.n
			next += h.n + 2
		case kindAggregate, kindAttribute:
			field.Kind = FieldHead
			more = h.n
		case kindScalar:
			if b[at] == '$' || b[at] == '*' {
				field.Kind = FieldNull
			}
		}
		switch {
		case worded && len(m.Fields) == 1:
			field.Kind = FieldWord
		case f.event > 0 && field.Off == f.event:
			field.Kind = FieldEvent
		case field.Off == f.body && (m.Name >= PUBLISH && m.Name <= SPUBLISH || m.Name >= Msg && m.Name <= SMsg):
			field.Kind = FieldPayload
		}
		m.Fields = append(m.Fields, field)
		at = next
		if len(open) > 0 && h.kind != kindAttribute {
			open[len(open)-1]--
		}
		if more > 0 {
			open = append(open, more)
		}
		for len(open) > 0 && open[len(open)-1] == 0 {
			open = open[:len(open)-1]
		}
	}
}
