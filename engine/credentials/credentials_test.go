package credentials

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sheaf/netstack/certtest"
)

// A bench is a folder with credentials, and who is told of them.
type bench struct {
	t       *testing.T
	dir     string
	ca      *certtest.CA
	cfg     Config
	c       *Credentials
	changes []error
}

// newBench writes a certificate and a key, and opens them. change adds to the
// configuration before.
func newBench(t *testing.T, change func(*bench)) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), ca: certtest.NewCA(t, "an authority")}
	b.cfg.Certificate, b.cfg.PrivateKey = certtest.Write(t, b.dir, "server", b.issue(2))
	b.cfg.Changed = func(err error) { b.changes = append(b.changes, err) }
	if change != nil {
		change(b)
	}
	var err error
	if b.c, err = Open(b.cfg); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) issue(serial int64) tls.Certificate {
	b.t.Helper()
	return b.ca.Issue(b.t, certtest.Leaf{Name: "broker", Serial: serial, Hosts: []string{"broker.test"}})
}

// file writes a file and returns its path.
func (b *bench) file(name string, content []byte) string {
	b.t.Helper()
	path := filepath.Join(b.dir, name)
	certtest.WriteFile(b.t, path, content)
	return path
}

func (b *bench) clientCA() {
	b.cfg.ClientCA = b.file("ca.crt", certtest.PEM("CERTIFICATE", b.ca.Certificate.Raw))
}

// client returns a client's configuration, with certificates if there are any.
func (b *bench) client(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{ServerName: "broker.test", RootCAs: b.ca.Pool(), Certificates: certificates}
}

// connect lets a client connect, and returns what each end says of it.
func (b *bench) connect(client *tls.Config) (state tls.ConnectionState, clientErr, serverErr error) {
	b.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		raw, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		defer raw.Close()
		c := tls.Server(raw, b.c.Config())
		if err = c.Handshake(); err == nil {
			_, err = io.WriteString(c, "hello")
			_, _ = io.Copy(io.Discard, c)
		}
		done <- err
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.t.Fatal(err)
	}
	c := tls.Client(raw, client)
	_, clientErr = io.ReadFull(c, make([]byte, 5))
	state = c.ConnectionState()
	_ = c.Close()
	return state, clientErr, <-done
}

// serves wants a client to get in, to a server whose certificate has a serial number.
func (b *bench) serves(client *tls.Config, serial int64) {
	b.t.Helper()
	state, err, serverErr := b.connect(client)
	if err != nil || serverErr != nil {
		b.t.Fatalf("client: %v, server: %v", err, serverErr)
	}
	if got := state.PeerCertificates[0].SerialNumber.Int64(); got != serial {
		b.t.Errorf("served with certificate %d, want %d", got, serial)
	}
}

