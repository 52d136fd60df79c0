package record

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"sheaf/tools/pubsub"
)

const (
	rate    = 20                     // messages a second, of a fan-out
	pause   = time.Second            // after all have connected
	arrival = 2 * time.Millisecond   // between two clients that connect
	alarms  = "plant/4/alarms"       // topic of a fan-out
	timeout = 20 * time.Second       // of this machine's time, for what has to happen
	look    = 500 * time.Microsecond // of this machine's time, between two looks
	quiet   = 40                     // looks without a packet: nothing more comes
)

// A stage is what a workload runs on.
type stage struct {
	Workload
	clock  *clock
	rec    *recorder
	broker *broker
	net    *network

	vault     *vault        // nil where there are no secrets
	tls       []*tls.Config // of the clients
	besideTLS *tls.Config   // of whoever is beside the broker

	delivered atomic.Int64 // messages, to whoever subscribed
	due       int64        // of them, so far
}

// deliver is told of a message at a subscriber.
func (s *stage) deliver([]byte) { s.delivered.Add(1) }

// turn has something done at a time that brings about so many deliveries, and
// waits for all that it brings about.
func (s *stage) turn(at time.Time, deliveries int, do func() error) error {
	s.clock.until(at)
	s.due += int64(deliveries)
	if err := s.timed(do); err != nil {
		return err
	}
	for begin := time.Now(); s.delivered.Load() < s.due; time.Sleep(look) {
		if time.Since(begin) > timeout {
			return fmt.Errorf("%d of %d deliveries after %v", s.delivered.Load(), s.due, timeout)
		}
		s.wait()
	}
	s.settle()
	return nil
}

// timed has something done, and lets time go on meanwhile where packets are lost.
func (s *stage) timed(do func() error) error {
	if s.rec.loses == 0 {
		return do()
	}
	done := make(chan error, 1)
	go func() { done <- do() }()
	for {
		select {
		case err := <-done:
			return err
		case <-time.After(look):
			s.wait()
		}
	}
}

// wait lets time go on where packets are lost: what mends that are timers.
func (s *stage) wait() {
	if s.rec.loses > 0 {
		s.clock.until(s.clock.Now().Add(look))
	}
}

// settle waits until no more packets come. It counts looks and not time, which goes
// on where a busy machine lets nobody in this process run.
func (s *stage) settle() {
	last := s.rec.count()
	for looks := 0; looks < quiet; looks++ {
		time.Sleep(look)
		s.wait()
		if n := s.rec.count(); n != last {
			last, looks = n, 0
		}
	}
}

// each has every client do something, such as connect, one after the other.
func (s *stage) each(do func(i int) error) error {
	start := s.clock.Now()
	for i := range s.Clients {
		if err := s.turn(start.Add(time.Duration(i)*arrival), 0, func() error { return do(i) }); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
	}
	return nil
}

// An event is something that is done at a time after all have connected.
type event struct {
	at         time.Duration
	deliveries int
	do         func() error
}

// every returns the events of what is done in an interval, from a random phase on.
func (s *stage) every(interval time.Duration, deliveries int, do func() error) (all []event) {
	for at := rand.N(interval); at < s.Length; at += interval {
		all = append(all, event{at, deliveries, do})
	}
	return all
}

// play lets events happen, in the order of their times.
func (s *stage) play(all []event) error {
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	start := s.clock.Now().Add(pause)
	for _, e := range all {
		if err := s.turn(start.Add(e.at), e.deliveries, e.do); err != nil {
			return err
		}
	}
	return nil
}

// caller returns the caller at a client's host.
func (s *stage) caller(i int, qos byte, at netip.AddrPort) pubsub.Caller {
	c := pubsub.Caller{
		Broker: at, Dial: s.net.dialer(i), Name: clientName(i), QoS: qos, Lost: func(error) {},
	}
	if s.security != nil {
		c.TLS = s.tls[i]
	}
	return c
}

func clientName(i int) string { return fmt.Sprintf("client-%04d", i) }

// beside returns the caller of a client beside the broker, which is not recorded.
func (s *stage) beside() pubsub.Caller {
	at := netip.MustParseAddrPort(s.broker.address)
	c := pubsub.Caller{Broker: at, Dial: new(net.Dialer).DialContext, Name: "beside", Lost: func(error) {}}
	if s.broker.address == s.broker.secure {
		c.TLS = s.besideTLS
	}
	return c
}
