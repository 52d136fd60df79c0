// Package demo shows the main job on one machine, without root: a broker, its
// subscribers and publishers, and between them two gateways joined over QUIC on
// loopback, each with an end in userspace.
//
//	100 subscribers, 20 publishers
//	   -> unix socket -> gateway: stack, merger
//	         ~~~~ QUIC through a relay that counts: the link ~~~~
//	                 gateway: expander, stack -> broker
//
// Every message that a subscriber gets is checked: each of what was published
// arrives once, in order, with the bytes that were sent.
package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"

	"sheaf/engine"
	"sheaf/tunnel"
)

// Config says what to show. The zero value of a field is its default.
type Config struct {
	Subscribers int           // 100
	Publishers  int           // 20
	Interval    time.Duration // between the messages of a publisher; 1 s
	For         time.Duration // how long to publish; 15 s
	Progress    func(Figures) // called each second
}

// Figures are where the demo is.
type Figures struct {
	Elapsed   time.Duration
	Published uint64
	Delivered uint64 // to subscribers, right and in their turn
	Wrong     uint64 // twice, out of order, or not what was sent
	Plain     uint64 // bytes of the IP packets that went in, both ways
	Crossed   uint64 // bytes of the IP packets on the link, both ways, carrier and its acknowledgements included
	Packets   uint64 // of those
	InPackets uint64 // of the IP packets that went in
}

// Run runs the demo and returns the figures at its end. Ending ctx ends the
// publishing early. The error says what could not be set up or went wrong.
func Run(ctx context.Context, cfg Config) (Figures, error) {
	cfg = cfg.withDefaults()
	dir, err := os.MkdirTemp("", "sheaf-demo-")
	if err != nil {
		return Figures{}, err
	}
	defer os.RemoveAll(dir)
	d := &demo{cfg: cfg, dir: dir, begin: time.Now()}
	defer d.close()
	if err := d.setUp(ctx); err != nil {
		return Figures{}, err
	}
	if err := d.play(ctx); err != nil {
		return d.figures(), err
	}
	f := d.figures()
	if want := f.Published * uint64(cfg.Subscribers); f.Wrong > 0 || f.Delivered != want {
		return f, fmt.Errorf("%d of %d deliveries right, %d wrong", f.Delivered, want, f.Wrong)
	}
	return f, nil
}

func (c Config) withDefaults() Config {
	if c.Subscribers == 0 {
		c.Subscribers = 100
	}
	if c.Publishers == 0 {
		c.Publishers = 20
	}
	if c.Interval == 0 {
		c.Interval = time.Second
	}
	if c.For == 0 {
		c.For = 15 * time.Second
	}
	return c
}

// A demo is a demo under way.
type demo struct {
	cfg     Config
	dir     string
	begin   time.Time
	broker  *mqtt.Server
	relay   *relay
	ends    [2]*engine.Gateway // beside the clients, beside the broker
	stop    context.CancelFunc
	running sync.WaitGroup
	fleet   fleet
}

const (
	brokerAddress = "10.2.0.10:1883"
	clientAddress = "10.99.0.1"
)

func (d *demo) setUp(ctx context.Context) error {
	at, err := d.startBroker()
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	var prints [2]tunnel.Fingerprint
	keys := [2]string{filepath.Join(d.dir, "clients.key"), filepath.Join(d.dir, "broker.key")}
	for i, path := range keys {
		key, err := tunnel.GenerateKey()
		if err == nil {
			err = key.Save(path)
		}
		if err != nil {
			return err
		}
		prints[i] = key.Fingerprint()
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	d.stop = stop
	err = d.start(run, 1, fmt.Sprintf(`
key = %q
control = "off"
listen = "127.0.0.1:0"
carrier = ["quic"]
[[peer]]
name = "clients"
fingerprint = %q
allowed = [%q]
[terminate]
prefixes = ["10.2.0.0/24"]
map = { %q = %q }
`, keys[1], prints[0], clientAddress, brokerAddress, at))
	if err != nil {
		return err
	}
	if d.relay, err = newRelay(d.ends[1].Addr()); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	err = d.start(run, 0, fmt.Sprintf(`
key = %q
control = "off"
carrier = ["quic"]
address = [%q]
[[peer]]
name = "broker"
fingerprint = %q
endpoint = %q
allowed = ["10.2.0.0/24"]
[[forward]]
from = "unix:%s"
to = %q
`, keys[0], clientAddress, prints[1], d.relay.address(), d.socket(), brokerAddress))
	if err != nil {
		return err
	}
	return d.waitUp(ctx)
}

// socket is the path of the socket that the clients connect to.
func (d *demo) socket() string { return filepath.Join(d.dir, "mqtt.sock") }

func (d *demo) startBroker() (net.Addr, error) {
	d.broker = mqtt.New(&mqtt.Options{Logger: slog.New(slog.DiscardHandler)})
	if err := d.broker.AddHook(new(auth.AllowHook), nil); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if err := d.broker.AddListener(listeners.NewNet("demo", l)); err != nil {
		return nil, err
	}
	return l.Addr(), d.broker.Serve()
}

func (d *demo) start(ctx context.Context, i int, text string) error {
	cfg, err := engine.ParseConfig([]byte(text))
	if err != nil {
		return err
	}
	g, err := engine.New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	d.ends[i] = g
	d.running.Go(func() { _ = g.Run(ctx) })
	return nil
}

func (d *demo) waitUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		_, err := os.Stat(d.socket()) // made once the broker has answered
		up := err == nil
		for _, g := range d.ends {
			for _, p := range g.Status().Peers {
				for _, l := range p.Lanes {
					up = up && l.Up
				}
			}
		}
		if up {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the gateways did not find each other: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// play has the clients at it, and tells of it each second.
func (d *demo) play(ctx context.Context) error {
	d.fleet = fleet{cfg: d.cfg, dial: func() (net.Conn, error) { return net.Dial("unix", d.socket()) }}
	defer d.fleet.close()
	if err := d.fleet.connect(ctx); err != nil {
		return fmt.Errorf("clients: %w", err)
	}
	d.begin = time.Now()
	ctx, cancel := context.WithTimeout(ctx, d.cfg.For)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- d.fleet.publish(ctx) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if d.cfg.Progress != nil {
				d.cfg.Progress(d.figures())
			}
		case err := <-done:
			return errors.Join(err, d.fleet.settle(5*time.Second))
		}
	}
}

// figures returns where the demo is.
func (d *demo) figures() Figures {
	f := Figures{
		Elapsed: time.Since(d.begin), Published: d.fleet.published.Load(),
		Delivered: d.fleet.delivered.Load(), Wrong: d.fleet.wrong.Load(),
	}
	for _, g := range d.ends {
		if g == nil {
			continue
		}
		for _, p := range g.Status().Peers {
			f.Plain += p.Sent.Bytes
			f.InPackets += p.Sent.Packets
		}
	}
	if d.relay != nil {
		f.Crossed = d.relay.up.Load() + d.relay.down.Load()
		f.Packets = d.relay.packets.Load()
	}
	return f
}

func (d *demo) close() {
	if d.stop != nil {
		d.stop()
	}
	d.running.Wait()
	for _, g := range d.ends {
		if g != nil {
			_ = g.Close()
		}
	}
	if d.relay != nil {
		d.relay.close()
	}
	if d.broker != nil {
		_ = d.broker.Close()
	}
}
