package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/engine/aggregate/seal"
	"sheaf/engine/credentials"
	"sheaf/netstack/certtest"
)

// A frontSites is two gateways without devices, that of the broker with a TLS server.
type frontSites struct {
	clients, broker *site
	ca              *certtest.CA
	address         string // that clients connect to
	dir             string // of the broker's files
	log             record // of the broker's
}

// front starts them, with further lines in the [[tls]] table.
func startFront(t *testing.T, plain net.Addr, lines string) *frontSites {
	t.Helper()
	texts, local := userspaceTexts(t, plain, "quic")
	s := &frontSites{ca: certtest.NewCA(t, "an authority"), address: local, dir: t.TempDir()}
	certtest.Write(t, s.dir, "server", s.ca.Issue(t, certtest.Leaf{Name: "broker", Hosts: []string{"broker.test"}}))
	certtest.WriteFile(t, filepath.Join(s.dir, "ca.crt"), certtest.PEM("CERTIFICATE", s.ca.Certificate.Raw))
	texts[1] = strings.Replace(texts[1], fmt.Sprintf("map = { \"10.2.0.10:1883\" = %q }\n", plain), "", 1)
	texts[1] = "metrics = \"127.0.0.1:0\"\n" + texts[1] + fmt.Sprintf(`
[[tls]]
server = ["10.2.0.10:1883"]
to = %q
certificate = %q
private_key = %q
`, plain, filepath.Join(s.dir, "server.crt"), filepath.Join(s.dir, "server.key")) + strings.ReplaceAll(lines, "DIR", s.dir)
	texts[0] += "[[tls]]\nserver = [\"10.2.0.10:1883\"]\n"
	s.broker = startWith(t, texts[1], s.log.log(), func(*Gateway) {})
	s.clients = start(t, texts[0])
	waitUp(t, s.clients, s.broker)
	return s
}

// connect shakes hands, and echoes a word.
func (s *frontSites) connect(t *testing.T, cfg *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	cfg.ServerName, cfg.RootCAs = "broker.test", s.ca.Pool()
	raw := dial(t, s.address)
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(10 * time.Second))
	c := tls.Client(raw, cfg)
	_, err := io.WriteString(c, "hello")
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, 5))
	}
	return c.ConnectionState(), err
}

// Clients with certificates over the tunnel; why others are not let in is counted, logged
// once and in the metrics. The secrets of connections are there for the lanes.
func TestFrontOverTheTunnel(t *testing.T) {
	s := startFront(t, echoServer(t), "client_ca = \"DIR/ca.crt\"\nalpn = [\"mqtt\"]\n")
	if _, err := s.connect(t, &tls.Config{Certificates: []tls.Certificate{s.ca.Issue(t, certtest.Leaf{Name: "plc-7"})}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.connect(t, &tls.Config{}); err == nil {
			t.Error("let in without a certificate")
		}
	}
	st := s.broker.g.Status()
	if len(st.TLSServers) != 1 {
		t.Fatalf("%+v", st)
	}
	got := st.TLSServers[0]
	if !slices.Equal(got.Servers, []string{"10.2.0.10:1883"}) || got.Stats.Opened != 1 || got.Failed["no certificate"] != 2 || got.Fault != "" || got.Until.Before(time.Now()) {
		t.Errorf("%+v", got)
	}
	if st.Secrets == nil || st.Secrets.Connections == 0 || st.Secrets.Bad != 0 {
		t.Errorf("secrets %+v", st.Secrets)
	}
	if n := s.log.count("TLS handshake failed"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	resp, err := http.Get("http://" + s.broker.g.scrape.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	for _, want := range []string{
		`sheaf_tls_server_handshakes_total{outcome="full",server="10.2.0.10:1883"} 1`,
		`sheaf_tls_server_handshakes_total{outcome="resumed",server="10.2.0.10:1883"} 0`,
		`sheaf_tls_server_handshakes_total{outcome="no certificate",server="10.2.0.10:1883"} 2`,
		`sheaf_tls_server_faults{server="10.2.0.10:1883"} 0`,
		`sheaf_tls_server_certificate_expiry_timestamp_seconds{server="10.2.0.10:1883"} `,
		`sheaf_tls_server_connections{server="10.2.0.10:1883"} `,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in the metrics:\n%s", want, text)
		}
	}
}

// A certificate is renewed under a running gateway, and a broken one is logged while the
// old one serves.
func TestFrontRenewal(t *testing.T) {
	s := startFront(t, echoServer(t), "")
	serial := func() int64 {
		t.Helper()
		state, err := s.connect(t, &tls.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return state.PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 2 {
		t.Errorf("certificate %d", got)
	}
	wait := func(text string) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); s.log.count(text) == 0; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("does not log %q", text)
			}
		}
	}
	certtest.Write(t, s.dir, "server", s.ca.Issue(t, certtest.Leaf{Serial: 3, Hosts: []string{"broker.test"}}))
	wait("files were read again")
	if got := serial(); got != 3 {
		t.Errorf("certificate %d after the renewal", got)
	}
	certtest.WriteFile(t, filepath.Join(s.dir, "server.crt"), []byte("not yet"))
	wait("are not in order")
	if got := serial(); got != 3 {
		t.Errorf("certificate %d while the files are broken", got)
	}
	if f := s.broker.g.Status().TLSServers[0].Fault; f == "" {
		t.Error("status shows no fault")
	}
}

