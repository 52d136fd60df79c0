package tls

import "sheaf/parsers"

// A fault is why bytes are not a record. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok    fault = iota
	short       // more bytes are needed
	faultType
	faultVersion
	faultLength
	faultLarge
)

var faults = [...]string{
	ok:           "no fault",
	short:        "record is cut",
	faultType:    "content type is not one of 20 to 24",
	faultVersion: "version is not one of 0x0301 to 0x0304",
	faultLength:  "fragment is too short for its content type, or too long",
	faultLarge:   "fragment is larger than 2^14+256 bytes",
}

func (bad fault) err() error {
	if bad == short {
		return parsers.ErrCut
	}
	return &parsers.Error{Protocol: "tls", Clause: "RFC 8446 section 5.1", What: faults[bad]}
}
