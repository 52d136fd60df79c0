package amqp10

import "sheaf/parsers"

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

func (bad fault) err(name Name, off int) error {
	if bad == short {
		return parsers.ErrCut
	}
	return &parsers.Error{Protocol: "amqp10", Name: name.String(), Off: off, Clause: faults[bad].clause, What: faults[bad].what}
}
