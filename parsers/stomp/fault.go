package stomp

import "sheaf/parsers"

// A fault is why bytes are not a frame. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok    fault = iota
	short       // more bytes are needed
	faultCommand
	faultHeader
	faultLong
	faultLength
	faultEnd
)

var faults = [...]string{
	ok:           "no fault",
	short:        "frame is cut",
	faultCommand: "no such command",
	faultHeader:  "line is no header",
	faultLong:    "headers take more than 4096 bytes",
	faultLength:  "content-length is not a number within bounds",
	faultEnd:     "body is not followed by NUL",
}

func (bad fault) err(name Name, off int) error {
	if bad == short {
		return parsers.ErrCut
	}
	return &parsers.Error{Protocol: "stomp", Name: name.String(), Off: off, What: faults[bad]}
}
