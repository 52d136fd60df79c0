package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"sheaf/tools/pubsub"
)

// resuming is what the resume role does: MQTT clients that connect over TLS 1.3, once to
// be handed a ticket, and when told again and again: each time they subscribe and leave.
type resuming struct {
	Broker  netip.AddrPort
	First   netip.Addr
	Clients int
	Times   int // of each client, with its ticket
	TLS     *credentials
}

// resumed is its result.
type resumed struct {
	Resumed int // connections that were
	Took    quantiles
}

// A visitor is one client, and the ticket that it has.
type visitor struct {
	pubsub.Caller
	resumed bool // the last connection was
}

// visit connects, subscribes and leaves.
func (v *visitor) visit() error {
	o := pubsub.MQTTOptions("tcp://"+v.Broker.String(), func(context.Context, string, string) (net.Conn, error) {
		conn, err := v.Connect()
		if err == nil {
			v.resumed = conn.(*tls.Conn).ConnectionState().DidResume
		}
		return conn, err
	}, v.Name)
	c, err := pubsub.ConnectMQTT(o)
	if err != nil {
		return err
	}
	defer c.Disconnect(0)
	token := c.Subscribe("plant/line-3/orders", 1, nil)
	if !token.WaitTimeout(10 * time.Second) {
		return fmt.Errorf("%s: no SUBACK in 10 s", v.Name)
	}
	return token.Error()
}

func resumeMany(a resuming) (*resumed, error) {
	visitors := make([]*visitor, a.Clients)
	if err := inParallel(a.Clients, func(i int) error {
		from := addressAfter(a.First, i)
		name := "subscriber-" + from.String()
		config, err := a.TLS.config(name)
		if err != nil {
			return err
		}
		config.ClientSessionCache = tls.NewLRUClientSessionCache(1)
		config.CurvePreferences = []tls.CurveID{tls.X25519} // a key share with ML-KEM is 1,184 bytes more that nobody can predict
		visitors[i] = &visitor{Caller: pubsub.Caller{Broker: a.Broker, Dial: dialerFrom(from).DialContext, TLS: config, Name: name}}
		return visitors[i].visit()
	}); err != nil {
		return nil, err
	}
	sayReady()
	untilTold()
	r := &resumed{}
	took := make([]time.Duration, a.Clients*a.Times)
	var again atomic.Int64
	for round := range a.Times {
		if err := inParallel(a.Clients, func(i int) error {
			begin := time.Now()
			err := visitors[i].visit()
			took[round*a.Clients+i] = time.Since(begin)
			if visitors[i].resumed {
				again.Add(1)
			}
			return err
		}); err != nil {
			return nil, err
		}
	}
	r.Resumed, r.Took = int(again.Load()), newQuantiles(took)
	return r, nil
}

// Clients that come back with a ticket cost little each time. One that has a certificate is
// handed tickets with all of it inside, encrypted by the broker for itself: those
// bytes nobody can predict, and there is no limit for them here.
func TestTLSResumption(t *testing.T) {
	l := newLab(t, 2)
	p, keylog := l.newPKI(), l.newKeyLog()
	open := l.secureBroker()
	known := netip.AddrPortFrom(addressAfter(open.Addr(), 1), open.Port())
	lines := append(p.listener(open), "tls_version tlsv1.3")
	lines = append(append(lines, p.listener(known)...), "tls_version tlsv1.3", "require_certificate true")
	l.broker().mosquittoWith(l.preloading(keylog), lines...)
	gateways := l.tunnel(tunnelOptions{offload: true, top: metricsLine, tables: l.opening(l.broker(), keylog, false, open, known)})
	defer wantNothingLost(t, gateways...)
	p.fleet(100)
	anonymous := p.credentials()
	anonymous.Certificates = ""
	for _, c := range []struct {
		what           string
		broker         netip.AddrPort
		tls            *credentials
		clients, times int
		limit          float64 // 0: none
	}{
		{"1000 reconnects, many at a time", open, anonymous, 100, 10, tlsResumed},
		{"reconnects one after the other", open, anonymous, 1, 100, 0},
		{"reconnects with certificates, many at a time", known, p.credentials(), 100, 2, 0},
	} {
		judge(t, func(a *attempt) {
			bytes := l.resume(gateways, c.what, resuming{c.broker, l.clients().host4, c.clients, c.times, c.tls})
			if c.limit > 0 {
				a.atMost(c.what, bytes, c.limit)
			}
		})
	}
	l.wantNoSecrets(secretsOf(t, keylog), nil, gateways...)
}

// resume has clients come back, and returns the bytes on the WAN for each time.
func (l *lab) resume(gateways []*gateway, what string, r resuming) float64 {
	t := l.t
	t.Helper()
	frames := func() (n, bytes uint64) {
		for _, g := range gateways {
			s := g.mustStatus().Peers[0].Sent
			n, bytes = n+s.Frames, bytes+s.BytesFrames
		}
		return n, bytes
	}
	h := l.clients().lan.help("resume", r)
	time.Sleep(time.Second)
	n0, bytes0 := frames()
	sent0, got0 := l.clients().wanCount()
	var done resumed
	h.finish(&done)
	time.Sleep(500 * time.Millisecond)
	sent1, got1 := l.clients().wanCount()
	n1, bytes1 := frames()
	up, down := sent1.sub(sent0), got1.sub(got0)
	times := float64(r.Clients * r.Times)
	each := float64(up.bytes+down.bytes) / times
	t.Logf("%s: %.0f in %v each; up %.0f bytes in %.1f packets, down %.0f in %.1f, together %.0f bytes; frames %.0f bytes in %.1f", what, times, done.Took,
		float64(up.bytes)/times, float64(up.packets)/times, float64(down.bytes)/times, float64(down.packets)/times, each,
		float64(bytes1-bytes0)/times, float64(n1-n0)/times)
	if done.Resumed != int(times) {
		t.Errorf("%s: %d of %.0f connections were resumed", what, done.Resumed, times)
	}
	return each
}
