package record

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sheaf/tools/pubsub"
)

// keyUpdates is a fan-out whose clients ask for new keys in turn, each after so many
// messages. A client that acknowledges sends with new ones soon after.
func keyUpdates(name string, n, after int, length time.Duration) Workload {
	return Workload{
		Name: name, Protocol: "mqtt", Clients: n, Length: length,
		About: fmt.Sprintf("mqtt over TLS 1.3: %d subscribers of OpenSSL's, QoS 1, %d messages/s, new keys both ways every %d messages", n, rate, after),
		run: func(s *stage) error {
			at, err := s.forward(mqttPort)
			if err != nil {
				return err
			}
			dir, err := os.MkdirTemp("", "mkcapture-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			keyLog := filepath.Join(dir, "keys")
			var mu sync.Mutex
			var clients []*opensslConn
			s.rec.start()
			if err := s.each(func(i int) error {
				c := s.caller(i, 1, at)
				c.TLS = nil
				c.Dial = s.dialOpenSSL(c.Dial, keyLog, func(o *opensslConn) {
					mu.Lock()
					defer mu.Unlock()
					clients = append(clients, o)
				})
				return pubsub.Protocols["mqtt"].Subscribe(c, alarms, s.deliver)
			}); err != nil {
				return err
			}
			if err := s.playUpdates(clients, after); err != nil {
				return err
			}
			lines, err := os.ReadFile(keyLog)
			if err != nil {
				return err
			}
			_, err = logWriter{s.vault}.Write(lines)
			return err
		},
	}
}

// playUpdates publishes to all clients, and has one after the other update its keys.
func (s *stage) playUpdates(clients []*opensslConn, after int) error {
	publisher, err := connect(s.beside())
	if err != nil {
		return err
	}
	defer publisher.Disconnect(0)
	next := newAlarm().next
	var all []event
	for i := range int(s.Length * rate / time.Second) {
		at := time.Duration(i) * time.Second / rate
		all = append(all, event{at, len(clients), func() error { return await(publisher.Publish(alarms, 1, false, next(s.clock.Now()))) }})
		for j, c := range clients {
			if (i+j)%after == after-1 {
				all = append(all, event{at + time.Second/rate/2, 0, c.updateKeys})
			}
		}
	}
	return s.play(all)
}
