package record

import (
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"

	"sheaf/tools/pubsub"
)

// resuming keeps a client's session for its next connection. Its key share is of X25519
// alone, as that of devices which wake up for a message.
func resuming(c *tls.Config) {
	c.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	c.CurvePreferences = []tls.CurveID{tls.X25519}
}

// reconnects is n devices that sleep, and connect for each report anew. All connections
// of a device but its first resume a session, with a pre-shared key in TLS 1.3.
func reconnects(name string, n, times int, interval time.Duration) Workload {
	return Workload{
		Name: name, Protocol: "mqtt", Clients: n, Length: time.Duration(times) * interval,
		About: fmt.Sprintf("mqtt over TLS 1.3: %d devices connect every %v, resuming a session, publish about 137 bytes, QoS 1, and leave", n, interval),
		run: func(s *stage) error {
			at, err := s.forward(mqttPort)
			if err != nil {
				return err
			}
			if err := pubsub.Protocols["mqtt"].Subscribe(s.beside(), "site/1/dev/+/telemetry", s.deliver); err != nil {
				return err
			}
			s.rec.start()
			var resumed atomic.Int64
			var connections int64
			var all []event
			for i := range n {
				s.tls[i].VerifyConnection = func(c tls.ConnectionState) error {
					if c.DidResume {
						resumed.Add(1)
					}
					return nil
				}
				next := newReading(i).next
				all = append(all, s.every(interval, 1, func() error {
					connections++
					c, err := connect(s.caller(i, 0, at))
					if err != nil {
						return err
					}
					defer c.Disconnect(0)
					return await(c.Publish(fmt.Sprintf("site/1/dev/%04d/telemetry", i), 1, false, next(s.clock.Now())))
				})...)
			}
			if err := s.play(all); err != nil {
				return err
			}
			if n := resumed.Load(); n != connections-int64(s.Clients) {
				return fmt.Errorf("%d of %d connections resumed a session", n, connections)
			}
			return nil
		},
	}
}
