package websocket

import "sheaf/parsers"

// A fault is why bytes are not a frame. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok    fault = iota
	short       // more bytes are needed
	faultReserved
	faultOpcode
	faultControl
	faultLength
	faultSize
	faultHTTP
	faultUpgrade
)

var faults = [...]struct{ section, what string }{
	ok:            {"", "no fault"},
	short:         {"", "message is cut"},
	faultReserved: {"5.2", "reserved bits are set"},
	faultOpcode:   {"5.2", "opcode is reserved"},
	faultControl:  {"5.5", "control frame is fragmented or longer than 125 bytes"},
	faultLength:   {"5.2", "length is not in its shortest form"},
	faultSize:     {"5.2", "frame is larger than is believed"},
	faultHTTP:     {"4.1", "HTTP head is neither a GET nor an answer 101, or has no end"},
	faultUpgrade:  {"4.1", "HTTP head does not upgrade to WebSocket"},
}

func (bad fault) err() error {
	if bad == short {
		return parsers.ErrCut
	}
	return &parsers.Error{Protocol: "websocket", Clause: "RFC 6455, " + faults[bad].section, What: faults[bad].what}
}
