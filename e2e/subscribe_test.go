package e2e

import (
	"encoding/json"
	"fmt"
	"hash"
	"hash/fnv"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sheaf/tools/pubsub"
)

// subscribers is what the subscribe role does: as many clients as there are
// addresses from First on, which count what they get until told to end.
type subscribers struct {
	Protocol string
	Broker   netip.AddrPort
	First    netip.Addr
	Count    int
	Topic    string
	QoS      byte
	TLS      *credentials
}

// A reading is a message's body.
type reading struct {
	Device      string  `json:"device"`
	Seq         int     `json:"seq"`
	Sent        int64   `json:"sent"` // nanoseconds, the publisher's clock
	Temperature float64 `json:"temperature"`
	State       string  `json:"state"`
	Trace       string  `json:"trace,omitempty"`
}

// deliveries is the result of the subscribe role.
type deliveries struct {
	Received   int // by all subscribers
	Twice      int // sequence numbers not above the one before
	Gaps       int // sequence numbers left out
	Least      int // received by the subscriber that got fewest
	LostConns  int
	Late       int       // deliveries that took more than a second
	Latency    quantiles // of every delivery, from publish to handler
	Last       quantiles // of every message, to the last of its subscribers
	Incomplete int       // messages that not all subscribers got
	Bodies     uint64    // digest of all bodies that the first subscriber got, in order
	Differ     int       // subscribers that got others
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

// A receiver is a subscriber's count of what it got.
type receiver struct {
	mu          sync.Mutex
	number      int
	last        int // sequence number
	received    int
	twice, gaps int
	lost        bool
	at          []arrival
	bodies      hash.Hash64
}

// An arrival is a message at one subscriber.
type arrival struct {
	seq  int
	took time.Duration
}

// got counts a message.
func (r *receiver) got(body []byte) {
	now := time.Now().UnixNano()
	var b reading
	if err := json.Unmarshal(body, &b); err != nil {
		fmt.Fprintf(os.Stderr, "subscriber %d: %q: %v\n", r.number, body, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.received++
	if b.Seq <= r.last {
		fmt.Fprintf(os.Stderr, "subscriber %d: %d again, after %d\n", r.number, b.Seq, r.last)
		r.twice++
	} else if b.Seq > r.last+1 {
		fmt.Fprintf(os.Stderr, "subscriber %d: %d after %d\n", r.number, b.Seq, r.last)
		r.gaps += b.Seq - r.last - 1
	}
	r.last = b.Seq
	r.at = append(r.at, arrival{b.Seq, time.Duration(now - b.Sent)})
	r.bodies.Write(body)
}

// gone is called when the connection breaks.
func (r *receiver) gone(err error) {
	fmt.Fprintf(os.Stderr, "subscriber %d: connection lost: %v\n", r.number, err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = true
}

func subscribe(a subscribers) (*deliveries, error) {
	receivers := make([]*receiver, a.Count)
	addresses := make([]netip.Addr, a.Count)
	for i := range receivers {
		receivers[i], addresses[i] = &receiver{number: i, last: -1, bodies: fnv.New64a()}, addressAfter(a.First, i)
	}
	err := inParallel(a.Count, func(i int) error {
		r := receivers[i]
		name := fmt.Sprintf("subscriber-%s", addresses[i])
		config, err := a.TLS.config(name)
		if err != nil {
			return err
		}
		c := pubsub.Caller{Broker: a.Broker, Dial: dialerFrom(addresses[i]).DialContext, TLS: config, Name: name, QoS: a.QoS, Lost: r.gone}
		return protocolOf(a.Protocol).Subscribe(c, a.Topic, r.got)
	})
	if err != nil {
		return nil, err
	}
	sayReady()
	untilTold()

	d := &deliveries{Least: -1}
	var all, last []time.Duration
	worst, got := map[int]time.Duration{}, map[int]int{}
	for i, r := range receivers {
		r.mu.Lock()
		d.Received += r.received
		d.Twice += r.twice
		d.Gaps += r.gaps
		if r.lost {
			d.LostConns++
		}
		if d.Least < 0 || r.received < d.Least {
			d.Least = r.received
		}
		for _, v := range r.at {
			all = append(all, v.took)
			if v.took > time.Second {
				d.Late++
			}
			worst[v.seq] = max(worst[v.seq], v.took)
			got[v.seq]++
		}
		if sum := r.bodies.Sum64(); i == 0 {
			d.Bodies = sum
		} else if sum != d.Bodies {
			d.Differ++
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
