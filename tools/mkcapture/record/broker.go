package record

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	nats "github.com/nats-io/nats-server/v2/server"
)

// ErrNoBroker is the error where there is no broker to embed and none was named.
var ErrNoBroker = errors.New("there is no broker to embed")

// A broker listens on loopback.
type broker struct {
	address string // without TLS
	secure  string // with TLS; both may be one
	end     func()
}

// brokers start those that can be embedded, by protocol.
var brokers = map[string]func() (*broker, error){
	"mqtt":  startMQTT,
	"nats":  startNATS,
	"redis": startRedis,
}

// startBroker starts a broker for a protocol, or takes the one at an address of
// this machine if there is one given.
func startBroker(protocol, at string) (*broker, error) {
	if at != "" {
		return &broker{address: at, end: func() {}}, nil
	}
	start, ok := brokers[protocol]
	if !ok {
		return nil, fmt.Errorf("%w for %s", ErrNoBroker, protocol)
	}
	b, err := start()
	if err != nil {
		return nil, fmt.Errorf("a broker for %s: %w", protocol, err)
	}
	return b, nil
}

func startMQTT() (*broker, error) {
	s := mqtt.New(&mqtt.Options{Logger: slog.New(slog.DiscardHandler)})
	if err := s.AddHook(new(auth.AllowHook), nil); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if err := s.AddListener(listeners.NewNet("loopback", l)); err != nil {
		return nil, err
	}
	return &broker{address: l.Addr().String(), end: func() { s.Close() }}, s.Serve()
}

func startNATS() (*broker, error) { return startNATSWith(&nats.Options{}) }

// startNATSWith starts nats-server with options besides where it listens.
func startNATSWith(o *nats.Options) (*broker, error) {
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", nats.RANDOM_PORT, true, true
	s, err := nats.NewServer(o)
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, errors.New("not ready after 10 s")
	}
	return &broker{address: s.Addr().String(), end: func() { s.Shutdown(); s.WaitForShutdown() }}, nil
}

func startRedis() (*broker, error) {
	s := miniredis.NewMiniRedis()
	if err := s.StartAddr("127.0.0.1:0"); err != nil {
		return nil, err
	}
	return &broker{address: s.Addr(), end: s.Close}, nil
}
