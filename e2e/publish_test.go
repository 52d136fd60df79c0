package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"sheaf/tools/pubsub"
)

// publisher is what the publish role does: one client that sends readings at a
// steady rate.
type publisher struct {
	Protocol string
	Broker   netip.AddrPort
	From     netip.Addr
	Topic    string
	QoS      byte
	Rate     int // messages a second
	For      time.Duration
	Trace    int // bytes of nothing known that each reading has besides
	TLS      *credentials
}

// published is its result, and that of the report role.
type published struct {
	Sent    int
	Bodies  uint64    // digest of all bodies in order, of the publish role
	Failed  int       // not acknowledged, of the report role
	Latency quantiles // to the acknowledgement, of the report role
}

// A sensor walks at random.
type sensor struct {
	device string
	seq    int
	value  float64
	trace  int // bytes
}

// next returns the next reading's body, about 120 bytes beside the trace.
func (s *sensor) next() []byte {
	s.value += rand.Float64() - 0.5
	b, _ := json.Marshal(reading{
		Device: s.device, Seq: s.seq, Sent: time.Now().UnixNano(),
		Temperature: float64(int(s.value*100)) / 100, State: "running", Trace: randomText(s.trace),
	})
	s.seq++
	return b
}

// randomText returns n characters that nothing can predict or compress much.
func randomText(n int) string {
	b := make([]byte, (3*n+3)/4)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return base64.RawStdEncoding.EncodeToString(b)[:n]
}

func publish(a publisher) (*published, error) {
	p := &published{}
	s := &sensor{device: "plant-7/line-3/press-12", value: 180, trace: a.Trace}
	digest := fnv.New64a()
	bodies := func(yield func([]byte) bool) {
		sayReady()
		tick := time.NewTicker(time.Second / time.Duration(a.Rate))
		defer tick.Stop()
		for end := time.Now().Add(a.For); time.Now().Before(end); p.Sent++ {
			<-tick.C
			body := s.next()
			digest.Write(body)
			if !yield(body) {
				return
			}
		}
	}
	name := "publisher-" + a.From.String()
	config, err := a.TLS.config(name)
	if err != nil {
		return nil, err
	}
	c := pubsub.Caller{Broker: a.Broker, Dial: dialerFrom(a.From).DialContext, TLS: config, Name: name, QoS: a.QoS}
	if err := protocolOf(a.Protocol).Publish(c, a.Topic, bodies); err != nil {
		return nil, err
	}
	p.Bodies = digest.Sum64()
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
	TLS    *credentials
}

func reportTelemetry(a reporters) (*published, error) {
	type device struct {
		publish func() error
		phase   time.Duration
	}
	devices := make([]device, a.Count)
	err := inParallel(a.Count, func(i int) error {
		from := addressAfter(a.First, i)
		name := "device-" + from.String()
		config, err := a.TLS.config(name)
		if err != nil {
			return err
		}
		caller := pubsub.Caller{Broker: a.Broker, Dial: dialerFrom(from).DialContext, TLS: config}
		c, err := pubsub.ConnectMQTT(pubsub.MQTTOptions("tcp://"+a.Broker.String(), func(context.Context, string, string) (net.Conn, error) { return caller.Connect() }, name))
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
