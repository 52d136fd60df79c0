package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// A fleet is the subscribers and publishers.
type fleet struct {
	cfg         Config
	dial        func() (net.Conn, error)
	subscribers []*subscriber
	publishers  []paho.Client

	published, delivered, wrong atomic.Uint64
}

// A subscriber checks what it gets.
type subscriber struct {
	client paho.Client
	mu     sync.Mutex
	next   []uint64 // of each publisher, the number expected
}

const (
	topic   = "plant/%d/telemetry"
	filter  = "plant/+/telemetry"
	timeout = 15 * time.Second
)

func (f *fleet) client(id string) (paho.Client, error) {
	o := paho.NewClientOptions().AddBroker("tcp://broker").SetClientID(id).
		SetAutoReconnect(false).SetOrderMatters(true).SetKeepAlive(30 * time.Second).
		SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) { return f.dial() })
	c := paho.NewClient(o)
	return c, wait(c.Connect())
}

func wait(t paho.Token) error {
	if !t.WaitTimeout(timeout) {
		return errors.New("no answer")
	}
	return t.Error()
}

// connect brings all clients up, some at a time.
func (f *fleet) connect(ctx context.Context) error {
	f.subscribers = make([]*subscriber, f.cfg.Subscribers)
	f.publishers = make([]paho.Client, f.cfg.Publishers)
	errs := make(chan error, f.cfg.Subscribers+f.cfg.Publishers)
	slots := make(chan struct{}, 16)
	var all sync.WaitGroup
	do := func(connect func() error) {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if ctx.Err() == nil {
				errs <- connect()
			}
		})
	}
	for i := range f.subscribers {
		do(func() (err error) {
			s := &subscriber{next: make([]uint64, f.cfg.Publishers)}
			if s.client, err = f.client(fmt.Sprintf("subscriber-%04d", i)); err != nil {
				return err
			}
			f.subscribers[i] = s
			return wait(s.client.Subscribe(filter, 0, func(_ paho.Client, m paho.Message) { f.check(s, m) }))
		})
	}
	for i := range f.publishers {
		do(func() (err error) {
			f.publishers[i], err = f.client(fmt.Sprintf("publisher-%04d", i))
			return err
		})
	}
	all.Wait()
	close(errs)
	err := ctx.Err()
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

// message is what publisher i sends as its n-th.
func message(i int, n uint64) []byte {
	wave := func(step uint64) uint64 { return (n*step + uint64(i)*37) % 400 }
	return fmt.Appendf(nil, `{"seq":%d,"src":"line%d/press%d","temp":%d.%02d,"press":4.%03d,"rpm":%d,"state":"RUN"}`,
		n, i/4, i%4, 58+wave(3)/100, wave(3)%100, 100+wave(7)%90, 1400+wave(1)%90)
}

// check judges a message that a subscriber got.
func (f *fleet) check(s *subscriber, m paho.Message) {
	var i int
	_, err := fmt.Sscanf(m.Topic(), topic, &i)
	if err != nil || i < 0 || i >= f.cfg.Publishers {
		f.wrong.Add(1)
		return
	}
	s.mu.Lock()
	n := s.next[i]
	s.next[i]++
	s.mu.Unlock()
	if string(m.Payload()) != string(message(i, n)) {
		f.wrong.Add(1)
		return
	}
	f.delivered.Add(1)
}

// publish has every publisher send at its own phase until ctx ends.
func (f *fleet) publish(ctx context.Context) error {
	var all sync.WaitGroup
	errs := make(chan error, len(f.publishers))
	for i, c := range f.publishers {
		all.Go(func() {
			phase := f.cfg.Interval * time.Duration(i) / time.Duration(len(f.publishers))
			timer := time.NewTimer(phase)
			defer timer.Stop()
			for n := uint64(0); ; n++ {
				select {
				case <-ctx.Done():
					return
				case <-timer.C:
				}
				timer.Reset(f.cfg.Interval)
				if err := wait(c.Publish(fmt.Sprintf(topic, i), 1, false, message(i, n))); err != nil {
					errs <- fmt.Errorf("publisher %d: %w", i, err)
					return
				}
				f.published.Add(1)
			}
		})
	}
	all.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

// settle waits for what is still under way.
func (f *fleet) settle(most time.Duration) error {
	want := f.published.Load() * uint64(len(f.subscribers))
	for end := time.Now().Add(most); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if f.delivered.Load()+f.wrong.Load() >= want {
			return nil
		}
	}
	return fmt.Errorf("%d deliveries are missing", want-f.delivered.Load()-f.wrong.Load())
}

func (f *fleet) close() {
	for _, s := range f.subscribers {
		if s != nil && s.client != nil {
			s.client.Disconnect(0)
		}
	}
	for _, c := range f.publishers {
		if c != nil {
			c.Disconnect(0)
		}
	}
}
