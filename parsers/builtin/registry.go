// Package builtin lists the protocols that come with the program. A new one is
// a package beside parsers/mqtt and a line here. It holds no state; every call
// of Registry returns a table of its own, which its caller may bind ports in.
//
// The order gives the protocols their numbers and decides who is asked first
// about bytes on unknown ports.
package builtin

import (
	"sheaf/parsers"
	"sheaf/parsers/amqp"
	"sheaf/parsers/amqp10"
	"sheaf/parsers/coap"
	"sheaf/parsers/kafka"
	"sheaf/parsers/mqtt"
	"sheaf/parsers/mqttsn"
	"sheaf/parsers/nats"
	"sheaf/parsers/resp"
	"sheaf/parsers/stomp"
	"sheaf/parsers/tls"
	"sheaf/parsers/websocket"
	"sheaf/parsers/zmtp"
)

// Registry returns a new table of all protocols.
func Registry() *parsers.Registry {
	return parsers.NewRegistry(
		mqtt.Protocol(),
		amqp.Protocol(),
		amqp10.Protocol(),
		nats.Protocol(),
		resp.Protocol(),
		stomp.Protocol(),
		coap.Protocol(),
		zmtp.Protocol(),
		kafka.Protocol(),
		mqttsn.Protocol(),
		// Mosquitto's usual port, EMQX' and RabbitMQ's. Not 80 and 8080, which are
		// for bulk as well; the content says it there.
		websocket.Over(mqtt.Protocol(), 9001, 8083, 15675),
		websocket.Protocol(),
		tls.Protocol(),
	)
}
