package mqtt

import "sheaf/parsers"

// A fault is why bytes are not a message. It is a small number so that the data
// path allocates no errors.
type fault uint8

const (
	ok    fault = iota
	short       // more bytes are needed
	faultFirstByte
	faultLength
	faultTooShort
	faultTooLong
	faultVersion
	faultProtocolName
	faultLevel
	faultConnectFlags
	faultAckFlags
	faultTopicLength
	faultTopicText
	faultTopicWildcard
	faultText
	faultZeroID
	faultPropertyLength
	faultPropertyID
	faultPropertyPlace
	faultPropertyTwice
	faultOptions
	faultReason
)

var faults = [...]struct{ clause, what string }{
	ok:                  {"", "no fault"},
	short:               {"", "message is cut"},
	faultFirstByte:      {"MQTT-2.1.3-1", "type or flags are reserved"},
	faultLength:         {"2.1.4", "remaining length takes more than four bytes"},
	faultTooShort:       {"2.1.4", "remaining length is too small for the message"},
	faultTooLong:        {"2.1.4", "bytes are left over at the end of the message"},
	faultVersion:        {"2.1.2", "message does not exist in this version"},
	faultProtocolName:   {"MQTT-3.1.2-1", "protocol name is neither MQTT nor MQIsdp"},
	faultLevel:          {"MQTT-3.1.2-2", "protocol level is not 3, 4 or 5, or not that of the name"},
	faultConnectFlags:   {"3.1.2.3", "connect flags contradict one another"},
	faultAckFlags:       {"3.2.2.1", "acknowledge flags are reserved"},
	faultTopicLength:    {"3.3.2.1", "topic goes past the end of the message"},
	faultTopicText:      {"MQTT-3.3.2-1", "topic is not a UTF-8 string"},
	faultTopicWildcard:  {"MQTT-3.3.2-2", "topic holds wildcard characters"},
	faultText:           {"MQTT-1.5.4-1", "string is not UTF-8"},
	faultZeroID:         {"MQTT-2.2.1-3", "packet identifier is 0"},
	faultPropertyLength: {"2.2.2.1", "property goes past the end of the properties"},
	faultPropertyID:     {"2.2.2.2", "no such property"},
	faultPropertyPlace:  {"2.2.2.2", "property does not belong to this message"},
	faultPropertyTwice:  {"2.2.2.2", "property is there twice"},
	faultOptions:        {"3.8.3.1", "subscription options are reserved"},
	faultReason:         {"2.4", "reason code does not belong to this message"},
}

func (bad fault) err(name Name, off int) error {
	if bad == short {
		return parsers.ErrCut
	}
	return &parsers.Error{Protocol: "mqtt", Name: name.String(), Off: off, Clause: faults[bad].clause, What: faults[bad].what}
}
