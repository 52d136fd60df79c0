package zmtp

import "sheaf/parsers"

// A fault is why bytes are not a message. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok    fault = iota
	short       // more bytes are needed
	faultFlags
	faultSize
	faultSignature
	faultVersion
	faultCommand
)

var faults = [...]struct{ section, what string }{
	ok:             {"", "no fault"},
	short:          {"", "message is cut"},
	faultFlags:     {"Framing", "flags are reserved, or a command has more frames"},
	faultSize:      {"Framing", "frame is larger than is believed"},
	faultSignature: {"Greeting", "signature does not end as it should"},
	faultVersion:   {"Version Negotiation", "version is not 3"},
	faultCommand:   {"Commands", "command has no name, or one that is not a name"},
}

func (bad fault) err(off int) error {
	if bad == short {
		return parsers.ErrCut
	}
	return &parsers.Error{Protocol: "zmtp", Off: off, Clause: "RFC 37, " + faults[bad].section, What: faults[bad].what}
}
