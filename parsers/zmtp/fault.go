package zmtp

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
	faultFlags
	faultSize
	faultSignature
	faultVersion
	faultCommand
)

var faults = [...]struct{ section, what string }{
	ok:             {"", "no fault"},
	short:          {"", "message is cut"},
	faultFlags:     {"Framing", "flags are reserved, or a command has more frames"},
	faultSize:      {"Framing", "frame is larger than is believed"},
	faultSignature: {"Greeting", "signature does not end as it should"},
	faultVersion:   {"Version Negotiation", "version is not 3"},
	faultCommand:   {"Commands", "command has no name, or one that is not a name"},
}

var (
	// ErrShort says that a message goes on after the bytes that are there.
	ErrShort = errors.New("zmtp: message is cut")
	// ErrMalformed is what every Error is.
	ErrMalformed = errors.New("zmtp: malformed message")
)

// An Error says why bytes are not a ZMTP message, which is their sender's fault.
type Error struct {
	Off     int    // offset in the message of the frame that is wrong
	Section string // of ZeroMQ RFC 37
	What    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("zmtp: malformed message: %s, in the frame at byte %d (RFC 37, %s)", e.What, e.Off, e.Section)
}

// Unwrap returns ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }

func (bad fault) err(off int) error {
	if bad == short {
		return ErrShort
	}
	return &Error{Off: off, Section: faults[bad].section, What: faults[bad].what}
}
