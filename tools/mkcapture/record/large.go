package record

import (
	"fmt"
	"time"

	"sheaf/tools/pubsub"
)

// large is a fan-out of few messages that are longer than a segment, the longest longer
// than a record of TLS (16 kB).
func large(name string, n int, sizes []int) Workload {
	const interval = time.Second
	return Workload{
		Name: name, Protocol: "mqtt", Clients: n, Length: time.Duration(len(sizes)) * interval,
		About: fmt.Sprintf("mqtt over TLS 1.3: %d subscribers, QoS 1, messages of about %d bytes, over a link that loses packets", n, sizes),
		run: func(s *stage) error {
			at, err := s.forward(mqttPort)
			if err != nil {
				return err
			}
			s.rec.start()
			if err := s.each(func(i int) error {
				return pubsub.Protocols["mqtt"].Subscribe(s.caller(i, 1, at), alarms, s.deliver)
			}); err != nil {
				return err
			}
			publisher, err := connect(s.beside())
			if err != nil {
				return err
			}
			defer publisher.Disconnect(0)
			var all []event
			for i, size := range sizes {
				next := newState(size).next
				all = append(all, event{time.Duration(i) * interval, n, func() error { return await(publisher.Publish(alarms, 1, false, next(s.clock.Now()))) }})
			}
			return s.play(all)
		},
	}
}
