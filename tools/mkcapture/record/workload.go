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
	security *security     // nil where the capture has no secrets of TLS
	run      func(*stage) error
}

// TLS tells whether the capture has the secrets of connections over TLS, for which the
// broker is started with a certificate: mosquitto, of which none can be embedded, or
// nats-server.
func (w Workload) TLS() bool { return w.security != nil }

// File returns the name of the workload's capture, gzipped: pcapng where it has secrets.
func (w Workload) File() string {
	if w.TLS() {
		return w.Name + ".pcapng.gz"
	}
	return w.Name + ".pcap.gz"
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
		fanout("mqtt-tls13-fanout-20", "mqtt", 20, 0, 900*time.Millisecond).over(security{about: "over TLS 1.3 of OpenSSL's, AES-256-GCM"}),
		fanout("mqtt-tls12-fanout-20-qos1", "mqtt", 20, 1, time.Second).over(security{
			about:     "over TLS 1.2, AES-128-GCM",
			configure: tls12,
		}),
		telemetry("mqtt-mtls13-telemetry-20-qos1", 20, 2*time.Second, 12*time.Second).over(security{
			about:        "over TLS 1.3, ChaCha20-Poly1305, with certificates",
			lines:        []string{"require_certificate true", "use_identity_as_username true", "ciphers_tls1.3 TLS_CHACHA20_POLY1305_SHA256"},
			certificates: true,
		}),
		fanout("nats-tls13-fanout-20", "nats", 20, 0, 600*time.Millisecond).over(security{about: "over TLS 1.3 of Go's behind INFO, AES-128-GCM"}),
		reconnects("mqtt-tls13-reconnect-5", 5, 10, 2*time.Second).over(security{configure: resuming}),
		keyUpdates("mqtt-tls13-keyupdate-6-qos1", 6, 4, 2*time.Second).over(security{}),
		large("mqtt-tls13-large-3-lossy", 3, []int{2000, 5000, 9000, 17500}).over(security{loses: 11}),
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
	err = s.prepare(cfg, out)
	if s.broker != nil {
		defer s.broker.end()
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", w.Name, err)
	}
	if s.net, err = newNetwork(w.Clients, s.rec); err != nil {
		return 0, fmt.Errorf("%s: %w", w.Name, err)
	}
	defer s.net.close()
	if err := w.run(s); err != nil {
		return 0, fmt.Errorf("%s: %w", w.Name, err)
	}
	if packets, err = s.rec.stop(); err == nil && s.vault != nil {
		err = s.vault.finish(out)
	}
	return packets, err
}

// prepare makes the recorder and starts the broker.
func (s *stage) prepare(cfg Config, out io.Writer) (err error) {
	switch {
	case s.security != nil && cfg.Broker != "":
		return errors.New("its broker has to be of its own: for TLS it has a certificate of this recording")
	case s.security != nil:
		s.vault = &vault{}
		s.rec = &recorder{clock: s.clock, w: s.vault, loses: s.security.loses}
		return s.secure()
	case s.Protocol != "":
		if s.broker, err = startBroker(s.Protocol, cfg.Broker); err != nil {
			return err
		}
	}
	s.rec, err = newRecorder(out, s.clock)
	return err
}

// fanout is one topic with n subscribers.
func fanout(name, protocol string, n int, qos byte, length time.Duration) Workload {
	return Workload{
		Name: name, Protocol: protocol, Clients: n, Length: length,
		About: fmt.Sprintf("%s: %d subscribers, QoS %d, %d messages/s of about 116 bytes", protocol, n, qos, rate),
		run: func(s *stage) error {
			p := pubsub.Protocols[protocol]
			at, err := s.forward(p.Port)
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
