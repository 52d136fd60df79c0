package websocket

import "sheaf/parsers"

// A Name is the kind of a frame, or of what is there before the first.
type Name uint8

// The kinds. In a protocol that runs over WebSocket they are numbered behind its
// own.
const (
	Upgrade      Name = iota // the HTTP request or answer
	Text                     // opcode 1
	Binary                   // opcode 2
	Close                    // opcode 8
	Ping                     // opcode 9
	Pong                     // opcode 10
	Continuation             // opcode 0; spans have the name of the message that goes on
)

var names = [...]string{"UPGRADE", "TEXT", "BINARY", "CLOSE", "PING", "PONG", "CONTINUATION"}

// String returns the name in upper case.
func (n Name) String() string {
	if int(n) >= len(names) {
		return ""
	}
	return names[n]
}

func (n Name) class() parsers.Class {
	if n == Text || n == Binary || n == Continuation {
		return parsers.ClassData
	}
	return parsers.ClassUrgent
}

// maskCounter is the counter that keys follow.
const maskCounter = parsers.NumCounters - 1

// Protocol describes WebSocket that carries anything to a Registry. It has no port
// of its own.
func Protocol() parsers.Protocol {
	return parsers.Protocol{
		Name:         "websocket",
		MessageNames: names[:],
		Content:      []uint8{uint8(Text), uint8(Binary)},
		Probe:        func(payload []byte) parsers.Confidence { return probe(payload, nil) },
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id, nil) },
	}
}

// Over describes a protocol over WebSocket to a Registry, where it has to come
// before Protocol. It is called NAME-ws, and ports are the well-known ones of its
// brokers. The inner protocol must leave the last of parsers.NumCounters alone.
func Over(inner parsers.Protocol, ports ...uint16) parsers.Protocol {
	all := append([]string(nil), inner.MessageNames...)
	return parsers.Protocol{
		Name:         inner.Name + "-ws",
		Ports:        ports,
		MessageNames: append(all, names[:]...),
		Probe:        func(payload []byte) parsers.Confidence { return probe(payload, &inner) },
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id, &inner) },
	}
}
