package record

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"sheaf/tools/pubsub"
)

const mqttPort = 1883

// connect connects a client of MQTT.
func connect(c pubsub.Caller) (paho.Client, error) {
	dial := func(context.Context, string, string) (net.Conn, error) { return c.Connect() }
	return pubsub.ConnectMQTT(pubsub.MQTTOptions("tcp://"+c.Broker.String(), dial, c.Name))
}

// await waits for what paho has begun.
func await(t paho.Token) error {
	if !t.WaitTimeout(timeout) {
		return errors.New("no answer")
	}
	return t.Error()
}

// connectAll connects all clients, and calls do for each.
func (s *stage) connectAll(at netip.AddrPort, do func(i int, c paho.Client) error) ([]paho.Client, error) {
	clients := make([]paho.Client, s.Clients)
	return clients, s.each(func(i int) (err error) {
		if clients[i], err = connect(s.caller(i, 0, at)); err != nil {
			return err
		}
		return do(i, clients[i])
	})
}

// told is deliver for paho.
func (s *stage) told(_ paho.Client, m paho.Message) { s.deliver(m.Payload()) }

// telemetry is n devices that report in turn, at random phases, QoS 1.
func telemetry(name string, n int, interval, length time.Duration) Workload {
	return reports(name, n, interval, length, func(i int) body { return newReading(i).next },
		fmt.Sprintf("mqtt: %d devices publish about 137 bytes every %v, QoS 1", n, interval))
}

// single is one device that reports each second: each frame is for one message.
func single(name string, length time.Duration) Workload {
	return reports(name, 1, time.Second, length, func(i int) body { return newReading(i).next },
		"mqtt: one device publishes about 137 bytes each second, QoS 1")
}

// noise is n devices whose reports nobody can predict.
func noise(name string, n int, length time.Duration) Workload {
	return reports(name, n, 2*time.Second, length, func(int) body {
		return func(time.Time) []byte {
			b := make([]byte, 64)
			_, _ = rand.Read(b) // never fails
			return b
		}
	}, fmt.Sprintf("mqtt: %d devices publish 64 random bytes every 2 s, QoS 1", n))
}

// reports is n devices that publish bodies of their own.
func reports(name string, n int, interval, length time.Duration, body func(i int) body, about string) Workload {
	return Workload{
		Name: name, Protocol: "mqtt", Clients: n, Length: length, About: about,
		run: func(s *stage) error {
			at, err := s.forward(mqttPort)
			if err != nil {
				return err
			}
			if err := pubsub.Protocols["mqtt"].Subscribe(s.beside(), "site/1/dev/+/telemetry", s.deliver); err != nil {
				return err
			}
			s.rec.start()
			devices, err := s.connectAll(at, func(int, paho.Client) error { return nil })
			if err != nil {
				return err
			}
			var all []event
			for i, c := range devices {
				next := body(i)
				all = append(all, s.every(interval, 1, func() error {
					return await(c.Publish(fmt.Sprintf("site/1/dev/%04d/telemetry", i), 1, false, next(s.clock.Now())))
				})...)
			}
			return s.play(all)
		},
	}
}

