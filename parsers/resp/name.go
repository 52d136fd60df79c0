package resp

import "sheaf/parsers"

// A Name is a message's kind.
type Name uint8

// The kinds: commands are in upper case, pushes in lower case, and
// other replies are what their type is called.
const (
	COMMAND Name = iota + 1 // any but these:
	PUBLISH
	SPUBLISH
	SUBSCRIBE
	PSUBSCRIBE
	SSUBSCRIBE
	UNSUBSCRIBE
	PUNSUBSCRIBE
	SUNSUBSCRIBE
	XADD
	XREAD
	XREADGROUP
	XACK
	PING
	HELLO
	AUTH
	QUIT
	RESET
	Empty // an inline command without a word

	Msg
	PMsg
	SMsg
	Subscribed
	PSubscribed
	SSubscribed
	Unsubscribed
	PUnsubscribed
	SUnsubscribed
	Push // any but these

	OK
	Pong
	Status // +
	Failed // - and !
	Integer
	Bulk
	Null
	Boolean
	Double
	BigNumber
	Verbatim
	Array
	Map
	Set
	Attribute
	Stream // a reply to XREAD or XREADGROUP
)

var names = [...]string{
	"", "COMMAND", "PUBLISH", "SPUBLISH", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE",
	"PUNSUBSCRIBE", "SUNSUBSCRIBE", "XADD", "XREAD", "XREADGROUP", "XACK", "PING", "HELLO", "AUTH", "QUIT", "RESET", "EMPTY",
	"message", "pmessage", "smessage", "subscribe", "psubscribe", "ssubscribe", "unsubscribe",
	"punsubscribe", "sunsubscribe", "push",
	"+OK", "+PONG", "Status", "Error", "Integer", "Bulk", "Null", "Boolean", "Double", "Big number",
	"Verbatim", "Array", "Map", "Set", "Attribute", "Stream",
}

// String returns the name.
func (n Name) String() string {
	if int(n) >= len(names) {
		return ""
	}
	return names[n]
}

// ofConnection says whether commands of the name are about the connection, and so
// of no event.
func (n Name) ofConnection() bool { return n >= PING && n <= RESET }

// classes say how messages of a kind may wait.
var classes = [64]parsers.Class{
	PING: parsers.ClassUrgent, HELLO: parsers.ClassUrgent, AUTH: parsers.ClassUrgent, QUIT: parsers.ClassUrgent,
	RESET: parsers.ClassUrgent, Empty: parsers.ClassUrgent, Pong: parsers.ClassUrgent,
	Failed:  parsers.ClassUrgent,
	XACK:    parsers.ClassAck,
	OK:      parsers.ClassAck,
	Integer: parsers.ClassAck, // of a PUBLISH above all
}

// A side says which end of a connection sends in a flow.
type side uint8

const (
	unknown side = iota
	client
	server
)

// The counters of numbers, and of texts.
const (
	counterSubscriptions = 0
	textConsumer         = 1
)

// Protocol describes RESP to a Registry, under the name of who made it.
func Protocol() parsers.Protocol {
	return parsers.Protocol{
		Name:         "redis",
		Ports:        []uint16{6379},
		SecurePorts:  []uint16{6380},
		MessageNames: names[:],
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id) },
	}
}
