package nats

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
	faultVerb
	faultLine
	faultLong
	faultFields
	faultSubject
	faultNumber
	faultSize
	faultHeaders
	faultEnd
)

var faults = [...]string{
	ok:           "no fault",
	short:        "message is cut",
	faultVerb:    "no such operation",
	faultLine:    "characters do not belong into a control line",
	faultLong:    "control line is longer than 1024 bytes",
	faultFields:  "number of fields does not belong to this operation",
	faultSubject: "subject is not printable",
	faultNumber:  "not a decimal number",
	faultSize:    "payload is larger than 64 MiB",
	faultHeaders: "headers are larger than the payload, or do not begin with NATS/",
	faultEnd:     "payload does not end with CR LF",
}

var (
	// ErrShort says that a message goes on after the bytes that are there.
	ErrShort = errors.New("nats: message is cut")
	// ErrMalformed is what every Error is.
	ErrMalformed = errors.New("nats: malformed message")
)

// An Error says why bytes are not a NATS message, which is their sender's fault.
type Error struct {
	Name Name // 0 when not even that is known
	Off  int  // offset in the message, about where it goes wrong
	What string
}

func (e *Error) Error() string {
	name := e.Name.String()
	if name == "" {
		name = "message"
	}
	return fmt.Sprintf("nats: malformed %s: %s, at byte %d", name, e.What, e.Off)
}

// Unwrap returns ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }

func (bad fault) err(name Name, off int) error {
	if bad == short {
		return ErrShort
	}
	return &Error{Name: name, Off: off, What: faults[bad]}
}
