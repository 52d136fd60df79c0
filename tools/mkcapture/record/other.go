package record

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/nats-io/nats.go"

	"sheaf/tools/pubsub"
)

// skewedNATS is a fan-out whose subscribers have 0 to 149 other subscriptions, so
// that the identifiers in a message's copies differ.
func skewedNATS(name string, n int, length time.Duration) Workload {
	return Workload{
		Name: name, Protocol: "nats", Clients: n, Length: length,
		About: fmt.Sprintf("nats: %d subscribers, %d messages/s, every subscription identifier another", n, rate),
		run: func(s *stage) error {
			p := pubsub.Protocols["nats"]
			at, err := s.forward(p.Port)
			if err != nil {
				return err
			}
			s.rec.start()
			topic := topicOf("nats")
			err = s.each(func(i int) error {
				conn, err := pubsub.ConnectNATS(s.caller(i, 0, at))
				if err != nil {
					return err
				}
				for other := range i * 7919 % 150 {
					if _, err := conn.Subscribe(fmt.Sprintf("other.%d", other), func(*nats.Msg) {}); err != nil {
						return err
					}
				}
				if _, err := conn.Subscribe(topic, func(m *nats.Msg) { s.deliver(m.Data) }); err != nil {
					return err
				}
				return conn.FlushTimeout(timeout)
			})
			if err != nil {
				return err
			}
			return s.fanOut(p, topic, 0)
		},
	}
}

// overTLS is a fan-out whose connections are TLS 1.3: what is in them is noise.
func overTLS(name string, n int, length time.Duration) Workload {
	return Workload{
		Name: name, Protocol: "mqtt", Clients: n, Length: length,
		About: fmt.Sprintf("mqtt over TLS 1.3: %d subscribers, QoS 0, %d messages/s", n, rate),
		run: func(s *stage) error {
			server, client, err := tlsConfigs()
			if err != nil {
				return err
			}
			at, err := s.net.forward(8883, s.broker.address, server)
			if err != nil {
				return err
			}
			s.rec.start()
			p := pubsub.Protocols["mqtt"]
			if err := s.each(func(i int) error {
				c := s.caller(i, 0, at)
				c.TLS = client
				return p.Subscribe(c, alarms, s.deliver)
			}); err != nil {
				return err
			}
			return s.fanOut(p, alarms, 0)
		},
	}
}

// bulk is a download of random bytes.
func bulk(name string, size int64) Workload {
	return Workload{
		Name: name, Clients: 1, About: fmt.Sprintf("a download of %d random bytes", size),
		run: func(s *stage) error {
			at, err := s.net.serve(5201, func(c net.Conn) {
				defer c.Close()
				_, _ = io.CopyN(c, rand.Reader, size)
			})
			if err != nil {
				return err
			}
			s.rec.start()
			return s.each(func(int) error {
				c, err := s.caller(0, 0, at).Connect()
				if err != nil {
					return err
				}
				defer c.Close()
				got, err := io.Copy(io.Discard, c)
				if err == nil && got != size {
					err = fmt.Errorf("%d bytes came", got)
				}
				return err
			})
		},
	}
}
