package e2e

import (
	"context"
	"errors"
	"iter"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisDriver drives go-redis. Redis knows no acknowledgement of a delivery.
type redisDriver struct{}

func (redisDriver) client(c caller, dial func(ctx context.Context, network, address string) (net.Conn, error)) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: c.broker.String(), ClientName: c.name, Dialer: dial, MaxRetries: -1})
}

func (d redisDriver) subscribe(c caller, topic string, got func(body []byte)) error {
	// The library mends a connection without a word: a second one tells.
	var dials atomic.Int64
	client := d.client(c, func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) > 1 {
			c.lost(errors.New("a second connection"))
		}
		return dialerFrom(c.from).DialContext(ctx, network, address)
	})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	subscription := client.Subscribe(ctx, topic)
	if _, err := subscription.Receive(ctx); err != nil {
		return err
	}
	go func() {
		for m := range subscription.Channel() {
			got([]byte(m.Payload))
		}
	}()
	return nil
}

func (d redisDriver) publish(c caller, topic string, bodies iter.Seq[[]byte]) error {
	client := d.client(c, dialerFrom(c.from).DialContext)
	defer client.Close()
	if err := client.Ping(context.Background()).Err(); err != nil {
		return err
	}
	for body := range bodies {
		if err := client.Publish(context.Background(), topic, body).Err(); err != nil {
			return err
		}
	}
	return nil
}

// redis starts redis-server.
func (s *site) redis() {
	l := s.lan.lab
	l.t.Helper()
	l.program("redis-server", "redis-server")
	launch(l.t, "redis-server", s.lan.command("redis-server", "--bind", s.host4.String(), "--port", "6379",
		"--protected-mode", "no", "--save", "", "--appendonly", "no", "--dir", l.dir))
	s.listening(6379)
}

func TestRedis(t *testing.T) {
	l := newLab(t, 2)
	l.broker().redis()
	l.compare(
		trial{
			fanout:   fanout{protocol: "redis", topic: "plant:line-3:state"},
			delivery: tally{"redis", "message", "plant:line-3:state"}, share: 0.1,
		},
		trial{
			fanout:   fanout{protocol: "redis", topic: "plant:line-3:orders", far: true},
			delivery: tally{"redis", "message", "plant:line-3:orders"}, share: 0.1,
		},
	)
}
