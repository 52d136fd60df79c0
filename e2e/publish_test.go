package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"
)

// publisher is what the publish role does: one client that sends readings at a
// steady rate.
type publisher struct {
	Broker netip.AddrPort
	From   netip.Addr
	Topic  string
	QoS    byte
	Rate   int // messages a second
	For    time.Duration
}

// published is its result, and that of the report role.
type published struct {
	Sent    int
	Failed  int       // not acknowledged, QoS 1 and 2
	Latency quantiles // to the acknowledgement, QoS 1 and 2
}

// A sensor walks at random.
type sensor struct {
	device string
	seq    int
	value  float64
}

// next returns the next reading's body, about 120 bytes.
func (s *sensor) next() []byte {
	s.value += rand.Float64() - 0.5
	b, _ := json.Marshal(reading{
		Device: s.device, Seq: s.seq, Sent: time.Now().UnixNano(),
		Temperature: float64(int(s.value*100)) / 100, State: "running",
	})
	s.seq++
	return b
}

func publish(a publisher) (*published, error) {
	c, err := connect(clientOptions(a.Broker, a.From, "publisher"))
	if err != nil {
		return nil, err
	}
	defer c.Disconnect(250)
	sayReady()
	p := &published{}
	s := &sensor{device: "plant-7/line-3/press-12", value: 180}
	tick := time.NewTicker(time.Second / time.Duration(a.Rate))
	defer tick.Stop()
	for end := time.Now().Add(a.For); time.Now().Before(end); p.Sent++ {
		<-tick.C
		if t := c.Publish(a.Topic, a.QoS, false, s.next()); a.QoS > 0 && !t.WaitTimeout(10*time.Second) {
			p.Failed++
		}
	}
	return p, nil
}

// reporters is what the report role does: many devices, each with an address of
// its own, that publish every now and then, QoS 1.
type reporters struct {
	Broker netip.AddrPort
	First  netip.Addr
	Count  int
	Every  time.Duration
	For    time.Duration
}

func reportTelemetry(a reporters) (*published, error) {
	type device struct {
		publish func() error
		phase   time.Duration
	}
	devices := make([]device, a.Count)
	err := inParallel(a.Count, func(i int) error {
		from := addressAfter(a.First, i)
		c, err := connect(clientOptions(a.Broker, from, "device-"+from.String()))
		s := &sensor{device: fmt.Sprintf("meter-%05d", 10000+i), value: 20}
		devices[i] = device{func() error {
			t := c.Publish(fmt.Sprintf("meters/%05d/reading", 10000+i), 1, false, s.next())
			if !t.WaitTimeout(10 * time.Second) {
				return fmt.Errorf("device %d: no PUBACK in 10 s", i)
			}
			return t.Error()
		}, rand.N(a.Every)}
		return err
	})
	if err != nil {
		return nil, err
	}
	sayReady()
	untilTold()
	p := &published{}
	var mu sync.Mutex
	var all sync.WaitGroup
	var took []time.Duration
	start := time.Now()
	for _, d := range devices {
		all.Go(func() {
			for at := d.phase; at < a.For; at += a.Every {
				time.Sleep(time.Until(start.Add(at)))
				sent := time.Now()
				err := d.publish()
				mu.Lock()
				if p.Sent++; err != nil {
					p.Failed++
				}
				took = append(took, time.Since(sent))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	p.Latency = newQuantiles(took)
	return p, nil
}
