package e2e

import (
	"fmt"
	"testing"
)

// MQTT as browsers speak it. The masks of what clients send are random, four
// bytes for each acknowledgement.
func TestWebSocket(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto(fmt.Sprintf("listener 9001 %s", l.broker().host4), "protocol websockets")
	l.compare(
		trial{
			fanout:   fanout{protocol: "mqtt over websocket", topic: "plant/line-3/state"},
			delivery: tally{"mqtt-ws", "PUBLISH", "plant/line-3/state"},
			claim:    "mosquitto over WebSocket, fan-out to 50",
		},
		trial{
			fanout:   fanout{protocol: "mqtt over websocket", topic: "plant/line-3/orders", qos: 1, far: true},
			delivery: tally{"mqtt-ws", "PUBLISH", "plant/line-3/orders"}, answer: tally{"mqtt-ws", "PUBACK", ""},
			claim: "mosquitto over WebSocket, the same acknowledged",
		},
	)
}
