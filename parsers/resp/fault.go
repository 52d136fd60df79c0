package resp

import (
	"errors"
	"fmt"
)

// A fault is why bytes are not a message. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok    fault = iota
	short       // more bytes are needed
	faultType
	faultNumber
	faultLength
	faultLine
	faultEnd
	faultCommand
)

var faults = [...]string{
	ok:           "no fault",
	short:        "message is cut",
	faultType:    "no such type",
	faultNumber:  "not a number",
	faultLength:  "length is out of bounds",
	faultLine:    "line holds control characters or does not end with CR LF",
	faultEnd:     "string is not followed by CR LF",
	faultCommand: "no such command",
}

var (
	// ErrShort says that a message goes on after the bytes that are there.
	ErrShort = errors.New("resp: message is cut")
	// ErrMalformed is what every Error is.
	ErrMalformed = errors.New("resp: malformed message")
)

// An Error says why bytes are not a RESP message, which is their sender's fault.
type Error struct {
	Off  int // offset in the message, about where it goes wrong
	What string
}

func (e *Error) Error() string {
	return fmt.Sprintf("resp: malformed message: %s, at byte %d", e.What, e.Off)
}

// Unwrap returns ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }

func (bad fault) err(off int) error {
	if bad == short {
		return ErrShort
	}
	return &Error{Off: off, What: faults[bad]}
}
