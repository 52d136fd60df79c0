package e2e

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sheaf/tools/pubsub"
)

// few is a fan-out that is long enough to be compared.
func few(protocol, topic string) fanout {
	return fanout{protocol: protocol, topic: topic, subscribers: 50, rate: 20, length: 4 * time.Second}
}

// secureNATS starts a second nats-server, which has clients begin TLS after its first
// line.
func (s *site) secureNATS(p *pki) netip.AddrPort {
	l := s.lan.lab
	l.t.Helper()
	at := netip.AddrPortFrom(addressAfter(s.host4, 1), 4222)
	config := filepath.Join(l.dir, "nats.conf")
	lines := fmt.Sprintf("listen: %q\ntls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n",
		at, p.path("server.pem"), p.path("server.key"), p.path("ca.pem"))
	if err := os.WriteFile(config, []byte(lines), 0o600); err != nil {
		l.t.Fatal(err)
	}
	launch(l.t, "nats-server for TLS", s.lan.command("nats-server", "-c", config))
	s.listeningAt(at)
	return at
}

// listeningAt waits until something on the site's LAN listens at an address.
func (s *site) listeningAt(at netip.AddrPort) {
	l := s.lan.lab
	l.t.Helper()
	eventually(l.t, 60*time.Second, func() string {
		return missingUnless(s.lan.run("ss", "-Hltn", "src", at.String()) != "", "nothing listens at "+at.String())
	})
}

// NATS, whose TLS begins after a line in plain. The server writes no key log: the clients
// do, beside their gateway.
func TestTLSNATS(t *testing.T) {
	l := newLab(t, 2)
	p, keylog := l.newPKI(), l.newKeyLog()
	l.broker().nats()
	at := l.broker().secureNATS(p)
	p.fleet(50)
	c := p.credentials()
	c.KeyLog = keylog
	gateways := l.tunnel(tunnelOptions{offload: true, top: metricsLine, tables: l.opening(l.clients(), keylog, false, at)})
	defer wantNothingLost(t, gateways...)
	const subject = "plant.line-3.state"
	l.compareTLS(gateways, trial{fanout: few("nats", subject), delivery: tally{"nats", "MSG", subject}}, secure{at, c})
	l.wantNoSecrets(secretsOf(t, keylog), nil, gateways...)
}

// RabbitMQ, whose TLS is Erlang's, with a key log beside the clients.
func TestTLSRabbitMQ(t *testing.T) {
	l := newLab(t, 2)
	p, keylog := l.newPKI(), l.newKeyLog()
	at := netip.AddrPortFrom(l.broker().host4, 5671)
	l.broker().rabbitmq(
		"listeners.ssl.1 = "+at.String(),
		"ssl_options.cacertfile = "+p.path("ca.pem"),
		"ssl_options.certfile = "+p.path("server.pem"),
		"ssl_options.keyfile = "+p.path("server.key"),
		"ssl_options.verify = verify_peer",
		"ssl_options.fail_if_no_peer_cert = true",
		"ssl_options.versions.1 = tlsv1.3",
	)
	l.broker().listeningAt(at)
	p.fleet(50)
	c := p.credentials()
	c.KeyLog = keylog
	gateways := l.tunnel(tunnelOptions{offload: true, top: metricsLine, tables: l.opening(l.clients(), keylog, false, at)})
	defer wantNothingLost(t, gateways...)
	const key = "plant.line-3.state"
	l.compareTLS(gateways, trial{fanout: few("amqp", key), delivery: tally{"amqp", "basic.deliver", pubsub.Exchange + "/" + key}}, secure{at, c})
	l.wantNoSecrets(secretsOf(t, keylog), nil, gateways...)
}

// Redis, with a key log that its gateway empties: what was in it the clients know as well.
func TestTLSRedis(t *testing.T) {
	l := newLab(t, 2)
	p, keylog, known := l.newPKI(), l.newKeyLog(), l.newKeyLog()
	at := netip.AddrPortFrom(l.broker().host4, 6380)
	l.broker().redisWith(l.preloading(keylog), "--tls-port", fmt.Sprint(at.Port()),
		"--tls-cert-file", p.path("server.pem"), "--tls-key-file", p.path("server.key"), "--tls-ca-cert-file", p.path("ca.pem"))
	l.broker().listeningAt(at)
	p.fleet(50)
	c := p.credentials()
	c.KeyLog = known
	gateways := l.tunnel(tunnelOptions{offload: true, top: metricsLine, tables: l.opening(l.broker(), keylog, true, at)})
	defer wantNothingLost(t, gateways...)
	const channel = "plant:line-3:state"
	l.compareTLS(gateways, trial{fanout: few("redis", channel), delivery: tally{"redis", "message", channel}}, secure{at, c})
	eventually(t, 5*time.Second, func() string {
		b, err := os.ReadFile(keylog) // holes, which are read as zeros
		return missingUnless(err == nil && len(bytes.Trim(b, "\x00")) == 0, "the key log is not empty")
	})
	l.wantNoSecrets(secretsOf(t, known), nil, gateways...)
}

// Over a carrier in plain secrets would be shown to everybody: a gateway that is
// configured so says why it does not start.
func TestTLSOverPlain(t *testing.T) {
	l := newLab(t, 2)
	keylog := l.newKeyLog()
	for _, g := range l.configure(tunnelOptions{top: `carrier = ["quic", "plain"]`, tables: l.opening(l.broker(), keylog, false, l.secureBroker())}) {
		out, err := g.site.gw.try("timeout", "10", sheaf(t), "up", "-c", g.config)
		if err == nil || !strings.Contains(out, "[[tls]]") || !strings.Contains(out, "plain") {
			t.Errorf("%s: %v\n%s", g.site.gw.name, err, out)
		}
	}
}
