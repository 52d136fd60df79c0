package mqttsn

import (
	"errors"
	"fmt"
)

// A fault is why bytes are not a message. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok fault = iota
	faultLength
	faultType
	faultSize
	faultCapsule
	faultProtocol
	faultTopicType
	faultText
)

var faults = [...]struct{ section, what string }{
	ok:             {"", "no fault"},
	faultLength:    {"5.2.1", "length is not that of the datagram"},
	faultType:      {"5.2.2", "message type is reserved"},
	faultSize:      {"5.4", "message is shorter or longer than its fields"},
	faultCapsule:   {"5.5", "capsule is not one, or holds another"},
	faultProtocol:  {"5.3.8", "protocol ID is not 1"},
	faultTopicType: {"5.3.4", "type of topic ID is reserved"},
	faultText:      {"5.3.11", "name is not text"},
}

// ErrMalformed is what every Error is.
var ErrMalformed = errors.New("mqttsn: malformed message")

// An Error says why bytes are not an MQTT-SN message, which is their sender's
// fault.
type Error struct {
	Off     int    // offset in the datagram, about where it goes wrong
	Section string // of the specification
	What    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("mqttsn: malformed message: %s, at byte %d (MQTT-SN 1.2, %s)", e.What, e.Off, e.Section)
}

// Unwrap returns ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }

func (bad fault) err(off int) error {
	return &Error{Off: off, Section: faults[bad].section, What: faults[bad].what}
}
