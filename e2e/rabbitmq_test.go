package e2e

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// amqpDriver drives amqp091-go: a queue for each subscriber, bound to RabbitMQ's
// topic exchange.
type amqpDriver struct{}

const exchange = "amq.topic"

func (amqpDriver) connect(c caller) (*amqp.Connection, *amqp.Channel, error) {
	config := amqp.Config{Dial: dialerFrom(c.from).Dial, Properties: amqp.NewConnectionProperties()}
	config.Properties.SetClientConnectionName(c.name)
	conn, err := amqp.DialConfig("amqp://guest:guest@"+c.broker.String()+"/", config)
	if err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel()
	return conn, ch, err
}

func (d amqpDriver) subscribe(c caller, topic string, got func(body []byte)) error {
	_, ch, err := d.connect(c)
	if err != nil {
		return err
	}
	queue, err := ch.QueueDeclare("", false, true, true, false, nil) // gone with the connection
	if err != nil {
		return err
	}
	if err := ch.QueueBind(queue.Name, topic, exchange, false, nil); err != nil {
		return err
	}
	messages, err := ch.Consume(queue.Name, "", c.qos == 0, true, false, false, nil)
	if err != nil {
		return err
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	go func() {
		for m := range messages {
			got(m.Body)
			if c.qos > 0 {
				if err := m.Ack(false); err != nil {
					c.lost(err)
				}
			}
		}
		c.lost(<-closed)
	}()
	return nil
}

func (d amqpDriver) publish(c caller, topic string, bodies iter.Seq[[]byte]) error {
	conn, ch, err := d.connect(c)
	if err != nil {
		return err
	}
	if c.qos > 0 {
		if err := ch.Confirm(false); err != nil {
			return err
		}
	}
	for body := range bodies {
		confirm, err := ch.PublishWithDeferredConfirm(exchange, topic, false, false, amqp.Publishing{ContentType: "application/json", Body: body})
		if err != nil {
			return err
		}
		if c.qos > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			ok, err := confirm.WaitContext(ctx)
			cancel()
			if err != nil || !ok {
				return fmt.Errorf("%s: no confirmation: %w", c.name, err)
			}
		}
	}
	return conn.Close()
}

// rabbitmq starts RabbitMQ, which also speaks STOMP. What it writes is in the
// lab's folder. It is one process, and so is Erlang's port mapper, which it would
// otherwise start to stay: the test ends both.
func (s *site) rabbitmq() {
	const server = "/usr/lib/rabbitmq/bin/rabbitmq-server" // the one in the path becomes another user
	l := s.lan.lab
	l.t.Helper()
	l.program(server, "rabbitmq-server")
	dir := filepath.Join(l.dir, "rabbitmq")
	if err := os.Mkdir(dir, 0o700); err != nil {
		l.t.Fatal(err)
	}
	for name, lines := range map[string][]string{
		"rabbitmq.conf": {
			fmt.Sprintf("listeners.tcp.1 = %s:5672", s.host4),
			fmt.Sprintf("stomp.listeners.tcp.1 = %s:61613", s.host4),
			"loopback_users = none",
			"disk_free_limit.absolute = 1MB",
			"log.file = false",
			"log.console = true",
			"log.console.level = warning",
		},
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
	start := func(program string, ports ...int) {
		cmd := s.lan.command(program)
		cmd.Env, cmd.Dir = env, dir
		launch(l.t, filepath.Base(program), cmd)
		s.listening(ports...)
	}
	start("epmd", 4369)
	start(server, 5672, 61613)
}

// RabbitMQ, once for both protocols.
func TestRabbitMQ(t *testing.T) {
	l := newLab(t, 2)
	l.broker().rabbitmq()
	l.compare(
		trial{
			fanout:   fanout{protocol: "amqp", topic: "plant.line-3.state"},
			delivery: tally{"amqp", "basic.deliver", exchange + "/plant.line-3.state"}, share: 0.1,
		},
		trial{
			fanout:   fanout{protocol: "amqp", topic: "plant.line-3.orders", qos: 1, far: true},
			delivery: tally{"amqp", "basic.deliver", exchange + "/plant.line-3.orders"}, answer: tally{"amqp", "basic.ack", ""}, share: 0.1,
		},
		trial{
			fanout:   fanout{protocol: "stomp", topic: "plant.line-4.state"},
			delivery: tally{"stomp", "MESSAGE", "/topic/plant.line-4.state"}, share: 0.1,
		},
		trial{
			fanout:   fanout{protocol: "stomp", topic: "plant.line-4.orders", qos: 1, far: true},
			delivery: tally{"stomp", "MESSAGE", "/topic/plant.line-4.orders"}, answer: tally{"stomp", "ACK", ""}, share: 0.1,
		},
	)
}
