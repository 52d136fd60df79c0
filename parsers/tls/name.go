package tls

import "sheaf/parsers"

// A Name is a record's kind: its content type (RFC 8446 section 5.1).
type Name uint8

// The names.
const (
	ChangeCipherSpec Name = iota + 20
	Alert
	Handshake
	ApplicationData
	Heartbeat // RFC 6520
)

var names = [...]string{
	ChangeCipherSpec: "change_cipher_spec", Alert: "alert", Handshake: "handshake",
	ApplicationData: "application_data", Heartbeat: "heartbeat",
}

// String returns the name as the RFC writes it, the empty string for numbers that
// no content type has.
func (n Name) String() string {
	if int(n) >= len(names) {
		return ""
	}
	return names[n]
}

// class returns how a record may wait. All but data is of the beginning or the end
// of a connection.
func (n Name) class() parsers.Class {
	if n == ApplicationData {
		return parsers.ClassData
	}
	return parsers.ClassUrgent
}

// ports are those of pub-sub protocols over TLS: MQTT, AMQP, Redis, Kafka, STOMP
// (two) and XMPP. A gateway carries them with messages and not with bulk, so those
// of HTTPS are not among them: there the content has to speak for itself.
var ports = []uint16{8883, 5671, 6380, 9093, 61614, 61617, 5223}

// Protocol describes TLS to a Registry.
func Protocol() parsers.Protocol {
	return parsers.Protocol{
		Name:         "tls",
		Ports:        ports,
		Encrypted:    true,
		MessageNames: names[:],
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id) },
	}
}
