package e2e

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"sheaf/tools/pubsub"
)

// connects is what the time-connects role does: clients that connect and leave,
// one after the other.
type connects struct {
	Broker netip.AddrPort
	From   netip.Addr
	Count  int
}

// timeConnects returns how long it took from the SYN to the CONNACK.
func timeConnects(a connects) (*quantiles, error) {
	var took []time.Duration
	sayReady()
	for i := range a.Count {
		begin := time.Now()
		c, err := pubsub.ConnectMQTT(pubsub.MQTTOptions("tcp://"+a.Broker.String(), dialerFrom(a.From).DialContext, fmt.Sprintf("caller-%d", i)))
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
		c.Disconnect(0)
		time.Sleep(20 * time.Millisecond)
	}
	q := newQuantiles(took)
	return &q, nil
}

// Neither a ping nor a connect waits for a window, on any of the ways that it
// takes: there and back, and twice there and back.
func TestPingsAndConnects(t *testing.T) {
	l := newLab(t, 2)
	l.broker().mosquitto()
	l.tunnel(tunnelOptions{offload: true})
	measure := func() (ping time.Duration, connect quantiles) {
		out := l.clients().lan.run("ping", "-q", "-c", "50", "-i", "0.02", l.broker().host4.String())
		_, figures, _ := strings.Cut(out, "mdev = ")
		var least, mean float64
		if _, err := fmt.Sscanf(figures, "%f/%f/", &least, &mean); err != nil {
			t.Fatalf("ping: %v\n%s", err, out)
		}
		l.clients().lan.help("time-connects", connects{l.brokerAddress(), l.clients().host4, 50}).wait(&connect)
		return time.Duration(mean * float64(time.Millisecond)), connect
	}
	inTime(t, func(within func(string, time.Duration, time.Duration)) {
		l.plainRoutes(true)
		plainPing, plain := measure()
		l.plainRoutes(false)
		ping, connect := measure()
		t.Logf("ping: plain %v, sheaf %v; connect: plain %v; sheaf %v", plainPing, ping, plain, connect)
		within("a ping takes longer by", ping-plainPing, window)
		within("a connect takes longer by", connect.P50-plain.P50, window)
	})
}