// A new pair is taken while the server runs. A broken one changes nothing, and is told
// once, if it stays.
func TestRenewal(t *testing.T) {
	b := newBench(t, nil)
	b.serves(b.client(), 2)
	b.c.look(time.Now())
	if len(b.changes) != 0 {
		t.Errorf("told of %v where nothing changed", b.changes)
	}

	next := b.issue(3)
	certtest.WriteFile(t, b.cfg.Certificate, certtest.PEM("CERTIFICATE", next.Certificate...)) // its key is still another
	b.c.look(time.Now())
	b.serves(b.client(), 2)
	if len(b.changes) != 0 || !strings.Contains(b.c.Fault(), "does not match") {
		t.Errorf("told of %v at the first look; fault %q", b.changes, b.c.Fault())
	}
	for range 3 {
		b.c.look(time.Now())
	}
	b.serves(b.client(), 2)
	if len(b.changes) != 1 || b.changes[0] == nil || strings.Contains(b.changes[0].Error(), "\n") {
		t.Errorf("told of %v", b.changes)
	}

	certtest.Write(t, b.dir, "server", next)
	b.c.look(time.Now())
	b.serves(b.client(), 3)
	if len(b.changes) != 2 || b.changes[1] != nil || b.c.Fault() != "" {
		t.Errorf("told of %v; fault %q", b.changes, b.c.Fault())
	}

	// Both in one go, and through a link that is set anew, as Kubernetes does.
	old := b.cfg.Certificate
	if err := os.Rename(old, old+".3"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(old+".3", old); err != nil {
		t.Fatal(err)
	}
	b.c.look(time.Now())
	again := b.ca.Issue(t, certtest.Leaf{Serial: 4, Hosts: []string{"broker.test"}, Key: next.PrivateKey.(crypto.Signer)})
	certtest.WriteFile(t, old+".4", certtest.PEM("CERTIFICATE", again.Certificate...))
	if err := os.Symlink(old+".4", old+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(old+".new", old); err != nil {
		t.Fatal(err)
	}
	b.c.look(time.Now())
	b.serves(b.client(), 4)
}

// What is wrong for a moment is not told, however often that is.
func TestMomentaryFault(t *testing.T) {
	b := newBench(t, nil)
	for range 3 {
		certtest.WriteFile(t, b.cfg.Certificate, []byte("half a"))
		b.c.look(time.Now())
		certtest.Write(t, b.dir, "server", b.issue(3))
		b.c.look(time.Now())
	}
	for _, err := range b.changes {
		if err != nil {
			t.Error(err)
		}
	}
	if len(b.changes) != 3 {
		t.Errorf("told %d times of files that were read again, want 3", len(b.changes))
	}
}

// A file that is gone is a fault, and no reason to stop.
func TestFileGone(t *testing.T) {
	b := newBench(t, nil)
	if err := os.Remove(b.cfg.PrivateKey); err != nil {
		t.Fatal(err)
	}
	b.c.look(time.Now())
	b.c.look(time.Now())
	if len(b.changes) != 1 || !errors.Is(b.changes[0], os.ErrNotExist) {
		t.Errorf("told of %v", b.changes)
	}
	b.serves(b.client(), 2)
}

// A certificate that expires is told, once.
func TestExpiry(t *testing.T) {
	b := newBench(t, nil)
	later := b.c.Until().Add(time.Second)
	for range 3 {
		b.c.look(later)
	}
	if len(b.changes) != 1 || !strings.Contains(b.changes[0].Error(), "server.crt expired on ") {
		t.Errorf("told of %v", b.changes)
	}
	b.c.look(b.c.Until())
	if b.c.Fault() != "" {
		t.Error(b.c.Fault())
	}
}

// What cannot be used is an error that names the file.
func TestOpenErrors(t *testing.T) {
	other := certtest.NewCA(t, "another authority")
	for _, tt := range []struct {
		name   string
		change func(*bench)
		want   string
	}{
		{"no certificate", func(b *bench) { b.cfg.Certificate = b.dir + "/none" }, "none: no such file"},
		{"a folder", func(b *bench) { b.cfg.Certificate = b.dir }, "is not a regular file"},
		{"no PEM", func(b *bench) { b.file("server.crt", []byte("hello")) }, "server.crt with "},
		{"another key", func(b *bench) { _, b.cfg.PrivateKey = certtest.Write(t, b.dir, "other", b.issue(3)) }, "does not match"},
		{"a group may read the key", func(b *bench) { _ = os.Chmod(b.cfg.PrivateKey, 0o640) }, "chmod 600 "},
		{"others may read the key", func(b *bench) { _ = os.Chmod(b.cfg.PrivateKey, 0o604) }, "has mode 0604"},
		{"no client CA", func(b *bench) { b.cfg.ClientCA = b.file("ca.crt", nil) }, `ca.crt: no PEM block "CERTIFICATE"`},
		{"broken client CA", func(b *bench) { b.cfg.ClientCA = b.file("ca.crt", certtest.PEM("CERTIFICATE", []byte("hello"))) }, "ca.crt: x509: malformed"},
		{"no list", func(b *bench) { b.clientCA(); b.cfg.CRL = b.file("crl", nil) }, "crl: no revocation list"},
		{"no list in PEM", func(b *bench) { b.clientCA(); b.cfg.CRL = b.file("crl", certtest.PEM("CERTIFICATE", []byte{1})) }, `crl: no PEM block "X509 CRL"`},
		{"a stranger's list", func(b *bench) { b.clientCA(); b.cfg.CRL = b.file("crl", other.Revoke(t, time.Now().Add(time.Hour))) }, "none in the client CA file has its issuer's name"},
		{"a forged list", func(b *bench) {
			b.clientCA()
			b.cfg.CRL = b.file("crl", certtest.NewCA(t, "an authority").Revoke(t, time.Now().Add(time.Hour)))
		}, "verification failure"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil)
			tt.change(b)
			c, err := Open(b.cfg)
			if c != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q in it", err, tt.want)
			}
		})
	}
}

