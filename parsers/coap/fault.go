package coap

import "sheaf/parsers"

// A fault is why bytes are not a message. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok fault = iota
	faultHeader
	faultVersion
	faultTokenLength
	faultToken
	faultCode
	faultType
	faultEmpty
	faultOption
	faultOptionLength
	faultPayload
)

var faults = [...]struct{ section, what string }{
	ok:                {"", "no fault"},
	faultHeader:       {"3", "message is shorter than its header"},
	faultVersion:      {"3", "version is not 1"},
	faultTokenLength:  {"3", "token length is more than 8"},
	faultToken:        {"3", "token goes past the end of the message"},
	faultCode:         {"3", "code is of a reserved class"},
	faultType:         {"4.2", "type does not go with the code"},
	faultEmpty:        {"4.1", "empty message is not empty"},
	faultOption:       {"3.1", "option delta or length is reserved or too large"},
	faultOptionLength: {"3.1", "option goes past the end of the message"},
	faultPayload:      {"3", "payload marker without a payload"},
}

func (bad fault) err(off int) error {
	return &parsers.Error{Protocol: "coap", Off: off, Clause: "RFC 7252, " + faults[bad].section, What: faults[bad].what}
}
