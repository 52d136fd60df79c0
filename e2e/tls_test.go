package e2e

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// stateTopic is that of a fan-out that names none, and stateTally what status tells of its
// deliveries.
const stateTopic = "plant/line-3/state"

var stateTally = tally{"mqtt", "PUBLISH", stateTopic}

// A secureLab is a lab with mosquitto in it, to which clients come over TLS 1.3 with
// certificates, and two gateways that open it: the broker's has its key log.
type secureLab struct {
	*lab
	pki      *pki
	known    *credentials // of the clients, with a key log that no gateway reads
	names    []string     // of the clients
	server   *process
	gateways []*gateway
}

// newSecureLab makes the lab for a fan-out. The access list lets its clients subscribe
// and publish, and nobody else. The gateway empties the key log or not.
func newSecureLab(t *testing.T, subscribers int, empty bool) *secureLab {
	t.Helper()
	l := newLab(t, 2)
	s := &secureLab{lab: l, pki: l.newPKI()}
	s.known = s.pki.credentials()
	s.known.KeyLog = l.newKeyLog()
	keylog := l.newKeyLog()
	s.names = s.pki.fleet(subscribers)
	var access []string
	for i, name := range s.names {
		may := "read "
		if i == subscribers {
			may = "write "
		}
		access = append(access, "user "+name, "topic "+may+stateTopic)
	}
	access = append(access, "pattern write meters/+/reading")
	s.server = l.broker().secureMosquitto(s.pki, l.preloading(keylog), access...)
	s.gateways = l.tunnel(tunnelOptions{offload: true, top: metricsLine, tables: l.opening(l.broker(), keylog, empty, l.secureBroker())})
	return s
}

// Through gateways that open TLS a delivery takes little more than in plain, and comes
// little later, and so does a report up to the broker; in TLS 1.2 as well. The broker knows the clients by their certificates, and
// no secret is where somebody may see it.
func TestTLS(t *testing.T) {
	const subscribers = 100
	l := newSecureLab(t, subscribers, false)
	defer wantNothingLost(t, l.gateways...)
	wan := l.broker().captureOn("wan0", 2048)
	f := trial{fanout: fanout{protocol: "mqtt", subscribers: subscribers, rate: 20, length: seconds(8, 5)}, delivery: stateTally, claim: "mosquitto over TLS 1.3 with client certificates, fan-out to 100"}
	s := secure{l.secureBroker(), l.known}
	l.compareTLS(l.gateways, f, s)
	for _, name := range l.names {
		if !strings.Contains(l.server.log.String(), " as "+name+" (p2, c1, k120, u'"+name+"')") {
			t.Errorf("the broker does not know %s by its certificate", name)
		}
	}
	l.wantServedByName()
	l.compareTelemetry()
	f.claim = ""
	f.length, f.qos, s.Max = seconds(4, 3), 1, tls.VersionTLS12
	l.compareTLS(l.gateways, f, s)
	l.wantNoSecrets(secretsOf(t, l.known.KeyLog), wan.bytes(), l.gateways...)
	reportGateways(t, l.gateways...)
}

// compareTelemetry has devices report in plain, then over TLS, until the one takes little
// more than the other.
func (l *secureLab) compareTelemetry() {
	a := reporters{First: l.clients().host4, Count: 100, Every: time.Second, For: seconds(5, 4)}
	for i := range a.Count {
		l.pki.client("device-" + addressAfter(a.First, i).String())
	}
	judge(l.t, func(try *attempt) {
		a.Broker, a.TLS = l.brokerAddress(), nil
		plain := l.telemetry("telemetry, plain", a)
		a.Broker, a.TLS = l.secureBroker(), l.known
		b := l.telemetry("telemetry, TLS", a)
		l.t.Logf("telemetry: TLS takes %.2f times the bytes", b/plain)
		try.atMost("telemetry over TLS", b, tlsBytes*plain)
	})
}

// wantServedByName fails the test unless a client of Debian's is served whose certificate
// is in the access list, and another is not, nor one without.
func (l *secureLab) wantServedByName() {
	t := l.t
	t.Helper()
	l.pki.client("stranger")
	subscriber, publisher := l.names[0], l.names[len(l.names)-1]
	got := map[string]*process{}
	for _, who := range []string{subscriber, "stranger", ""} {
		got[who] = launch(t, "mosquitto_sub with a certificate of "+who, l.clients().lan.command("mosquitto_sub", l.debian(who, "-C", "1", "-W", "3")...))
	}
	time.Sleep(time.Second)
	l.broker().lan.run("mosquitto_pub", l.debian(publisher, "-m", "stopped")...)
	for who, p := range got {
		<-p.done
		if served := p.err == nil && p.log.String() == "stopped\n"; served != (who == subscriber) {
			t.Errorf("%s: %v, %q", p.name, p.err, p.log.String())
		}
	}
}

// debian returns the arguments of mosquitto's clients, with somebody's certificate or
// none.
func (l *secureLab) debian(who string, more ...string) []string {
	at := l.secureBroker()
	all := []string{"-h", at.Addr().String(), "-p", fmt.Sprint(at.Port()), "--cafile", l.pki.path("ca.pem"), "-t", stateTopic}
	if who != "" {
		all = append(all, "--cert", l.pki.path(who+".pem"), "--key", l.pki.path(who+".key"))
	}
	return append(all, more...)
}

