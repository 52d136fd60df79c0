package websocket

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
	faultReserved
	faultOpcode
	faultControl
	faultLength
	faultSize
	faultHTTP
	faultUpgrade
)

var faults = [...]struct{ section, what string }{
	ok:            {"", "no fault"},
	short:         {"", "message is cut"},
	faultReserved: {"5.2", "reserved bits are set"},
	faultOpcode:   {"5.2", "opcode is reserved"},
	faultControl:  {"5.5", "control frame is fragmented or longer than 125 bytes"},
	faultLength:   {"5.2", "length is not in its shortest form"},
	faultSize:     {"5.2", "frame is larger than is believed"},
	faultHTTP:     {"4.1", "HTTP head is neither a GET nor an answer 101, or has no end"},
	faultUpgrade:  {"4.1", "HTTP head does not upgrade to WebSocket"},
}

var (
	// ErrShort says that a frame goes on after the bytes that are there.
	ErrShort = errors.New("websocket: frame is cut")
	// ErrMalformed is what every Error is.
	ErrMalformed = errors.New("websocket: malformed frame")
)

// An Error says why bytes are not a frame, which is their sender's fault.
type Error struct {
	Section string // of RFC 6455
	What    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("websocket: malformed frame: %s (RFC 6455, %s)", e.What, e.Section)
}

// Unwrap returns ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }

func (bad fault) err() error {
	if bad == short {
		return ErrShort
	}
	return &Error{Section: faults[bad].section, What: faults[bad].what}
}
