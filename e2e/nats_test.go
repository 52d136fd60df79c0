package e2e

import (
	"testing"

	"sheaf/tools/pubsub"
)

// nats starts nats-server, with JetStream.
func (s *site) nats() {
	l := s.lan.lab
	l.t.Helper()
	l.program("nats-server", "nats-server")
	launch(l.t, "nats-server", s.lan.command("nats-server", "-a", s.host4.String(), "-p", "4222", "-js", "-sd", l.dir+"/jetstream"))
	s.listening(4222)
}

func TestNATS(t *testing.T) {
	l := newLab(t, 2)
	l.broker().nats()
	l.compare(
		trial{
			fanout:   fanout{protocol: "nats", topic: "plant.line-3.state"},
			delivery: tally{"nats", "MSG", "plant.line-3.state"},
			claim:    "NATS, fan-out to 50",
		},
		trial{
			fanout:   fanout{protocol: "nats", topic: "plant.line-3.orders", qos: 1, far: true},
			delivery: tally{"nats", "MSG", "plant.line-3.orders"}, answer: tally{"nats", "PUB", "$JS.ACK." + pubsub.Stream},
			claim: "NATS JetStream, the same acknowledged",
		},
	)
}
