package e2e

import (
	"iter"
	"net/netip"
)

// A driver is a protocol's own client library at work.
type driver interface {
	// subscribe connects, and returns once the broker has agreed. From then on
	// got is called with the body of each message, one after another.
	subscribe(c caller, topic string, got func(body []byte)) error
	// publish connects, sends the bodies as they come, and returns when the last
	// has left.
	publish(c caller, topic string, bodies iter.Seq[[]byte]) error
}

// A caller is a client before it has a connection.
type caller struct {
	broker netip.AddrPort
	from   netip.Addr
	name   string
	qos    byte            // above 0, deliveries are acknowledged, and so is what is published
	lost   func(err error) // told when a subscriber's connection breaks
}

// A protocol is a driver, and the port on which its broker listens.
type protocol struct {
	driver
	port uint16
}

var protocols = map[string]protocol{
	"mqtt":                {mqttDriver{"tcp://%s"}, 1883},
	"mqtt over websocket": {mqttDriver{"ws://%s/mqtt"}, 9001},
	"nats":                {natsDriver{}, 4222},
	"redis":               {redisDriver{}, 6379},
	"amqp":                {amqpDriver{}, 5672},
	"stomp":               {stompDriver{}, 61613},
}

// protocolOf returns a protocol by name, and MQTT for none.
func protocolOf(name string) protocol {
	if name == "" {
		name = "mqtt"
	}
	return protocols[name]
}
