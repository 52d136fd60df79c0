package amqp10

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
	faultSize
	faultOffset
	faultType
	faultEmpty
	faultTooShort
	faultTooLong
	faultDescriptor
	faultConstructor
	faultList
	faultFields
	faultField
)

var faults = [...]struct{ clause, what string }{
	ok:               {"", "no fault"},
	short:            {"", "frame is cut"},
	faultPreamble:    {"2.2", "protocol header is not that of 1.0"},
	faultSize:        {"2.3.1", "size is not believable"},
	faultOffset:      {"2.3.1", "data offset is inside the header or behind the frame"},
	faultType:        {"2.3.1", "there is no such frame type"},
	faultEmpty:       {"5.3.1", "SASL frame is empty"},
	faultTooShort:    {"1.2", "value is cut by the end of what holds it"},
	faultTooLong:     {"1.2", "value goes past the end of what holds it"},
	faultDescriptor:  {"1.2.2", "descriptor is none"},
	faultConstructor: {"1.2.1", "there is no such constructor"},
	faultList:        {"1.4", "fields are not a list"},
	faultFields:      {"2.7", "fields are missing, or more than there can be"},
	faultField:       {"2.7", "field is of another type"},
}

var (
	// ErrShort says that a frame goes on after the bytes that are there.
	ErrShort = errors.New("amqp10: frame is cut")
	// ErrMalformed is what every Error is.
	ErrMalformed = errors.New("amqp10: malformed frame")
)

// An Error says why bytes are not an AMQP 1.0 frame, which is their sender's fault.
type Error struct {
	Name   Name   // 0 when not even that is known
	Off    int    // offset in the frame, about where it goes wrong
	Clause string // section of the specification, with its part in front
	What   string
}

func (e *Error) Error() string {
	name := e.Name.String()
	if name == "" {
		name = "frame"
	}
	return fmt.Sprintf("amqp10: malformed %s: %s, at byte %d (%s)", name, e.What, e.Off, e.Clause)
}

// Unwrap returns ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }

func (bad fault) err(name Name, off int) error {
	if bad == short {
		return ErrShort
	}
	return &Error{Name: name, Off: off, Clause: faults[bad].clause, What: faults[bad].what}
}
