package pubsub

import (
	"iter"
	"time"

	"github.com/go-stomp/stomp/v3"
)

// stompDriver drives go-stomp at RabbitMQ, with acknowledgements of the kind
// that speaks for all messages before it.
type stompDriver struct{}

func (stompDriver) session(c Caller) (*stomp.Conn, error) {
	conn, err := c.Connect()
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second))
	s, err := stomp.Connect(conn, stomp.ConnOpt.Login("guest", "guest"), stomp.ConnOpt.Host("/"))
	if err != nil {
		conn.Close()
		return nil, err
	}
	return s, conn.SetDeadline(time.Time{})
}

func (d stompDriver) Subscribe(c Caller, topic string, got func(body []byte)) error {
	conn, err := d.session(c)
	if err != nil {
		return err
	}
	mode := stomp.AckAuto
	if c.QoS > 0 {
		mode = stomp.AckClient
	}
	subscription, err := conn.Subscribe("/topic/"+topic, mode)
	if err != nil {
		return err
	}
	go func() {
		for {
			m, err := subscription.Read()
			if err != nil {
				c.Lost(err)
				return
			}
			got(m.Body)
			if m.ShouldAck() {
				if err := conn.Ack(m); err != nil {
					c.Lost(err)
				}
			}
		}
	}()
	// A broker takes a client's frames one after another: the receipt for this
	// one says that it has the subscription.
	return conn.Send("/topic/hello", "text/plain", []byte(c.Name), stomp.SendOpt.Receipt)
}

func (d stompDriver) Publish(c Caller, topic string, bodies iter.Seq[[]byte]) error {
	conn, err := d.session(c)
	if err != nil {
		return err
	}
	send := func(body []byte) error { return conn.Send("/topic/"+topic, "application/json", body) }
	if c.QoS > 0 {
		send = func(body []byte) error {
			return conn.Send("/topic/"+topic, "application/json", body, stomp.SendOpt.Receipt)
		}
	}
	for body := range bodies {
		if err := send(body); err != nil {
			return err
		}
	}
	return conn.Disconnect()
}
