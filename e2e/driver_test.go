package e2e

import "sheaf/tools/pubsub"

// protocolOf returns a protocol by name, and MQTT for none.
func protocolOf(name string) pubsub.Protocol {
	if name == "" {
		name = "mqtt"
	}
	return pubsub.Protocols[name]
}
