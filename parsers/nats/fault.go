package nats

import "sheaf/parsers"

// A fault is why bytes are not a message. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok    fault = iota
	short       // more bytes are needed
	faultVerb
	faultLine
	faultLong
	faultFields
	faultSubject
	faultNumber
	faultSize
	faultHeaders
	faultEnd
)

var faults = [...]string{
	ok:           "no fault",
	short:        "message is cut",
	faultVerb:    "no such operation",
	faultLine:    "characters do not belong into a control line",
	faultLong:    "control line is longer than 1024 bytes",
	faultFields:  "number of fields does not belong to this operation",
	faultSubject: "subject is not printable",
	faultNumber:  "not a decimal number",
	faultSize:    "payload is larger than 64 MiB",
	faultHeaders: "headers are larger than the payload, or do not begin with NATS/",
	faultEnd:     "payload does not end with CR LF",
}

func (bad fault) err(name Name, off int) error {
	if bad == short {
		return parsers.ErrCut
	}
	return &parsers.Error{Protocol: "nats", Name: name.String(), Off: off, What: faults[bad]}
}
