package e2e

import (
	"bufio"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/netip"

	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/pires/go-proxyproto/tlvparse"

	"sheaf/tools/pubsub"
)

// fronting returns the tables by which the broker's gateway is the TLS server of the
// addresses, in front of a plain server.
func (l *lab) fronting(p *pki, to netip.AddrPort, lines string, servers ...netip.AddrPort) map[*site]string {
	var names []string
	for _, server := range servers {
		names = append(names, strconv.Quote(server.String()))
	}
	tables := map[*site]string{}
	for _, s := range l.sites {
		tables[s] = fmt.Sprintf("[[tls]]\nserver = [%s]\n", strings.Join(names, ", "))
	}
	tables[l.broker()] += fmt.Sprintf("to = %q\ncertificate = %q\nprivate_key = %q\nclient_ca = %q\n%s\n",
		to, p.path("server.pem"), p.path("server.key"), p.path("ca.pem"), lines)
	return tables
}

// revoke makes the list of revoked certificates, NAME.pem, by their serial numbers.
func (p *pki) revoke(name string, serials ...int64) {
	p.lab.t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour)}
	for _, s := range serials {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(s), RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, p.cert, p.key)
	if err != nil {
		p.lab.t.Fatal(err)
	}
	p.write(name+".pem", &pem.Block{Type: "X509 CRL", Bytes: der})
}

// shake has OpenSSL shake hands from beside the clients, and returns what it says. The
// options are its own beyond address and authority.
func (l *lab) shake(p *pki, at netip.AddrPort, options ...string) string {
	l.t.Helper()
	args := append([]string{"s_client", "-connect", at.String(), "-servername", serverName, "-CAfile", p.path("ca.pem"), "-verify_return_error"}, options...)
	cmd := l.clients().lan.command("timeout", append([]string{"10", "openssl"}, args...)...)
	cmd.Stdin = strings.NewReader("Q\n")
	out, _ := cmd.CombinedOutput()
	return string(out)
}

// as returns the options of a client with a certificate.
func (p *pki) as(name string) []string {
	return []string{"-cert", p.path(name + ".pem"), "-key", p.path(name + ".key")}
}

