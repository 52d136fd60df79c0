package amqp

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
	faultPreamble
	faultType
	faultSize
	faultChannel
	faultTooShort
	faultTooLong
	faultString
	faultClass
	faultWeight
	faultFlags
	faultEnd
)

var faults = [...]struct{ clause, what string }{
	ok:            {"", "no fault"},
	short:         {"", "frame is cut"},
	faultPreamble: {"4.2.2", "protocol header is not that of 0-9-1"},
	faultType:     {"4.2.3", "there is no such frame type"},
	faultSize:     {"4.2.3", "size is not believable"},
	faultChannel:  {"4.2.3", "frame is on a channel that it cannot be on"},
	faultTooShort: {"4.2.3", "frame is too small for what it holds"},
	faultTooLong:  {"4.2.3", "bytes are left over at the end of the frame"},
	faultString:   {"4.2.5.3", "string goes past the end of the frame"},
	faultClass:    {"4.2.6.1", "content is of a class that has none"},
	faultWeight:   {"4.2.6.1", "weight is not 0"},
	faultFlags:    {"4.2.6.1", "property flags are reserved"},
	faultEnd:      {"4.2.3", "frame does not end in 0xCE"},
}

var (
	// ErrShort says that a frame goes on after the bytes that are there.
	ErrShort = errors.New("amqp: frame is cut")
	// ErrMalformed is what every Error is.
	ErrMalformed = errors.New("amqp: malformed frame")
)

// An Error says why bytes are not an AMQP frame, which is their sender's fault.
type Error struct {
	Name   Name   // 0 when not even that is known
	Off    int    // offset in the frame, about where it goes wrong
	Clause string // section of the specification
	What   string
}

func (e *Error) Error() string {
	name := e.Name.String()
	if name == "" {
		name = "frame"
	}
	return fmt.Sprintf("amqp: malformed %s: %s, at byte %d (%s)", name, e.What, e.Off, e.Clause)
}

// Unwrap returns ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }

func (bad fault) err(name Name, off int) error {
	if bad == short {
		return ErrShort
	}
	return &Error{Name: name, Off: off, Clause: faults[bad].clause, What: faults[bad].what}
}
