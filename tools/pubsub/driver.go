// Package pubsub drives the client library of each protocol through one interface,
// for programs that need real clients: the captures that mkcapture records, and the
// tests in e2e.
package pubsub

import (
	"context"
	"crypto/tls"
	"iter"
	"net"
	"net/netip"
	"time"
)

// A Driver is a protocol's own client library at work.
type Driver interface {
	// Subscribe connects, and returns once the broker has agreed. From then on
	// got is called with the body of each message, one after another; the body is
	// borrowed until it returns. The connection lives as long as the process.
	Subscribe(c Caller, topic string, got func(body []byte)) error

	// Publish connects, sends the bodies as they come, and returns when the last
	// has left. It owns the bodies.
	Publish(c Caller, topic string, bodies iter.Seq[[]byte]) error
}

// A DialFunc connects, like DialContext of a net.Dialer.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// A Caller is a client before it has a connection.
type Caller struct {
	Broker netip.AddrPort
	Dial   DialFunc
	TLS    *tls.Config // with a ServerName; nil for none, and none over a WebSocket
	Name   string
	QoS    byte            // above 0, deliveries are acknowledged, and so is what is published
	Lost   func(err error) // told when a subscriber's connection breaks
}

// Connect dials the broker without a library's help, for at most 15 s, TLS's handshake
// included.
func (c Caller) Connect() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	return c.dial(ctx, "tcp", c.Broker.String())
}

// dial is Dial, with TLS from the first byte on where there is to be some.
func (c Caller) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.Dial(ctx, network, address)
	if err != nil || c.TLS == nil {
		return conn, err
	}
	t := tls.Client(conn, c.TLS)
	if err := t.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return t, nil
}

// A Protocol is a driver, and the port on which its broker listens.
type Protocol struct {
	Driver
	Port uint16
}

// Protocols are those that there is a driver for, by name.
var Protocols = map[string]Protocol{
	"mqtt":                {mqttDriver{"tcp://%s"}, 1883},
	"mqtt over websocket": {mqttDriver{"ws://%s/mqtt"}, 9001},
	"nats":                {natsDriver{}, 4222},
	"redis":               {redisDriver{}, 6379},
	"amqp":                {amqpDriver{}, 5672},
	"stomp":               {stompDriver{}, 61613},
}
