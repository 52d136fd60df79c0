package pubsub

import (
	"context"
	"iter"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsDriver drives nats.go: plain subjects, or JetStream with an acknowledgement
// for each message where they are asked for.
type natsDriver struct{}

// Stream is JetStream's, kept in memory.
const Stream = "PLANT"

// made is how the first subscriber of a process fared with making the stream. The
// others wait for it: nats-server 2.9 crashes (updateWithAdvisory in its stream.go)
// when one asks for a stream that is still being made for another.
var made struct {
	sync.Once
	err error
}

// A natsDialer is a caller as nats.go wants it, which begins TLS itself: a NATS server
// says something first.
type natsDialer struct{ Caller }

// Dial implements nats.CustomDialer.
func (d natsDialer) Dial(_, _ string) (net.Conn, error) {
	d.TLS = nil
	return d.Connect()
}

// ConnectNATS connects, and does not mend the connection when it breaks.
func ConnectNATS(c Caller, more ...nats.Option) (*nats.Conn, error) {
	options := append([]nats.Option{nats.Name(c.Name), nats.SetCustomDialer(natsDialer{c}), nats.Timeout(20 * time.Second), nats.NoReconnect()}, more...)
	if c.TLS != nil {
		options = append(options, nats.Secure(c.TLS))
	}
	return nats.Connect("nats://"+c.Broker.String(), options...)
}

func (d natsDriver) Subscribe(c Caller, topic string, got func(body []byte)) error {
	conn, err := ConnectNATS(c, nats.ClosedHandler(func(conn *nats.Conn) { c.Lost(conn.LastError()) }))
	if err != nil {
		return err
	}
	if c.QoS == 0 {
		if _, err := conn.Subscribe(topic, func(m *nats.Msg) { got(m.Data) }); err != nil {
			return err
		}
		return conn.FlushTimeout(30 * time.Second)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	made.Do(func() {
		_, made.err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: Stream, Subjects: []string{topic}, Storage: jetstream.MemoryStorage})
	})
	if made.err != nil {
		return made.err
	}
	consumer, err := js.CreateConsumer(ctx, Stream, jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverNewPolicy, FilterSubject: topic,
	})
	if err != nil {
		return err
	}
	_, err = consumer.Consume(func(m jetstream.Msg) {
		got(m.Data())
		if err := m.Ack(); err != nil {
			c.Lost(err)
		}
	})
	return err
}

func (d natsDriver) Publish(c Caller, topic string, bodies iter.Seq[[]byte]) error {
	conn, err := ConnectNATS(c)
	if err != nil {
		return err
	}
	defer conn.Close()
	send := conn.Publish
	if c.QoS > 0 {
		js, err := jetstream.New(conn)
		if err != nil {
			return err
		}
		send = func(topic string, body []byte) error {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_, err := js.Publish(ctx, topic, body)
			return err
		}
	}
	for body := range bodies {
		if err := send(topic, body); err != nil {
			return err
		}
	}
	return conn.FlushTimeout(10 * time.Second)
}
