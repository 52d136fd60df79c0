package resp

import "sheaf/parsers"

// A fault is why bytes are not a message. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok    fault = iota
	short       // more bytes are needed
	faultType
	faultNumber
	faultLength
	faultLine
	faultEnd
	faultCommand
)

var faults = [...]string{
	ok:           "no fault",
	short:        "message is cut",
	faultType:    "no such type",
	faultNumber:  "not a number",
	faultLength:  "length is out of bounds",
	faultLine:    "line holds control characters or does not end with CR LF",
	faultEnd:     "string is not followed by CR LF",
	faultCommand: "no such command",
}

func (bad fault) err(off int) error {
	if bad == short {
		return parsers.ErrCut
	}
	return &parsers.Error{Protocol: "resp", Off: off, What: faults[bad]}
}