// The gateway as the TLS server in front of a plain mosquitto: in every suite, over both
// versions of IP, for who has a certificate that is not revoked, and with the server's own
// renewed in between. What is not for it goes to the broker's LAN as before.
func TestTLSFront(t *testing.T) {
	const subscribers = 50
	l := newLab(t, 2)
	l.program("openssl", "openssl")
	p := l.newPKI()
	names := p.fleet(subscribers)
	p.client("publisher-" + addressAfter(l.clients().host4, subscribers).String())
	p.client("revoked")
	p.revoke("crl", p.last)
	plain := l.broker().mosquitto()
	at, at6 := l.secureBroker(), netip.AddrPortFrom(l.broker().host6, 8883)
	dead := netip.AddrPortFrom(l.broker().host4, 8884)
	tables := l.fronting(p, plain, fmt.Sprintf("crl = %q\nalpn = [\"mqtt\"]", p.path("crl.pem")), at, at6)
	tables[l.broker()] += l.fronting(p, netip.AddrPortFrom(plain.Addr(), 9), "", dead)[l.broker()]
	gateways := l.tunnel(tunnelOptions{offload: true, top: metricsLine, tables: tables})

	for _, suite := range []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"} {
		if out := l.shake(p, at, append(p.as(names[0]), "-tls1_3", "-ciphersuites", suite, "-alpn", "mqtt")...); !strings.Contains(out, "TLSv1.3, Cipher is "+suite) || !strings.Contains(out, "ALPN protocol: mqtt") {
			t.Errorf("%s: %s", suite, out)
		}
	}
	for _, suite := range []string{"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"} {
		if out := l.shake(p, at6, append(p.as(names[0]), "-tls1_2", "-cipher", suite)...); !strings.Contains(out, "TLSv1.2, Cipher is "+suite) {
			t.Errorf("%s: %s", suite, out)
		}
	}
	for who, options := range map[string][]string{"no certificate": nil, "revoked": p.as("revoked")} {
		if out := l.shake(p, at, append(options, "-tls1_2")...); !strings.Contains(out, "alert") {
			t.Errorf("%s: %s", who, out)
		}
	}
	if out := l.shake(p, dead, p.as(names[0])...); !strings.Contains(out, "Connection refused") {
		t.Errorf("a plain server that is not there: %s", out)
	}
	s := gateways[1].mustStatus().TLSServers
	if len(s) != 2 || s[0].Stats.Opened != 6 || s[0].Failed["no certificate"] != 1 || s[0].Failed["revoked"] != 1 {
		t.Errorf("status tells of %+v", s)
	}
	l.clients().lan.run("ping", "-c", "1", "-W", "5", at.Addr().String())
	l.publishOnce(t, netip.AddrPortFrom(at.Addr(), 1883), plain)
	l.publishOnce(t, at, plain, "--cafile", p.path("ca.pem"), "--cert", p.path(names[0]+".pem"), "--key", p.path(names[0]+".key"))

	c := p.credentials()
	c.KeyLog = l.newKeyLog()
	f := trial{fanout: fanout{protocol: "mqtt", subscribers: subscribers, rate: 20, length: 3 * time.Second, far: true, broker: at, tls: c}, delivery: tally{"mqtt", "PUBLISH", "plant/line-3/state"}}
	delivered := l.try(f, "TLS 1.3").Received
	f.qos, c.Max = 1, tls.VersionTLS12
	delivered += l.try(f, "TLS 1.2").Received
	wantTold(t, gateways[1], f.delivery, delivered)
	l.wantNoSecrets(secretsOf(t, c.KeyLog), nil, gateways...)
	wantNothingLost(t, gateways...)

	p.sign("server", &x509.Certificate{DNSNames: []string{serverName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	eventually(t, 15*time.Second, func() string {
		return missingUnless(strings.Contains(gateways[1].log.String(), "files were read again"), "the new certificate is not taken")
	})
	if out := l.shake(p, at, append(p.as(names[0]), "-verify_hostname", serverName)...); !strings.Contains(out, "Verification: OK") {
		t.Errorf("with a renewed certificate: %s", out)
	}
}

// publishOnce has a Debian system's client publish a message to a broker at an address,
// where somebody beside it gets it at another one.
func (l *lab) publishOnce(t *testing.T, to, at netip.AddrPort, options ...string) {
	t.Helper()
	sub := launch(t, "mosquitto_sub", l.broker().lan.command("stdbuf", "-oL", "mosquitto_sub", "-d", "-h", at.Addr().String(), "-t", "once", "-C", "1", "-W", "20"))
	eventually(t, 10*time.Second, func() string {
		return missingUnless(strings.Contains(sub.log.String(), "SUBACK"), "no SUBACK")
	})
	args := append([]string{"-h", to.Addr().String(), "-p", strconv.Itoa(int(to.Port())), "-t", "once", "-m", "over the tunnel", "-q", "1"}, options...)
	l.clients().lan.run("mosquitto_pub", args...)
	<-sub.done
	if !strings.Contains(sub.log.String(), "over the tunnel") {
		t.Errorf("to %v: %s", to, sub.log.String())
	}
}

// A fan-out through a gateway that is the TLS server takes little more than in plain, and
// comes little later. The publisher is beside the broker, at its plain listener.
func TestTLSFrontBesidePlain(t *testing.T) {
	const subscribers = 100
	l := newLab(t, 2)
	p := l.newPKI()
	p.fleet(subscribers)
	at := l.secureBroker()
	gateways := l.tunnel(tunnelOptions{offload: true, top: metricsLine, tables: l.fronting(p, l.broker().mosquitto(), "", at)})
	defer wantNothingLost(t, gateways...)
	f := trial{fanout: fanout{protocol: "mqtt", subscribers: subscribers, rate: 20, length: seconds(6, 4), front: true}, delivery: stateTally}
	for qos := range 2 {
		f.qos = byte(qos)
		l.compareTLS(gateways, f, secure{at, p.credentials()})
	}
	reportGateways(t, gateways...)
}

// A gateway that is the TLS server ends its connections with itself; clients that come
// back are served by the next run.
func TestTLSFrontRestart(t *testing.T) {
	l := newLab(t, 2)
	p := l.newPKI()
	p.client("plc-7")
	plain, at := l.broker().mosquitto(), l.secureBroker()
	gateways := l.tunnel(tunnelOptions{offload: true, tables: l.fronting(p, plain, "", at)})
	sub := launch(t, "mosquitto_sub", l.clients().lan.command("stdbuf", "-oL", "mosquitto_sub", "-d", "-k", "5", "-h", at.Addr().String(), "-p", "8883", "-t", "news", "-C", "1", "-W", "60",
		"--cafile", p.path("ca.pem"), "--cert", p.path("plc-7.pem"), "--key", p.path("plc-7.key")))
	subscribed := func(times int) {
		t.Helper()
		eventually(t, 40*time.Second, func() string {
			return missingUnless(strings.Count(sub.log.String(), "SUBACK") >= times, "no SUBACK: "+sub.log.String())
		})
	}
	subscribed(1)
	gateways[1].kill()
	gateways[1].start()
	l.waitUp(gateways...)
	subscribed(2)
	l.broker().lan.run("mosquitto_pub", "-h", plain.Addr().String(), "-t", "news", "-m", "after the restart")
	<-sub.done
	if !strings.Contains(sub.log.String(), "after the restart") {
		t.Error(sub.log.String())
	}
}

// A proxied connection is what a plain server learns of one.
type proxied struct {
	Source, Destination     string
	ALPN, Authority         string
	Version, Cipher, Name   string
	SigAlg, KeyAlg          string
	Verified, Shown, Resume bool // the client's certificate: verified; shown, on this connection or before
	Bytes                   string
}

// plainServer is what the proxied role does: it reads the header strictly, and keeps what
// follows, until it is told to end.
func plainServer(at netip.AddrPort) ([]proxied, error) {
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var all []proxied
	var first error
	var open sync.WaitGroup
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				p, err := readProxied(c)
				mu.Lock()
				defer mu.Unlock()
				if first == nil {
					first = err
				}
				if p != nil {
					all = append(all, *p)
				}
			})
		}
	}()
	sayReady()
	untilTold()
	l.Close()
	open.Wait()
	return all, first
}