// A gateway that is killed while TLS runs through it: the connections live on, and once it
// is back their records are opened again, without a new handshake. The key log has
// nothing more to tell then: the other gateway does.
func TestTLSRestart(t *testing.T) {
	const subscribers = 100
	l := newSecureLab(t, subscribers, true)
	f := fanout{subscribers: subscribers, rate: 20, length: 6 * time.Second}
	var plain float64
	l.fanOutWith(f, func() { plain = l.steadily(f) }).wantComplete(t, subscribers)
	f.broker, f.tls = l.secureBroker(), l.known
	f.length, f.settle = 12*time.Second, time.Second
	for _, g := range []*gateway{l.gateways[1], l.gateways[0]} {
		judge(t, func(a *attempt) {
			var r reopening
			m := l.fanOutWith(f, func() { r = l.reopen(f, g) })
			m.report(t, g.site.gw.name+" killed")
			m.wantComplete(t, subscribers)
			t.Logf("%s killed: lanes up again after %v", g.site.gw.name, r.down)
			a.within("opened again", r.opened, tlsReopen)
			a.atMost("fan-out to 100 after that", r.bytes, tlsBytes*plain)
		})
	}
	l.wantNoSecrets(secretsOf(t, l.known.KeyLog), nil, l.gateways...)
}

// A reopening is what became of connections whose gateway was killed.
type reopening struct {
	down   time.Duration // until all lanes were up again
	opened time.Duration // from then until a message inside TLS was told of
	bytes  float64       // of a delivery after that, in the steady state
}

// reopen kills a gateway in the midst of a fan-out and starts it again.
func (l *secureLab) reopen(f fanout, g *gateway) (r reopening) {
	t := l.t
	t.Helper()
	l.wantNoSecrets(secretsOf(t, l.known.KeyLog), nil, g) // its log ends with it
	connects := func() int { return strings.Count(l.server.log.String(), "New connection from ") }
	told := func() int {
		n, _ := l.gateways[1].told(stateTally)
		return n
	}
	before, had := l.connections(f.broker), connects()
	begin := time.Now()
	g.kill()
	g.start()
	l.waitUp(l.gateways...)
	up := time.Now()
	r.down = up.Sub(begin)
	for first := told(); told() == first && time.Since(up) < 2*tlsReopen; {
		time.Sleep(10 * time.Millisecond)
	}
	r.opened = time.Since(up)
	time.Sleep(r.down + 1500*time.Millisecond) // a host's timer doubles while nothing answers
	r.bytes = l.steadily(f)
	if after := l.connections(f.broker); !slices.Equal(after, before) || len(before) != f.subscribers {
		t.Errorf("connections before %v, after %v", before, after)
	}
	if has := connects(); has != had {
		t.Errorf("the broker has %d new connections", has-had)
	}
	return r
}

// steadily returns the bytes on the WAN for each delivery of a fan-out while it runs.
func (l *lab) steadily(f fanout) float64 {
	l.t.Helper()
	begin := time.Now()
	sent0, got0 := l.clients().wanCount()
	time.Sleep(2 * time.Second)
	sent1, got1 := l.clients().wanCount()
	deliveries := time.Since(begin).Seconds() * float64(f.rate*f.subscribers)
	return float64(sent1.sub(sent0).bytes+got1.sub(got0).bytes) / deliveries
}

// Packets with records that were opened come out as they went in: small records, large ones
// in many segments, of TLS 1.3 and 1.2, with handshakes and their ends.
func TestTLSExact(t *testing.T) {
	require(t)
	untilCompared(t, func(t *testing.T) (missing string) {
		const subscribers = 20
		l := newSecureLab(t, subscribers, false)
		captures := [2]*capture{l.clients().capture(66000), l.broker().capture(66000)}
		f := fanout{subscribers: subscribers, rate: 20, length: 2 * time.Second, broker: l.secureBroker(), tls: l.known}
		for i, version := range []uint16{tls.VersionTLS13, tls.VersionTLS12} {
			f.tls.Max, f.qos = version, byte(1+i)
			l.fanOut(f).wantComplete(t, subscribers)
			l.publishLarge(map[uint16]string{tls.VersionTLS13: "tlsv1.3", tls.VersionTLS12: "tlsv1.2"}[version])
		}
		up, down, missing := l.captured(l.gateways, captures)
		if missing != "" {
			return missing
		}
		wantNothingLost(t, l.gateways...)
		if n, _ := l.gateways[1].told(stateTally); n == 0 {
			t.Error("nothing was opened")
		}
		wantExact(t, up, down, true)
		return ""
	})
}

// publishLarge has clients of Debian's send and get a message of many records, over a
// version of TLS.
func (l *secureLab) publishLarge(version string) {
	t := l.t
	t.Helper()
	body := randomText(100_000)
	path := filepath.Join(l.dir, "large")
	if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
		t.Fatal(err)
	}
	subscriber, publisher := l.names[0], l.names[len(l.names)-1]
	sub := launch(t, "mosquitto_sub of a large message", l.clients().lan.command("mosquitto_sub", l.debian(subscriber, "--tls-version", version, "-C", "1", "-W", "10", "-N")...))
	time.Sleep(time.Second)
	l.clients().lan.run("mosquitto_pub", l.debian(publisher, "--tls-version", version, "-f", path)...)
	if <-sub.done; sub.err != nil || sub.log.String() != body {
		t.Errorf("%s: %v; %d bytes came of %d", sub.name, sub.err, len(sub.log.String()), len(body))
	}
}
