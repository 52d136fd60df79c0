package mqttsn

import "sheaf/parsers"

// A fault is why bytes are not a message. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok fault = iota
	faultLength
	faultType
	faultSize
	faultCapsule
	faultProtocol
	faultTopicType
	faultText
)

var faults = [...]struct{ section, what string }{
	ok:             {"", "no fault"},
	faultLength:    {"5.2.1", "length is not that of the datagram"},
	faultType:      {"5.2.2", "message type is reserved"},
	faultSize:      {"5.4", "message is shorter or longer than its fields"},
	faultCapsule:   {"5.5", "capsule is not one, or holds another"},
	faultProtocol:  {"5.3.8", "protocol ID is not 1"},
	faultTopicType: {"5.3.4", "type of topic ID is reserved"},
	faultText:      {"5.3.11", "name is not text"},
}

func (bad fault) err(off int) error {
	return &parsers.Error{Protocol: "mqttsn", Off: off, Clause: "MQTT-SN 1.2, " + faults[bad].section, What: faults[bad].what}
}