// readProxied reads all of a connection; nothing of one that ends without a byte.
func readProxied(c net.Conn) (*proxied, error) {
	r := bufio.NewReader(c)
	if _, err := r.Peek(1); err == io.EOF {
		return nil, nil
	}
	h, err := proxyproto.Read(r)
	if err != nil {
		return nil, err
	}
	values, err := h.TLVs()
	if err != nil {
		return nil, err
	}
	p := &proxied{Source: h.SourceAddr.String(), Destination: h.DestinationAddr.String()}
	for _, v := range values {
		switch v.Type {
		case proxyproto.PP2_TYPE_ALPN:
			p.ALPN = string(v.Value)
		case proxyproto.PP2_TYPE_AUTHORITY:
			p.Authority = string(v.Value)
		case proxyproto.PP2_TYPE_SSL:
			ssl, err := tlvparse.SSL(v)
			if err != nil {
				return nil, err
			}
			p.Version, _ = ssl.SSLVersion()
			p.Cipher, _ = ssl.SSLCipher()
			p.Name, _ = ssl.ClientCN()
			p.SigAlg, _ = ssl.SSLSigAlg()
			p.KeyAlg, _ = ssl.SSLKeyAlg()
			p.Verified, p.Shown = ssl.Verified(), ssl.ClientCertConn()
			p.Resume = ssl.ClientCertSess() && !ssl.ClientCertConn()
		}
	}
	b, err := io.ReadAll(r)
	p.Bytes = string(b)
	return p, err
}

