package e2e

import (
	"context"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// natsDriver drives nats.go: plain subjects, or JetStream with an acknowledgement
// for each message where they are asked for.
type natsDriver struct{}

// stream is JetStream's, kept in memory.
const stream = "PLANT"

// made is how the first subscriber of a process fared with making the stream. The
// others wait for it: nats-server 2.9 crashes (updateWithAdvisory in its stream.go)
// when one asks for a stream that is still being made for another.
var made struct {
	sync.Once
	err error
}

func (natsDriver) connect(c caller, more ...nats.Option) (*nats.Conn, error) {
	options := append([]nats.Option{nats.Name(c.name), nats.SetCustomDialer(dialerFrom(c.from)), nats.Timeout(20 * time.Second), nats.NoReconnect()}, more...)
	return nats.Connect("nats://"+c.broker.String(), options...)
}

func (d natsDriver) subscribe(c caller, topic string, got func(body []byte)) error {
	conn, err := d.connect(c, nats.ClosedHandler(func(conn *nats.Conn) { c.lost(conn.LastError()) }))
	if err != nil {
		return err
	}
	if c.qos == 0 {
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
		_, made.err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: stream, Subjects: []string{topic}, Storage: jetstream.MemoryStorage})
	})
	if made.err != nil {
		return made.err
	}
	consumer, err := js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckExplicitPolicy, DeliverPolicy: jetstream.DeliverNewPolicy, FilterSubject: topic,
	})
	if err != nil {
		return err
	}
	_, err = consumer.Consume(func(m jetstream.Msg) {
		got(m.Data())
		if err := m.Ack(); err != nil {
			c.lost(err)
		}
	})
	return err
}

func (d natsDriver) publish(c caller, topic string, bodies iter.Seq[[]byte]) error {
	conn, err := d.connect(c)
	if err != nil {
		return err
	}
	defer conn.Close()
	send := conn.Publish
	if c.qos > 0 {
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
			delivery: tally{"nats", "MSG", "plant.line-3.state"}, share: 0.1,
		},
		trial{
			fanout:   fanout{protocol: "nats", topic: "plant.line-3.orders", qos: 1, far: true},
			delivery: tally{"nats", "MSG", "plant.line-3.orders"}, answer: tally{"nats", "PUB", "$JS.ACK." + stream}, share: 0.1,
		},
	)
}
