package pubsub

import (
	"context"
	"errors"
	"iter"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisDriver drives go-redis. Redis knows no acknowledgement of a delivery.
type redisDriver struct{}

func (redisDriver) client(c Caller, dial func(ctx context.Context, network, address string) (net.Conn, error)) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: c.Broker.String(), ClientName: c.Name, Dialer: dial, MaxRetries: -1})
}

func (d redisDriver) Subscribe(c Caller, topic string, got func(body []byte)) error {
	// The library mends a connection without a word: a second one tells.
	var dials atomic.Int64
	client := d.client(c, func(ctx context.Context, network, address string) (net.Conn, error) {
		if dials.Add(1) > 1 {
			c.Lost(errors.New("a second connection"))
		}
		return c.dial(ctx, network, address)
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

func (d redisDriver) Publish(c Caller, topic string, bodies iter.Seq[[]byte]) error {
	client := d.client(c, c.dial)
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