// A plain server behind the gateway learns who its clients are.
func TestTLSFrontProxy(t *testing.T) {
	l := newLab(t, 2)
	l.program("openssl", "openssl")
	p := l.newPKI()
	p.client("plc-7")
	to, at := netip.AddrPortFrom(l.broker().host4, 1884), l.secureBroker()
	l.tunnel(tunnelOptions{offload: true, tables: l.fronting(p, to, "client_auth = \"request\"\nalpn = [\"mqtt\"]\nproxy = true", at)})
	server := l.broker().lan.help("proxied", to)
	session := p.path("session")
	for _, options := range [][]string{
		append(p.as("plc-7"), "-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256", "-alpn", "mqtt"),
		append(p.as("plc-7"), "-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384", "-sess_out", session),
		append(p.as("plc-7"), "-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384", "-sess_in", session),
		{"-tls1_3"},
	} {
		if out := l.shake(p, at, options...); !strings.Contains(out, "Verification: OK") {
			t.Errorf("%v: %s", options, out)
		}
	}
	var got []proxied
	server.finish(&got)
	host := l.clients().host4.String() + ":"
	for i := range got {
		if !strings.HasPrefix(got[i].Source, host) || got[i].Destination != at.String() {
			t.Errorf("from %s to %s", got[i].Source, got[i].Destination)
		}
		got[i].Source, got[i].Destination = "", ""
	}
	want := []proxied{
		{ALPN: "mqtt", Version: "TLSv1.3", Cipher: "TLS_CHACHA20_POLY1305_SHA256", Name: "plc-7", Verified: true, Shown: true},
		{Version: "TLSv1.2", Cipher: "ECDHE-ECDSA-AES256-GCM-SHA384", Name: "plc-7", Verified: true, Shown: true},
		{Version: "TLSv1.2", Cipher: "ECDHE-ECDSA-AES256-GCM-SHA384", Name: "plc-7", Verified: true, Resume: true},
		{Version: "TLSv1.3", Cipher: "TLS_AES_128_GCM_SHA256"},
	}
	for i := range want {
		want[i].Authority, want[i].SigAlg, want[i].KeyAlg = serverName, "ecdsa-with-SHA256", "EC256"
	}
	if !slices.Equal(got, want) {
		t.Errorf("the server learnt of\n%+v\nwant\n%+v", got, want)
	}
}

// RabbitMQ behind the gateway sees its clients' own addresses, by PROXY protocol.
func TestTLSFrontRabbitMQ(t *testing.T) {
	l := newLab(t, 2)
	p := l.newPKI()
	p.fleet(20)
	p.client("publisher-" + addressAfter(l.clients().host4, 20).String())
	server := l.broker().rabbitmq("proxy_protocol = true", "log.console.level = info")
	at := netip.AddrPortFrom(l.broker().host4, 5671)
	gateways := l.tunnel(tunnelOptions{offload: true, tables: l.fronting(p, netip.AddrPortFrom(at.Addr(), 5672), "proxy = true", at)})
	defer wantNothingLost(t, gateways...)
	const key = "plant.line-3.state"
	f := trial{fanout: fanout{protocol: "amqp", topic: key, subscribers: 20, rate: 20, length: 2 * time.Second, far: true, broker: at, tls: p.credentials()}}
	f.delivery = tally{"amqp", "basic.deliver", pubsub.Exchange + "/" + key}
	l.try(f, "TLS")
	for i := range 20 {
		from := addressAfter(l.clients().host4, i).String() + ":"
		if !strings.Contains(server.log.String(), from) {
			t.Errorf("RabbitMQ does not log a connection from %s", from)
		}
	}
}

// Clients with certificates that come back to a TLS server of the gateway cost as little
// as those without one: a ticket is the number of a session that stays here.
func TestTLSFrontResumption(t *testing.T) {
	const clients, times = 100, 5
	l := newLab(t, 2)
	p := l.newPKI()
	p.fleet(clients)
	at := l.secureBroker()
	gateways := l.tunnel(tunnelOptions{offload: true, tables: l.fronting(p, l.broker().mosquitto(), "", at)})
	defer wantNothingLost(t, gateways...)
	resumed := uint64(0)
	judge(t, func(a *attempt) {
		const what = "reconnects with certificates, many at a time"
		a.atMost(what, l.resume(gateways, what, resuming{at, l.clients().host4, clients, times, p.credentials()}), tlsResumed)
		resumed += clients * times
		if s := gateways[1].mustStatus().TLSServers[0].Stats; s.Resumed != resumed {
			t.Errorf("status tells of %+v, of %d resumed", s, resumed)
		}
	})
}
