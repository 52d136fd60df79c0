package parsers

import (
	"errors"
	"fmt"
)

var (
	// ErrCut says that a message goes on after the bytes that are there.
	ErrCut = errors.New("message is cut")
	// ErrMalformed is what every Error is.
	ErrMalformed = errors.New("malformed message")
)

// An Error says why bytes are not a message of a protocol, which is their sender's
// fault.
type Error struct {
	Protocol string
	Name     string // the message's kind, "" when not even that is known
	Off      int    // offset in the message, about where it goes wrong
	Clause   string // of the specification, "" when there is none to name
	What     string
}

func (e *Error) Error() string {
	name, clause := e.Name, ""
	if name == "" {
		name = "message"
	}
	if e.Clause != "" {
		clause = " (" + e.Clause + ")"
	}
	return fmt.Sprintf("%s: malformed %s: %s, at byte %d%s", e.Protocol, name, e.What, e.Off, clause)
}

// Unwrap returns ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }
