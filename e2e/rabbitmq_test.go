package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sheaf/tools/pubsub"
)

// rabbitmq starts RabbitMQ, which also speaks STOMP. What it writes is in the
// lab's folder. It is one process, and so is Erlang's port mapper, which it would
// otherwise start to stay: the test ends both. The lines are more of its configuration.
func (s *site) rabbitmq(lines ...string) *process {
	const server = "/usr/lib/rabbitmq/bin/rabbitmq-server" // the one in the path becomes another user
	l := s.lan.lab
	l.t.Helper()
	l.program(server, "rabbitmq-server")
	dir := filepath.Join(l.dir, "rabbitmq")
	if err := os.Mkdir(dir, 0o700); err != nil {
		l.t.Fatal(err)
	}
	for name, lines := range map[string][]string{
		"rabbitmq.conf": append([]string{
			fmt.Sprintf("listeners.tcp.1 = %s:5672", s.host4),
			fmt.Sprintf("stomp.listeners.tcp.1 = %s:61613", s.host4),
			"loopback_users = none",
			"disk_free_limit.absolute = 1MB",
			"log.file = false",
			"log.console = true",
			"log.console.level = warning",
		}, lines...),
		"plugins":         {"[rabbitmq_stomp]."},
		"advanced.config": {"[]."},
		"env.conf":        nil,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
	env := append(os.Environ(), "HOME="+dir, "ERL_EPMD_ADDRESS=127.0.0.1",
		"RABBITMQ_NODENAME=sheaf@localhost",
		"RABBITMQ_CONF_ENV_FILE="+dir+"/env.conf",
		"RABBITMQ_CONFIG_FILE="+dir+"/rabbitmq.conf",
		"RABBITMQ_ADVANCED_CONFIG_FILE="+dir+"/advanced.config",
		"RABBITMQ_ENABLED_PLUGINS_FILE="+dir+"/plugins",
		"RABBITMQ_MNESIA_BASE="+dir+"/mnesia",
		"RABBITMQ_LOG_BASE="+dir,
		"RABBITMQ_PID_FILE="+dir+"/pid",
		"RABBITMQ_ALLOW_INPUT=1", "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-noinput", // in the place of the script
	)
	start := func(program string, ports ...int) *process {
		cmd := s.lan.command(program)
		cmd.Env, cmd.Dir = env, dir
		p := launch(l.t, filepath.Base(program), cmd)
		s.listening(ports...)
		return p
	}
	start("epmd", 4369)
	return start(server, 5672, 61613)
}

// RabbitMQ, once for both protocols.
func TestRabbitMQ(t *testing.T) {
	l := newLab(t, 2)
	l.broker().rabbitmq()
	l.compare(
		trial{
			fanout:   fanout{protocol: "amqp", topic: "plant.line-3.state"},
			delivery: tally{"amqp", "basic.deliver", pubsub.Exchange + "/plant.line-3.state"},
			claim:    "RabbitMQ, fan-out to 50",
		},
		trial{
			fanout:   fanout{protocol: "amqp", topic: "plant.line-3.orders", qos: 1, far: true},
			delivery: tally{"amqp", "basic.deliver", pubsub.Exchange + "/plant.line-3.orders"}, answer: tally{"amqp", "basic.ack", ""},
			claim: "RabbitMQ, the same acknowledged",
		},
		trial{
			fanout:   fanout{protocol: "stomp", topic: "plant.line-4.state"},
			delivery: tally{"stomp", "MESSAGE", "/topic/plant.line-4.state"},
			claim:    "RabbitMQ over STOMP, fan-out to 50",
		},
		trial{
			fanout:   fanout{protocol: "stomp", topic: "plant.line-4.orders", qos: 1, far: true},
			delivery: tally{"stomp", "MESSAGE", "/topic/plant.line-4.orders"}, answer: tally{"stomp", "ACK", ""},
			claim: "RabbitMQ over STOMP, the same acknowledged",
		},
	)
}
