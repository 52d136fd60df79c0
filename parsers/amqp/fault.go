package amqp

import "sheaf/parsers"

// A fault is why bytes are not a frame. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok    fault = iota
	short       // more bytes are needed
	faultPreamble
	faultType
	faultSize
	faultChannel
	faultTooShort
	faultTooLong
	faultString
	faultClass
	faultWeight
	faultFlags
	faultEnd
)

var faults = [...]struct{ clause, what string }{
	ok:            {"", "no fault"},
	short:         {"", "frame is cut"},
	faultPreamble: {"4.2.2", "protocol header is not that of 0-9-1"},
	faultType:     {"4.2.3", "there is no such frame type"},
	faultSize:     {"4.2.3", "size is not believable"},
	faultChannel:  {"4.2.3", "frame is on a channel that it cannot be on"},
	faultTooShort: {"4.2.3", "frame is too small for what it holds"},
	faultTooLong:  {"4.2.3", "bytes are left over at the end of the frame"},
	faultString:   {"4.2.5.3", "string goes past the end of the frame"},
	faultClass:    {"4.2.6.1", "content is of a class that has none"},
	faultWeight:   {"4.2.6.1", "weight is not 0"},
	faultFlags:    {"4.2.6.1", "property flags are reserved"},
	faultEnd:      {"4.2.3", "frame does not end in 0xCE"},
}

func (bad fault) err(name Name, off int) error {
	if bad == short {
		return parsers.ErrCut
	}
	return &parsers.Error{Protocol: "amqp", Name: name.String(), Off: off, Clause: faults[bad].clause, What: faults[bad].what}
}
