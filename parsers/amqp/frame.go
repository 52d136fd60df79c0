package amqp

import (
	"encoding/binary"

	"sheaf/parsers"
)

// A Field is a place in a frame, with the name that the specification gives it.
// Strings and tables are without their length.
type Field struct {
	Name     string
	Off, Len int // from the frame's first byte
}

// Bytes returns the field's bytes in the frame it is of, which it borrows.
func (f Field) Bytes(frame []byte) []byte { return frame[f.Off : f.Off+f.Len] }

// A Frame is one AMQP frame taken apart. A content header has the fields
// body-size and property-flags and its properties, a content body has body.
type Frame struct {
	Name    Name
	Channel uint16
	Length  int // bytes of the whole frame
	Fields  []Field
}

// Field returns the first field of a name, such as "routing-key".
func (f *Frame) Field(name string) (Field, bool) {
	for _, field := range f.Fields {
		if field.Name == name {
			return field, true
		}
	}
	return Field{}, false
}

// Parse takes apart the frame that b begins with and returns its size. The
// error is parsers.ErrCut when the frame goes on after b, else a *parsers.Error.
func Parse(b []byte) (Frame, int, error) {
	var f front
	if bad := parseFront(b, &f); bad != ok {
		return Frame{}, 0, bad.err(f.name, min(frameHead, len(b)))
	}
	if len(b) < f.size {
		return Frame{}, 0, parsers.ErrCut
	}
	if !f.ends(b) {
		return Frame{}, 0, faultEnd.err(f.name, f.size-1)
	}
	r := reader{b: b[:f.size-1], at: frameHead}
	switch f.kind {
	case typePreamble:
		r.b, r.at = b[:f.size], f.size
	case typeMethod:
		r.at = methodHead
		if f.name == Method {
			r.note("arguments", len(r.b)-r.at)
		}
		for _, a := range arguments[f.name] {
			r.argument(a)
		}
	case typeHeader:
		r.at = frameHead + 4
		r.note("body-size", 8)
		flags := binary.BigEndian.Uint16(b[r.at:])
		r.note("property-flags", 2)
		for i, a := range properties {
			if flags&(0x8000>>i) != 0 {
				r.argument(a)
			}
		}
	case typeBody:
		r.note("body", len(r.b)-r.at)
	}
	if r.bad == ok && r.at != len(r.b) {
		r.bad = faultTooLong
	}
	if r.bad != ok {
		return Frame{}, 0, r.bad.err(f.name, r.at)
	}
	return Frame{Name: f.name, Channel: f.channel, Length: f.size, Fields: r.fields}, f.size, nil
}

// A reader walks over a frame and notes its fields. After a fault it stays where
// it is.
type reader struct {
	b      []byte // without the frame's end
	at     int
	fields []Field
	bad    fault
}

// argument reads a field by how it is written.
func (r *reader) argument(a argument) {
	prefix := 0
	switch a.kind {
	case 's':
		prefix = 1
	case 'l', 't':
		prefix = 4
	default:
		r.note(a.name, int(a.kind-'0'))
		return
	}
	if r.bad != ok {
		return
	}
	if len(r.b)-r.at < prefix {
		r.bad = faultTooShort
		return
	}
	n := uint32(r.b[r.at])
	if prefix == 4 {
		n = binary.BigEndian.Uint32(r.b[r.at:])
	}
	if uint64(n) > uint64(len(r.b)-r.at-prefix) {
		r.bad = faultString
		return
	}
	r.at += prefix
	r.note(a.name, int(n))
}

// note notes a field of n bytes.
func (r *reader) note(name string, n int) {
	if r.bad != ok {
		return
	}
	if len(r.b)-r.at < n {
		r.bad = faultTooShort
		return
	}
	r.fields = append(r.fields, Field{Name: name, Off: r.at, Len: n})
	r.at += n
}