// A gateway does not start with a key that others may read, and says what to do.
func TestFrontKeyPermissions(t *testing.T) {
	dir := t.TempDir()
	certificate, key := certtest.Write(t, dir, "server", certtest.NewCA(t, "an authority").Issue(t, certtest.Leaf{Hosts: []string{"broker.test"}}))
	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	texts, _ := userspaceTexts(t, echoServer(t), "quic")
	cfg, err := ParseConfig([]byte(texts[1] + fmt.Sprintf("[[tls]]\nserver = [\"10.2.0.10:8883\"]\nto = \"127.0.0.1:1883\"\ncertificate = %q\nprivate_key = %q\n", certificate, key)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(cfg, slog.New(slog.DiscardHandler)); !errors.Is(err, credentials.ErrPermissions) || !strings.Contains(err.Error(), "[[tls]] 1: ") || !strings.Contains(err.Error(), "chmod 600 "+key) {
		t.Error(err)
	}
}

// Each way in which a handshake fails has a name; crypto/tls says some of them only in
// words, which may change.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("x: %w", unix.ETIMEDOUT), "timeout"},
		{credentials.ErrRevoked, "revoked"},
		{credentials.ErrNoList, "no revocation list"},
		{io.EOF, "closed"},
		{unix.ECONNRESET, "closed"},
		{context.Canceled, ""},
		{errors.New("something"), "other"},
	} {
		if got := failure(tt.err); got != tt.want {
			t.Errorf("%v is %q, want %q", tt.err, got, tt.want)
		}
	}

	ca, stranger := certtest.NewCA(t, "an authority"), certtest.NewCA(t, "another")
	server := &tls.Config{
		Certificates: []tls.Certificate{ca.Issue(t, certtest.Leaf{Hosts: []string{"broker.test"}})},
		CipherSuites: credentials.Suites, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.Pool(), NextProtos: []string{"mqtt"},
	}
	good := func() *tls.Config {
		return &tls.Config{ServerName: "broker.test", RootCAs: ca.Pool(), Certificates: []tls.Certificate{ca.Issue(t, certtest.Leaf{})}}
	}
	for want, change := range map[string]func(*tls.Config){
		"":               func(*tls.Config) {},
		"no certificate": func(c *tls.Config) { c.Certificates = nil },
		"certificate": func(c *tls.Config) {
			other := stranger.Issue(t, certtest.Leaf{})
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &other, nil }
		},
		"protocol": func(c *tls.Config) { c.NextProtos = []string{"h2"} },
		"version":  func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 },
		"suite": func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_RSA_WITH_AES_128_CBC_SHA}
		},
		"client refused": func(c *tls.Config) { c.RootCAs = stranger.Pool() },
	} {
		client := good()
		change(client)
		err := serveOne(t, server, func(raw net.Conn) {
			c := tls.Client(raw, client)
			_, _ = io.ReadAll(c) // of TLS 1.3 it hears only then what the server says
			_ = c.Close()
		})
		if want == "" {
			if err != nil {
				t.Error(err)
			}
		} else if got := failure(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
	err := serveOne(t, server, func(raw net.Conn) { _, _ = io.WriteString(raw, "GET / HTTP/1.1\r\n\r\n") })
	if failure(err) != "no TLS" {
		t.Errorf("%v is %q", err, failure(err))
	}
}

// serveOne lets a client connect and returns what a server says of its handshake.
func serveOne(t *testing.T, server *tls.Config, client func(net.Conn)) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { client(near); _ = near.Close() })
	defer all.Wait()
	defer far.Close()
	_ = far.SetDeadline(time.Now().Add(10 * time.Second))
	return tls.Server(far, server).Handshake()
}

// What a TLS server here speaks can be opened and sealed again, all of it.
func TestFrontSuitesAreOpened(t *testing.T) {
	for _, s := range credentials.Suites {
		if !seal.Suite(s).Known() {
			t.Errorf("%s is not opened", tls.CipherSuiteName(s))
		}
	}
}
