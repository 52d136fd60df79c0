package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"sheaf/e2e/order"
)

// A client is an MQTT client and what it got.
type client struct {
	mqtt.Client
	name string

	mu     sync.Mutex
	topics map[string]order.Sequence
	own    []time.Duration
	lost   string
}

var clients struct {
	sync.Mutex
	byName map[string]*client
}

func clientOf(name string) (*client, error) {
	clients.Lock()
	defer clients.Unlock()
	if c := clients.byName[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("no client %q", name)
}

// patience is how long a broker may take to answer: a tunnel that is being restarted
// comes between.
const patience = 60 * time.Second

func connect(a order.Client) (any, error) {
	c := &client{name: a.Name, topics: map[string]order.Sequence{}}
	broker := a.Broker.String()
	if a.Vsock != 0 {
		broker = fmt.Sprint("host:", a.Vsock)
	}
	o := mqtt.NewClientOptions().
		AddBroker("tcp://" + broker).
		SetClientID(a.Name).
		SetKeepAlive(5 * time.Minute). // no traffic of its own beside what is measured
		SetConnectTimeout(20 * time.Second).
		SetAutoReconnect(false).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) { c.gone(err) })
	if a.Vsock != 0 {
		o.SetCustomOpenConnectionFn(func(*url.URL, mqtt.ClientOptions) (net.Conn, error) { return dialHost(a.Vsock) })
	}
	c.Client = mqtt.NewClient(o)
	if err := done(c.Connect(), "CONNACK"); err != nil {
		return nil, err
	}
	if a.Topic != "" {
		if err := done(c.Subscribe(a.Topic, a.QoS, func(_ mqtt.Client, m mqtt.Message) { c.got(m) }), "SUBACK"); err != nil {
			return nil, err
		}
	}
	clients.Lock()
	defer clients.Unlock()
	if clients.byName == nil {
		clients.byName = map[string]*client{}
	}
	clients.byName[a.Name] = c
	return nil, nil
}

func done(t mqtt.Token, what string) error {
	if !t.WaitTimeout(patience) {
		return fmt.Errorf("no %s in %v", what, patience)
	}
	return t.Error()
}

func (c *client) gone(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = fmt.Sprint("connection lost: ", err)
}

// got counts a message.
func (c *client) got(m mqtt.Message) {
	now := time.Now().UnixNano()
	var r order.Reading
	if err := json.Unmarshal(m.Payload(), &r); err != nil {
		c.gone(fmt.Errorf("%s: %q: %w", m.Topic(), m.Payload(), err))
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, known := c.topics[m.Topic()]
	switch {
	case !known:
		s.First = r.Seq
	case r.Seq <= s.Last:
		s.Twice++
	default:
		s.Gaps += r.Seq - s.Last - 1
	}
	s.Count++
	s.Last = max(s.Last, r.Seq)
	c.topics[m.Topic()] = s
	if r.Device == c.name {
		c.own = append(c.own, time.Duration(now-r.Sent))
	}
}

// publish sends readings of a sensor whose value goes up and down.
func publish(a order.Publish) (any, error) {
	c, err := clientOf(a.Name)
	if err != nil {
		return nil, err
	}
	tokens := make([]mqtt.Token, 0, a.Count)
	begin := time.Now()
	for i := range a.Count {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * a.Every)))
		seq := a.First + i
		body, _ := json.Marshal(order.Reading{
			Device: a.Name, Seq: seq, Sent: time.Now().UnixNano(),
			Temperature: math.Round(1000*(180+20*math.Sin(float64(seq)/10))) / 1000, State: "running",
		})
		tokens = append(tokens, c.Publish(a.Topic, a.QoS, false, body))
	}
	for _, t := range tokens {
		if err := done(t, "PUBACK"); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func received(a order.Name) (*order.Received, error) {
	c, err := clientOf(a.Name)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return &order.Received{Topics: maps.Clone(c.topics), Own: quantiles(slices.Clone(c.own)), Lost: c.lost}, nil
}

func disconnect(a order.Name) (any, error) {
	c, err := clientOf(a.Name)
	if err != nil {
		return nil, err
	}
	c.Disconnect(250)
	clients.Lock()
	defer clients.Unlock()
	delete(clients.byName, a.Name)
	return nil, nil
}

// quantiles sorts d.
func quantiles(d []time.Duration) order.Quantiles {
	if len(d) == 0 {
		return order.Quantiles{}
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[min(int(q*float64(len(d))), len(d)-1)] }
	return order.Quantiles{N: len(d), P50: at(0.50), P99: at(0.99), Max: d[len(d)-1]}
}
