package e2e

import (
	"encoding/json"
	"fmt"
	"log"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// subscribers is what the subscribe role does: as many clients as there are
// addresses from First on, which count what they get until told to end.
type subscribers struct {
	Broker netip.AddrPort
	First  netip.Addr
	Count  int
	Topic  string
	QoS    byte
}

// A reading is a message's body.
type reading struct {
	Device      string  `json:"device"`
	Seq         int     `json:"seq"`
	Sent        int64   `json:"sent"` // nanoseconds, the publisher's clock
	Temperature float64 `json:"temperature"`
	State       string  `json:"state"`
}

// deliveries is the result of the subscribe role.
type deliveries struct {
	Received   int // by all subscribers
	Twice      int // sequence numbers not above the one before
	Gaps       int // sequence numbers left out
	Least      int // received by the subscriber that got fewest
	LostConns  int
	Latency    quantiles // of every delivery, from publish to handler
	Last       quantiles // of every message, to the last of its subscribers
	Incomplete int       // messages that not all subscribers got
}

func clientOptions(broker netip.AddrPort, from netip.Addr, id string) *mqtt.ClientOptions {
	return mqtt.NewClientOptions().
		AddBroker("tcp://" + broker.String()).
		SetClientID(id).
		SetDialer(dialerFrom(from)).
		SetKeepAlive(120 * time.Second).
		SetPingTimeout(60 * time.Second).
		SetConnectTimeout(20 * time.Second).
		SetAutoReconnect(false).
		SetOrderMatters(true)
}

func connect(o *mqtt.ClientOptions) (mqtt.Client, error) {
	mqtt.ERROR = log.New(os.Stderr, "", 0)
	c := mqtt.NewClient(o)
	t := c.Connect()
	if !t.WaitTimeout(30 * time.Second) {
		return nil, fmt.Errorf("%s: no CONNACK in 30 s", o.ClientID)
	}
	return c, t.Error()
}

// inParallel calls f for 0 to n-1, some at a time, and returns an error of one.
func inParallel(n int, f func(i int) error) error {
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	slots := make(chan struct{}, 32)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := f(i); err != nil {
				failed.Store(&err)
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

func subscribe(a subscribers) (*deliveries, error) {
	type record struct {
		mu       sync.Mutex
		last     int
		received int
		at       []arrival
	}
	d := &deliveries{}
	var mu sync.Mutex
	records := make([]*record, a.Count)
	addresses := make([]netip.Addr, a.Count)
	for i := range records {
		records[i], addresses[i] = &record{last: -1}, addressAfter(a.First, i)
	}
	err := inParallel(a.Count, func(i int) error {
		r := records[i]
		o := clientOptions(a.Broker, addresses[i], fmt.Sprintf("subscriber-%s", addresses[i]))
		o.SetConnectionLostHandler(func(_ mqtt.Client, err error) {
			fmt.Fprintf(os.Stderr, "subscriber %d: connection lost: %v\n", i, err)
			mu.Lock()
			d.LostConns++
			mu.Unlock()
		})
		c, err := connect(o)
		if err != nil {
			return err
		}
		token := c.Subscribe(a.Topic, a.QoS, func(_ mqtt.Client, m mqtt.Message) {
			now := time.Now().UnixNano()
			var b reading
			if err := json.Unmarshal(m.Payload(), &b); err != nil {
				fmt.Fprintf(os.Stderr, "subscriber %d: %q: %v\n", i, m.Payload(), err)
				return
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.received++
			if b.Seq <= r.last {
				mu.Lock()
				d.Twice++
				mu.Unlock()
			} else if b.Seq > r.last+1 {
				fmt.Fprintf(os.Stderr, "subscriber %d: %d after %d\n", i, b.Seq, r.last)
				mu.Lock()
				d.Gaps += b.Seq - r.last - 1
				mu.Unlock()
			}
			r.last = b.Seq
			r.at = append(r.at, arrival{b.Seq, time.Duration(now - b.Sent)})
		})
		if !token.WaitTimeout(30 * time.Second) {
			return fmt.Errorf("no SUBACK in 30 s")
		}
		return token.Error()
	})
	if err != nil {
		return nil, err
	}
	sayReady()
	untilTold()

	var all, last []time.Duration
	worst, got := map[int]time.Duration{}, map[int]int{}
	d.Least = -1
	for _, r := range records {
		r.mu.Lock()
		d.Received += r.received
		if d.Least < 0 || r.received < d.Least {
			d.Least = r.received
		}
		for _, v := range r.at {
			all = append(all, v.took)
			worst[v.seq] = max(worst[v.seq], v.took)
			got[v.seq]++
		}
		r.mu.Unlock()
	}
	for seq, n := range got {
		last = append(last, worst[seq])
		if n != a.Count {
			d.Incomplete++
		}
	}
	d.Latency, d.Last = newQuantiles(all), newQuantiles(last)
	return d, nil
}

// An arrival is a message at one subscriber.
type arrival struct {
	seq  int
	took time.Duration
}
