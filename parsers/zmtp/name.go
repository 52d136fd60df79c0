package zmtp

import "sheaf/parsers"

// A Name is a message's kind.
type Name uint8

// The names.
const (
	Greeting Name = iota + 1
	Message
	Command // of another name
	Ready
	Fail // the command ERROR
	Subscribe
	Cancel
	Ping
	Pong
	Join // RFC 48
	Leave
	Hello // PLAIN and CURVE
	Welcome
	Initiate
	Encrypted // the command MESSAGE of CURVE and GSSAPI
)

var names = [...]string{
	Greeting: "GREETING", Message: "MESSAGE", Command: "COMMAND",
	Ready: "READY", Fail: "ERROR", Subscribe: "SUBSCRIBE", Cancel: "CANCEL", Ping: "PING", Pong: "PONG",
	Join: "JOIN", Leave: "LEAVE", Hello: "HELLO", Welcome: "WELCOME", Initiate: "INITIATE", Encrypted: "ENCRYPTED",
}

// String returns the name.
func (n Name) String() string {
	if int(n) >= len(names) {
		return ""
	}
	return names[n]
}

// commandName returns the name of a command.
func commandName(b []byte) Name {
	switch string(b) {
	case "READY":
		return Ready
	case "ERROR":
		return Fail
	case "SUBSCRIBE":
		return Subscribe
	case "CANCEL":
		return Cancel
	case "PING":
		return Ping
	case "PONG":
		return Pong
	case "JOIN":
		return Join
	case "LEAVE":
		return Leave
	case "HELLO":
		return Hello
	case "WELCOME":
		return Welcome
	case "INITIATE":
		return Initiate
	case "MESSAGE":
		return Encrypted
	}
	return Command
}

func (n Name) class() parsers.Class {
	switch n {
	case Message, Command, Subscribe, Cancel, Join, Leave, Encrypted:
		return parsers.ClassData
	}
	return parsers.ClassUrgent
}

// Protocol describes ZMTP to a Registry. It has no port of its own.
func Protocol() parsers.Protocol {
	return parsers.Protocol{
		Name:         "zmtp",
		MessageNames: names[:],
		Content:      []uint8{uint8(Message)}, // of a single frame nobody knows where a topic ends
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id) },
	}
}
