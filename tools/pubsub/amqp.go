package pubsub

import (
	"context"
	"fmt"
	"iter"
	"net"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// amqpDriver drives amqp091-go: a queue for each subscriber, bound to RabbitMQ's
// topic exchange.
type amqpDriver struct{}

// Exchange is the one that messages go to, RabbitMQ's own for topics.
const Exchange = "amq.topic"

func (amqpDriver) connect(c Caller) (*amqp.Connection, *amqp.Channel, error) {
	config := amqp.Config{Dial: func(_, _ string) (net.Conn, error) { return c.Connect() }, Properties: amqp.NewConnectionProperties()}
	config.Properties.SetClientConnectionName(c.Name)
	conn, err := amqp.DialConfig("amqp://guest:guest@"+c.Broker.String()+"/", config)
	if err != nil {
		return nil, nil, err
	}
	ch, err := conn.Channel()
	return conn, ch, err
}

func (d amqpDriver) Subscribe(c Caller, topic string, got func(body []byte)) error {
	_, ch, err := d.connect(c)
	if err != nil {
		return err
	}
	queue, err := ch.QueueDeclare("", false, true, true, false, nil) // gone with the connection
	if err != nil {
		return err
	}
	if err := ch.QueueBind(queue.Name, topic, Exchange, false, nil); err != nil {
		return err
	}
	messages, err := ch.Consume(queue.Name, "", c.QoS == 0, true, false, false, nil)
	if err != nil {
		return err
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	go func() {
		for m := range messages {
			got(m.Body)
			if c.QoS > 0 {
				if err := m.Ack(false); err != nil {
					c.Lost(err)
				}
			}
		}
		c.Lost(<-closed)
	}()
	return nil
}

func (d amqpDriver) Publish(c Caller, topic string, bodies iter.Seq[[]byte]) error {
	conn, ch, err := d.connect(c)
	if err != nil {
		return err
	}
	if c.QoS > 0 {
		if err := ch.Confirm(false); err != nil {
			return err
		}
	}
	for body := range bodies {
		confirm, err := ch.PublishWithDeferredConfirm(Exchange, topic, false, false, amqp.Publishing{ContentType: "application/json", Body: body})
		if err != nil {
			return err
		}
		if c.QoS > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			ok, err := confirm.WaitContext(ctx)
			cancel()
			if err != nil || !ok {
				return fmt.Errorf("%s: no confirmation: %w", c.Name, err)
			}
		}
	}
	return conn.Close()
}
