package mqttsn

import "sheaf/parsers"

// A Name is a message's kind: its message type and 1 (5.2.2).
type Name uint8

// The message types.
const (
	ADVERTISE     Name = 0x01
	SEARCHGW      Name = 0x02
	GWINFO        Name = 0x03
	CONNECT       Name = 0x05
	CONNACK       Name = 0x06
	WILLTOPICREQ  Name = 0x07
	WILLTOPIC     Name = 0x08
	WILLMSGREQ    Name = 0x09
	WILLMSG       Name = 0x0a
	REGISTER      Name = 0x0b
	REGACK        Name = 0x0c
	PUBLISH       Name = 0x0d
	PUBACK        Name = 0x0e
	PUBCOMP       Name = 0x0f
	PUBREC        Name = 0x10
	PUBREL        Name = 0x11
	SUBSCRIBE     Name = 0x13
	SUBACK        Name = 0x14
	UNSUBSCRIBE   Name = 0x15
	UNSUBACK      Name = 0x16
	PINGREQ       Name = 0x17
	PINGRESP      Name = 0x18
	DISCONNECT    Name = 0x19
	WILLTOPICUPD  Name = 0x1b
	WILLTOPICRESP Name = 0x1c
	WILLMSGUPD    Name = 0x1d
	WILLMSGRESP   Name = 0x1e
)

// The counters that message IDs follow. Acknowledgements have those of the other
// side.
const (
	counterPublish   = 0
	counterAck       = 1
	counterSubscribe = 2
)

// A kind is what is known of messages of a name. Offsets are from behind the
// message type; none is where a field is not there.
type kind struct {
	name    string
	flags   int8
	topic   int8 // topic ID
	id      int8 // message ID
	fixed   int8 // bytes before what has no length of its own
	rest    rest
	class   parsers.Class
	counter uint8 // which the message ID follows
}

const none = -1

// rest says what follows the fields of a fixed size.
type rest uint8

const (
	nothing rest = iota
	data
	text   // at least a byte
	client // text that may be missing
	named  // the topic that the flags tell the type of
)

var kinds = [...]kind{
	ADVERTISE:     {"ADVERTISE", none, none, none, 3, nothing, parsers.ClassUrgent, 0},
	SEARCHGW:      {"SEARCHGW", none, none, none, 1, nothing, parsers.ClassUrgent, 0},
	GWINFO:        {"GWINFO", none, none, none, 1, data, parsers.ClassUrgent, 0},
	CONNECT:       {"CONNECT", 0, none, none, 4, client, parsers.ClassUrgent, 0},
	CONNACK:       {"CONNACK", none, none, none, 1, nothing, parsers.ClassUrgent, 0},
	WILLTOPICREQ:  {"WILLTOPICREQ", none, none, none, 0, nothing, parsers.ClassUrgent, 0},
	WILLTOPIC:     {"WILLTOPIC", none, none, none, 0, data, parsers.ClassUrgent, 0},
	WILLMSGREQ:    {"WILLMSGREQ", none, none, none, 0, nothing, parsers.ClassUrgent, 0},
	WILLMSG:       {"WILLMSG", none, none, none, 0, data, parsers.ClassUrgent, 0},
	REGISTER:      {"REGISTER", none, 0, 2, 4, text, parsers.ClassData, counterSubscribe},
	REGACK:        {"REGACK", none, 0, 2, 5, nothing, parsers.ClassData, counterSubscribe},
	PUBLISH:       {"PUBLISH", 0, 1, 3, 5, data, parsers.ClassData, counterPublish},
	PUBACK:        {"PUBACK", none, 0, 2, 5, nothing, parsers.ClassAck, counterAck},
	PUBCOMP:       {"PUBCOMP", none, none, 0, 2, nothing, parsers.ClassAck, counterAck},
	PUBREC:        {"PUBREC", none, none, 0, 2, nothing, parsers.ClassAck, counterAck},
	PUBREL:        {"PUBREL", none, none, 0, 2, nothing, parsers.ClassAck, counterAck},
	SUBSCRIBE:     {"SUBSCRIBE", 0, none, 1, 3, named, parsers.ClassData, counterSubscribe},
	SUBACK:        {"SUBACK", 0, 1, 3, 6, nothing, parsers.ClassData, counterSubscribe},
	UNSUBSCRIBE:   {"UNSUBSCRIBE", 0, none, 1, 3, named, parsers.ClassData, counterSubscribe},
	UNSUBACK:      {"UNSUBACK", none, none, 0, 2, nothing, parsers.ClassData, counterSubscribe},
	PINGREQ:       {"PINGREQ", none, none, none, 0, client, parsers.ClassUrgent, 0},
	PINGRESP:      {"PINGRESP", none, none, none, 0, nothing, parsers.ClassUrgent, 0},
	DISCONNECT:    {"DISCONNECT", none, none, none, 0, data, parsers.ClassUrgent, 0},
	WILLTOPICUPD:  {"WILLTOPICUPD", none, none, none, 0, data, parsers.ClassData, 0},
	WILLTOPICRESP: {"WILLTOPICRESP", none, none, none, 1, nothing, parsers.ClassData, 0},
	WILLMSGUPD:    {"WILLMSGUPD", none, none, none, 0, data, parsers.ClassData, 0},
	WILLMSGRESP:   {"WILLMSGRESP", none, none, none, 1, nothing, parsers.ClassData, 0},
}

// String returns the name as the specification writes it.
func (n Name) String() string {
	if int(n) >= len(kinds) {
		return ""
	}
	return kinds[n].name
}

// Protocol describes MQTT-SN to a Registry.
func Protocol() parsers.Protocol {
	names := make([]string, len(kinds))
	for n := range kinds {
		names[n] = kinds[n].name
	}
	return parsers.Protocol{
		Name:         "mqttsn",
		Ports:        []uint16{1883, 1884},
		UDP:          true,
		MessageNames: names,
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id) },
	}
}
