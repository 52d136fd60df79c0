package mqtt

import "sheaf/parsers"

// A Name is a message's kind, the control packet type of 2.1.2.
type Name uint8

// The control packet types.
const (
	CONNECT Name = iota + 1
	CONNACK
	PUBLISH
	PUBACK
	PUBREC
	PUBREL
	PUBCOMP
	SUBSCRIBE
	SUBACK
	UNSUBSCRIBE
	UNSUBACK
	PINGREQ
	PINGRESP
	DISCONNECT
	AUTH // version 5
)

var names = [16]string{
	"", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP",
	"SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH",
}

// String returns the name as the standard writes it.
func (n Name) String() string {
	if int(n) >= len(names) {
		return ""
	}
	return names[n]
}

// The counters that packet identifiers follow. Identifiers that one end of a
// connection chooses go up in the order in which it sends them; their
// acknowledgements come back in that order too.
const (
	counterPublish   = 0
	counterAck       = 1
	counterSubscribe = 2
)

// traits is what a span tells of its kind.
var traits = [16]struct {
	class   parsers.Class
	counter uint8
}{
	CONNECT:     {class: parsers.ClassUrgent},
	CONNACK:     {class: parsers.ClassUrgent},
	PUBLISH:     {counter: counterPublish},
	PUBACK:      {parsers.ClassAck, counterAck},
	PUBREC:      {parsers.ClassAck, counterAck},
	PUBREL:      {parsers.ClassAck, counterAck},
	PUBCOMP:     {parsers.ClassAck, counterAck},
	SUBSCRIBE:   {counter: counterSubscribe},
	SUBACK:      {counter: counterSubscribe},
	UNSUBSCRIBE: {counter: counterSubscribe},
	UNSUBACK:    {counter: counterSubscribe},
	PINGREQ:     {class: parsers.ClassUrgent},
	PINGRESP:    {class: parsers.ClassUrgent},
	DISCONNECT:  {class: parsers.ClassUrgent},
	AUTH:        {class: parsers.ClassUrgent},
}

// Protocol describes MQTT to a Registry. Port 8883, MQTT over TLS, is not in it:
// there is nothing to see.
func Protocol() parsers.Protocol {
	return parsers.Protocol{
		Name:         "mqtt",
		Ports:        []uint16{1883},
		SecurePorts:  []uint16{8883},
		MessageNames: names[:],
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id) },
	}
}
