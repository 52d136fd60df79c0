package kafka

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
	faultSize
	faultTooShort
	faultAPI
	faultVersion
	faultCorrelation
	faultText
	faultNumber
	faultTopic
	faultCount
	faultBatch
)

var faults = [...]string{
	ok:               "no fault",
	short:            "message is cut",
	faultSize:        "size is too small or larger than is believed",
	faultTooShort:    "message is shorter than its fields",
	faultAPI:         "no such API",
	faultVersion:     "no such version of the API",
	faultCorrelation: "correlation ID is negative",
	faultText:        "string is not text or too long",
	faultNumber:      "number is out of its range",
	faultTopic:       "topic is not the name of one",
	faultCount:       "array is larger than its message",
	faultBatch:       "record batch does not end with its partition",
}

var (
	// ErrShort says that a message goes on after the bytes that are there.
	ErrShort = errors.New("kafka: message is cut")
	// ErrMalformed is what every Error is.
	ErrMalformed = errors.New("kafka: malformed message")
)

// An Error says why bytes are not a Kafka message, which is their sender's fault.
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
	return fmt.Sprintf("kafka: malformed %s: %s, at byte %d", name, e.What, e.Off)
}

// Unwrap returns ErrMalformed.
func (e *Error) Unwrap() error { return ErrMalformed }

func (bad fault) err(name Name, off int) error {
	if bad == short {
		return ErrShort
	}
	return &Error{Name: name, Off: off, What: faults[bad]}
}