// Who may come in without a certificate, with a right one, and with one of a stranger.
func TestClientCertificates(t *testing.T) {
	stranger := certtest.NewCA(t, "another authority").Issue(t, certtest.Leaf{Name: "plc-8"})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, optional := range []bool{false, true} {
			t.Run(fmt.Sprint(tls.VersionName(version), optional), func(t *testing.T) {
				b := newBench(t, func(b *bench) { b.clientCA(); b.cfg.Optional = optional })
				try := func(certificates ...tls.Certificate) error {
					client := b.client()
					client.MaxVersion = version
					if len(certificates) > 0 { // also one that the server did not ask for by its issuer
						client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificates[0], nil }
					}
					_, _, err := b.connect(client)
					return err
				}
				if err := try(); (err == nil) != optional {
					t.Errorf("without a certificate: %v", err)
				}
				if err := try(b.ca.Issue(t, certtest.Leaf{Name: "plc-7"})); err != nil {
					t.Errorf("with a certificate: %v", err)
				}
				if err := try(stranger); !errors.As(err, new(*tls.CertificateVerificationError)) {
					t.Errorf("with a stranger's certificate: %v", err)
				}
				expired := b.ca.Issue(t, certtest.Leaf{Name: "plc-9", Until: time.Now().Add(-time.Minute)})
				if err := try(expired); !errors.As(err, new(*tls.CertificateVerificationError)) {
					t.Errorf("with an expired certificate: %v", err)
				}
			})
		}
	}
}

// Versions below 1.2, and suites that seal more than the content or without forward
// secrecy, are not spoken.
func TestVersionsAndSuites(t *testing.T) {
	t.Setenv("GODEBUG", "tls10server=1") // has crypto/tls speak them where nobody says otherwise
	b := newBench(t, nil)
	client := b.client()
	client.MinVersion, client.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	if _, err, _ := b.connect(client); err == nil || !strings.Contains(err.Error(), "protocol version not supported") {
		t.Errorf("TLS 1.1: %v", err)
	}
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if !slices.Contains(s.SupportedVersions, tls.VersionTLS12) || strings.Contains(s.Name, "_RSA_WITH_A") && slices.Contains(Suites, s.ID) || strings.Contains(s.Name, "ECDHE_RSA_WITH_CHACHA") {
			continue // TLS 1.3, or for RSA certificates
		}
		client := b.client()
		client.MaxVersion, client.CipherSuites = tls.VersionTLS12, []uint16{s.ID}
		if _, err, _ := b.connect(client); (err == nil) != slices.Contains(Suites, s.ID) {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

func TestALPNAndKeyLog(t *testing.T) {
	var log bytes.Buffer
	b := newBench(t, func(b *bench) { b.cfg.ALPN, b.cfg.KeyLog = []string{"mqtt", "x-mqtt"}, &log })
	client := b.client()
	client.NextProtos = []string{"x-mqtt", "mqtt"}
	state, err, _ := b.connect(client)
	if err != nil || state.NegotiatedProtocol != "mqtt" {
		t.Errorf("%q, %v", state.NegotiatedProtocol, err)
	}
	b.serves(b.client(), 2) // a client may do without
	client.NextProtos = []string{"h2"}
	if _, err, _ := b.connect(client); err == nil || !strings.Contains(err.Error(), "no application protocol") {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "CLIENT_TRAFFIC_SECRET_0 "); n != 2 {
		t.Errorf("%d secrets logged, want 2", n)
	}
}

// certificateOf returns the certificate that PEM has.
func certificateOf(t *testing.T, c tls.Certificate) *x509.Certificate {
	t.Helper()
	parsed, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
