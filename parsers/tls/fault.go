package tls

import (
	"errors"
	"fmt"
)

// A fault is why bytes are not a record. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok    fault = iota
	short       // more bytes are needed
	faultType
	faultVersion
	faultLength
	faultLarge
)

var faults = [...]string{
	ok:           "no fault",
	short:        "record is cut",
	faultType:    "content type is not one of 20 to 24",
	faultVersion: "version is not one of 0x0301 to 0x0304",
	faultLength:  "fragment is too short for its content type, or too long",
	faultLarge:   "fragment is larger than 2^14+256 bytes",
}

var (
	// ErrShort says that a record goes on after the bytes that are there.
	ErrShort = errors.New("tls: record is cut")
	// ErrMalformed is what every Error is.
	ErrMalformed = errors.New("tls: malformed record")
)

// An Error says why bytes are not a TLS record, which is their sender's fault.
type Error struct{ What string }

func (e *Error) Error() string {
	return fmt.Sprintf("tls: malformed record: %s (RFC 8446 section 5.1)", e.What)
}

// Unwrap returns ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }

func (bad fault) err() error {
	if bad == short {
		return ErrShort
	}
	return &Error{What: faults[bad]}
}