// control is n units that tell their state each second, and are all sent the same
// command each second.
func control(name string, n int, length time.Duration) Workload {
	return Workload{
		Name: name, Protocol: "mqtt", Clients: n, Length: length,
		About: fmt.Sprintf("mqtt: %d units publish 31 bytes and get 32 bytes each second, each with topics of its own, QoS 0", n),
		run: func(s *stage) error {
			at, err := s.forward(mqttPort)
			if err != nil {
				return err
			}
			if err := pubsub.Protocols["mqtt"].Subscribe(s.beside(), "site/1/unit/+/status", s.deliver); err != nil {
				return err
			}
			s.rec.start()
			units, err := s.connectAll(at, func(i int, c paho.Client) error {
				return await(c.Subscribe(fmt.Sprintf("site/1/unit/%04d/command", i), 0, s.told))
			})
			if err != nil {
				return err
			}
			caller := s.beside()
			caller.Name = "controller"
			controller, err := connect(caller)
			if err != nil {
				return err
			}
			defer controller.Disconnect(0)
			all := s.every(time.Second, n, func() (err error) {
				for i := range n {
					err = errors.Join(err, await(controller.Publish(fmt.Sprintf("site/1/unit/%04d/command", i), 0, false, `{"command":"hold","until":"next"}`)))
				}
				return err
			})
			for i, c := range units {
				all = append(all, s.every(time.Second, 1, func() error {
					return await(c.Publish(fmt.Sprintf("site/1/unit/%04d/status", i), 0, false, `{"state":"running","load":0.75}`))
				})...)
			}
			return s.play(all)
		},
	}
}

// mixed is 50 topics of many rates and body sizes, 20 subscribers each, over 200
// connections.
func mixed(name string, length time.Duration) Workload {
	const topics, each, clients = 50, 20, 200
	topic := func(i int) string { return fmt.Sprintf("plant/%d/line/%d/state", i/10, i%10) }
	return Workload{
		Name: name, Protocol: "mqtt", Clients: clients, Length: length,
		About: fmt.Sprintf("mqtt: %d topics, 0.2 to 5 messages/s of 50 to 2000 bytes, %d subscribers each, over %d connections, QoS 0", topics, each, clients),
		run: func(s *stage) error {
			at, err := s.forward(mqttPort)
			if err != nil {
				return err
			}
			s.rec.start()
			_, err = s.connectAll(at, func(i int, c paho.Client) error {
				filters := map[string]byte{}
				for t := range topics {
					if (i+3*t)%(clients/each) == 0 {
						filters[topic(t)] = 0
					}
				}
				return await(c.SubscribeMultiple(filters, s.told))
			})
			if err != nil {
				return err
			}
			publisher, err := connect(s.beside())
			if err != nil {
				return err
			}
			defer publisher.Disconnect(0)
			var all []event
			for i := range topics {
				share := float64(i) / (topics - 1)
				interval := time.Duration(float64(time.Second) / (0.2 * math.Pow(25, share)))
				next := newState(int(50 * math.Pow(40, float64(i*7%topics)/(topics-1)))).next
				all = append(all, s.every(interval, each, func() error { return await(publisher.Publish(topic(i), 0, false, next(s.clock.Now()))) })...)
			}
			return s.play(all)
		},
	}
}

// skewed is a fan-out with QoS 1 whose subscribers have got 0 to 299 messages
// before, so that the packet identifiers of a message's copies differ. Recording
// begins when they have.
func skewed(name string, n int, length time.Duration) Workload {
	return Workload{
		Name: name, Protocol: "mqtt", Clients: n, Length: length,
		About: fmt.Sprintf("mqtt: %d subscribers, QoS 1, %d messages/s, every packet identifier another; recorded midstream", n, rate),
		run: func(s *stage) error {
			at, err := s.forward(mqttPort)
			if err != nil {
				return err
			}
			if _, err = s.connectAll(at, func(i int, c paho.Client) error {
				return await(c.SubscribeMultiple(map[string]byte{alarms: 1, fmt.Sprintf("private/%d", i): 1}, s.told))
			}); err != nil {
				return err
			}
			publisher, err := connect(s.beside())
			if err != nil {
				return err
			}
			defer publisher.Disconnect(0)
			for i := range n {
				before := i * 7919 % 300
				if err := s.turn(s.clock.Now(), before, func() (err error) {
					for range before {
						err = errors.Join(err, await(publisher.Publish(fmt.Sprintf("private/%d", i), 1, false, "x")))
					}
					return err
				}); err != nil {
					return err
				}
			}
			s.rec.start()
			return s.fanOut(pubsub.Protocols["mqtt"], alarms, 1)
		},
	}
}
