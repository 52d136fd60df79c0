package kafka

import "sheaf/parsers"

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

func (bad fault) err(name Name, off int) error {
	if bad == short {
		return parsers.ErrCut
	}
	return &parsers.Error{Protocol: "kafka", Name: name.String(), Off: off, What: faults[bad]}
}
