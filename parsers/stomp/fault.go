package stomp

import (
	"errors"
	"fmt"
)

// A fault is why bytes are not a frame. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok    fault = iota
	short       // more bytes are needed
	faultCommand
	faultHeader
	faultLong
	faultLength
	faultEnd
)

var faults = [...]string{
	ok:           "no fault",
	short:        "frame is cut",
	faultCommand: "no such command",
	faultHeader:  "line is no header",
	faultLong:    "headers take more than 4096 bytes",
	faultLength:  "content-length is not a number within bounds",
	faultEnd:     "body is not followed by NUL",
}

var (
	// ErrShort says that a frame goes on after the bytes that are there.
	ErrShort = errors.New("stomp: frame is cut")
	// ErrMalformed is what every Error is.
	ErrMalformed = errors.New("stomp: malformed frame")
)

// An Error says why bytes are not a STOMP frame, which is their sender's fault.
type Error struct {
	Name Name // 0 when not even that is known
	Off  int  // offset in the frame, about where it goes wrong
	What string
}

func (e *Error) Error() string {
	name := e.Name.String()
	if name == "" {
		name = "frame"
	}
	return fmt.Sprintf("stomp: malformed %s: %s, at byte %d", name, e.What, e.Off)
}

// Unwrap returns ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }

func (bad fault) err(name Name, off int) error {
	if bad == short {
		return ErrShort
	}
	return &Error{Name: name, Off: off, What: faults[bad]}
}
