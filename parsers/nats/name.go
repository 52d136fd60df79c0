package nats

import "sheaf/parsers"

// A Name is a message's kind, its operation.
type Name uint8

// The operations.
const (
	INFO Name = iota + 1
	CONNECT
	PUB
	HPUB
	SUB
	UNSUB
	MSG
	HMSG
	PING
	PONG
	OK
	ERR
)

var names = [...]string{
	"", "INFO", "CONNECT", "PUB", "HPUB", "SUB", "UNSUB", "MSG", "HMSG", "PING", "PONG", "+OK", "-ERR",
}

// String returns the name as the protocol writes it.
func (n Name) String() string {
	if int(n) >= len(names) {
		return ""
	}
	return names[n]
}

// classes say how messages of a kind may wait.
var classes = [16]parsers.Class{
	INFO:    parsers.ClassUrgent,
	CONNECT: parsers.ClassUrgent,
	PING:    parsers.ClassUrgent,
	PONG:    parsers.ClassUrgent,
	OK:      parsers.ClassAck,
	ERR:     parsers.ClassUrgent,
}

// A side says which end of a connection sends in a flow.
type side uint8

const (
	unknown side = iota
	client
	server
	neither
)

// sides says who sends messages of a kind; unknown where both do.
var sides = [16]side{
	INFO: server, MSG: server, HMSG: server, OK: server, ERR: server,
	CONNECT: client, PUB: client, HPUB: client, SUB: client, UNSUB: client,
}

// keepAlive says from whom a kind is part of a server's looking after its
// clients, for which nobody waits: its PING, and the PONG that answers it. The
// other way round they are a client's Flush, which somebody does wait for.
var keepAlive = func() (k [16]side) {
	for i := range k {
		k[i] = neither
	}
	k[PING], k[PONG] = server, client
	return k
}()

// The counters that numbers follow. The two of sids are told apart by the
// subject: a flow that has several subscriptions mostly gets along with them.
const (
	counterSID      = 0
	counterOtherSID = 1
	counterSequence = 2 // of an inbox's replies, or of a JetStream consumer
	counterPending  = 3
)

// The counters of texts.
const (
	textSID      = 0
	textInbox    = 1
	textConsumer = 2
)

// Protocol describes NATS to a Registry.
func Protocol() parsers.Protocol {
	return parsers.Protocol{
		Name:         "nats",
		Ports:        []uint16{4222},
		MessageNames: names[:],
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id) },
	}
}
