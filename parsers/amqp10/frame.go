package amqp10

import "sheaf/parsers"

// A Field is a place in a frame, with the name that the specification gives it:
// a field of the performative, or the payload of a transfer.
type Field struct {
	Name     string
	Code     byte // the constructor (1.6), 0 for a payload
	Off, Len int  // from the frame's first byte; of a list, map or array the elements
}

// Bytes returns the field's bytes in the frame it is of, which it borrows.
func (f Field) Bytes(frame []byte) []byte { return frame[f.Off : f.Off+f.Len] }

// A Frame is one AMQP 1.0 frame, or protocol header, taken apart.
type Frame struct {
	Name    Name
	Channel uint16
	Length  int     // bytes of the whole frame
	Fields  []Field // without those that are null
	Address Field   // of an attach: the link's address
}

// Field returns the field of a name, such as "delivery-tag".
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
	b = b[:f.size]
	out := Frame{Name: f.name, Channel: f.channel, Length: f.size}
	w := walk{b: b, at: f.fields.off, limit: f.fields.off + f.fields.len, left: f.fields.count}
	for _, name := range performatives[f.name].fields {
		if v := w.next(); v.code != codeNull {
			out.Fields = append(out.Fields, Field{name, v.code, v.off, v.len})
		}
	}
	if w.bad == ok && f.name >= Open && w.at != w.limit {
		w.bad = faultTooLong
	}
	if w.bad != ok {
		return Frame{}, 0, w.bad.err(f.name, w.at)
	}
	if f.body < f.size {
		out.Fields = append(out.Fields, Field{Name: "payload", Off: f.body, Len: f.size - f.body})
	}
	if f.address.len > 0 {
		out.Address = Field{"address", codeString8, f.address.off, f.address.len}
	}
	return out, f.size, nil
}
