package record

import (
	"errors"
	"fmt"
	"io"
	"time"

	"sheaf/tools/pubsub"
)

// A Workload is traffic to record.
type Workload struct {
	Name     string // of its capture
	About    string
	Protocol string        // of its broker
	Clients  int           // hosts of clients
	Length   time.Duration // of the steady part
	run      func(*stage) error
}

// Workloads are those of README's table, in its order.
func Workloads() []Workload {
	return []Workload{
		fanout("mqtt-fanout-10", "mqtt", 10, 0, 20*time.Second),
		fanout("mqtt-fanout-100", "mqtt", 100, 0, 5*time.Second),
		fanout("mqtt-fanout-100-qos1", "mqtt", 100, 1, 3*time.Second),
		fanout("mqtt-fanout-500", "mqtt", 500, 0, time.Second),
		telemetry("mqtt-telemetry-200-qos1", 200, 2*time.Second, 10*time.Second),
		control("mqtt-control-200", 200, 8*time.Second),
		mixed("mqtt-mixed-50x20", 3*time.Second),
		skewed("mqtt-fanoutskew-100-qos1", 100, 2*time.Second),
		fanout("nats-fanout-100", "nats", 100, 0, 4*time.Second),
		skewedNATS("nats-fanoutskew-100", 100, 4*time.Second),
		fanout("redis-fanout-100", "redis", 100, 0, 4*time.Second),
		fanout("amqp-fanout-100", "amqp", 100, 0, 4*time.Second),
		single("mqtt-single-qos1", 30*time.Second),
		noise("mqtt-noise-50-qos1", 50, 20*time.Second),
		overTLS("mqtt-tls-fanout-100", 100, time.Second),
		bulk("bulk", 300_000),
	}
}

// A Config says how to record.
type Config struct {
	Broker string        // address of one on this machine, in the place of an embedded one
	Length time.Duration // of the steady part; 0 is the workload's own
}

// Record records the workload to w and returns the number of packets.
func (w Workload) Record(cfg Config, out io.Writer) (packets int, err error) {
	if cfg.Length > 0 {
		w.Length = cfg.Length
	}
	s := &stage{Workload: w, clock: newClock()}
	if s.rec, err = newRecorder(out, s.clock); err != nil {
		return 0, err
	}
	if w.Protocol != "" {
		if s.broker, err = startBroker(w.Protocol, cfg.Broker); err != nil {
			return 0, fmt.Errorf("%s: %w", w.Name, err)
		}
		defer s.broker.end()
	}
	if s.net, err = newNetwork(w.Clients, s.rec); err != nil {
		return 0, fmt.Errorf("%s: %w", w.Name, err)
	}
	defer s.net.close()
	if err := w.run(s); err != nil {
		return 0, fmt.Errorf("%s: %w", w.Name, err)
	}
	return s.rec.stop()
}

// fanout is one topic with n subscribers.
func fanout(name, protocol string, n int, qos byte, length time.Duration) Workload {
	return Workload{
		Name: name, Protocol: protocol, Clients: n, Length: length,
		About: fmt.Sprintf("%s: %d subscribers, QoS %d, %d messages/s of about 116 bytes", protocol, n, qos, rate),
		run: func(s *stage) error {
			p := pubsub.Protocols[protocol]
			at, err := s.net.forward(p.Port, s.broker.address, nil)
			if err != nil {
				return err
			}
			s.rec.start()
			topic := topicOf(protocol)
			if err := s.each(func(i int) error { return p.Subscribe(s.caller(i, qos, at), topic, s.deliver) }); err != nil {
				return err
			}
			return s.fanOut(p, topic, qos)
		},
	}
}

// fanOut publishes at the rate of a fan-out from beside the broker, to all clients.
func (s *stage) fanOut(p pubsub.Protocol, topic string, qos byte) error {
	next := newAlarm().next
	var failed error
	caller := s.beside()
	caller.QoS = qos
	err := p.Publish(caller, topic, func(yield func([]byte) bool) {
		start := s.clock.Now().Add(pause)
		for i := range int(s.Length * rate / time.Second) {
			failed = s.turn(start.Add(time.Duration(i)*time.Second/rate), s.Clients, func() error {
				if !yield(next(s.clock.Now())) {
					return errors.New("the publisher gave up")
				}
				return nil
			})
			if failed != nil {
				return
			}
		}
	})
	return errors.Join(failed, err)
}

// topicOf returns the topic of a fan-out as a protocol writes it.
func topicOf(protocol string) string {
	switch protocol {
	case "nats", "amqp":
		return "plant.4.alarms"
	case "redis":
		return "plant:4:alarms"
	}
	return alarms
}
