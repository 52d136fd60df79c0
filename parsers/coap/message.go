package coap

import "encoding/binary"

// An Option is one option of a message: where its value is.
type Option struct {
	Number   int
	Off, Len int // from the message's first byte
}

// Bytes returns the option's value in the message it is of, which it borrows.
func (o Option) Bytes(message []byte) []byte { return message[o.Off : o.Off+o.Len] }

// A Message is one CoAP message taken apart.
type Message struct {
	Name     Name
	Type     Type
	Code     uint8 // class in the upper three bits
	ID       uint16
	TokenLen int // bytes of the token, which follows the four of the header
	Body     int // offset of the payload; the message's length when there is none
	Options  []Option
}

// Option returns the first option of a number.
func (m *Message) Option(number int) (Option, bool) {
	for _, o := range m.Options {
		if o.Number == number {
			return o, true
		}
	}
	return Option{}, false
}

// Parse takes apart a message, which is the whole of a datagram and ends where b
// does. The error is a *parsers.Error.
func Parse(b []byte) (Message, error) {
	var f front
	if bad := parseFront(b, &f); bad != ok {
		return Message{}, bad.err(f.body)
	}
	m := Message{Name: f.name, Type: f.kind, Code: f.code, ID: binary.BigEndian.Uint16(b[2:]), TokenLen: f.token.len, Body: f.body}
	for o := (options{at: f.options}); o.next(b); {
		m.Options = append(m.Options, Option{Number: o.number, Off: o.value.off, Len: o.value.len})
	}
	return m, nil
}
