package stomp

import "sheaf/parsers"

// A Name is a frame's kind, its command.
type Name uint8

// The commands, and what is sent between frames.
const (
	CONNECT Name = iota + 1
	STOMP        // CONNECT by another name, since 1.1
	CONNECTED
	SEND
	SUBSCRIBE
	UNSUBSCRIBE
	ACK
	NACK
	BEGIN
	COMMIT
	ABORT
	DISCONNECT
	MESSAGE
	RECEIPT
	ERROR
	HeartBeat
)

var names = [...]string{
	"", "CONNECT", "STOMP", "CONNECTED", "SEND", "SUBSCRIBE", "UNSUBSCRIBE", "ACK", "NACK", "BEGIN", "COMMIT",
	"ABORT", "DISCONNECT", "MESSAGE", "RECEIPT", "ERROR", "heart-beat",
}

// String returns the name as the specification writes it.
func (n Name) String() string {
	if int(n) >= len(names) {
		return ""
	}
	return names[n]
}

// classes say how frames of a kind may wait.
var classes = [32]parsers.Class{
	CONNECT:    parsers.ClassUrgent,
	STOMP:      parsers.ClassUrgent,
	CONNECTED:  parsers.ClassUrgent,
	DISCONNECT: parsers.ClassUrgent,
	ERROR:      parsers.ClassUrgent,
	HeartBeat:  parsers.ClassUrgent,
	ACK:        parsers.ClassAck,
	NACK:       parsers.ClassAck,
	RECEIPT:    parsers.ClassAck,
}

// The counters of identifiers: the texts they begin with, and the numbers they
// end in, have each their own.
const (
	counterSubscription = 0
	counterReceipt      = 1
	counterMessage      = 2
	counterAck          = 3
)

// Protocol describes STOMP to a Registry.
func Protocol() parsers.Protocol {
	return parsers.Protocol{
		Name:         "stomp",
		Ports:        []uint16{61613},
		SecurePorts:  []uint16{61614, 61617},
		MessageNames: names[:],
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id) },
	}
}
