package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sheaf/engine"
	"sheaf/netstack/certtest"
)

// TestDoctorTLSServer holds what is made of a TLS server's files and of the plain server
// behind it.
func TestDoctorTLSServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	now := time.Now()
	ca := certtest.NewCA(t, "an authority")
	for _, test := range []struct {
		name   string
		until  time.Duration // of the certificate, from now on
		change func(*engine.TLS)
		want   string // of the first line
		mend   string
	}{
		{"well", 15 * 24 * time.Hour, nil, "ok TLS server 10.2.0.10:8883: CERT is good until ", ""},
		{"14 days", 14*24*time.Hour + time.Minute, nil, "ok TLS server 10.2.0.10:8883: CERT is good until ", ""},
		{"soon", 14*24*time.Hour - time.Minute, nil, "warn TLS server 10.2.0.10:8883: CERT expires on ", "renew it"},
		{"expired", -time.Minute, nil, "FAIL TLS server 10.2.0.10:8883: CERT expired on ", "renew it"},
		{"no key", 24 * time.Hour, func(t *engine.TLS) { t.PrivateKey += ".none" }, "FAIL TLS server 10.2.0.10:8883: open ", "put the right file there"},
		{"a key for others", 24 * time.Hour, func(t *engine.TLS) { _ = os.Chmod(t.PrivateKey, 0o644) }, "FAIL TLS server 10.2.0.10:8883: others may read the private key", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			certificate, key := certtest.Write(t, t.TempDir(), "server", ca.Issue(t, certtest.Leaf{Hosts: []string{"broker.test"}, Until: now.Add(test.until)}))
			table := engine.TLS{Servers: []string{"10.2.0.10:8883"}, To: l.Addr().String(), Certificate: certificate, PrivateKey: key}
			if test.change != nil {
				test.change(&table)
			}
			var out bytes.Buffer
			d := &doctor{host: &host{now: func() time.Time { return now }}, out: &out, cfg: &engine.Config{TLS: []engine.TLS{{Servers: []string{"10.2.0.11:8883"}}, table}}}
			d.checkTLSServers(t.Context())
			text := strings.Join(strings.Fields(out.String()), " ")
			if want := strings.Replace(test.want, "CERT", certificate, 1); !strings.HasPrefix(text, want) {
				t.Errorf("%q does not begin with %q", text, want)
			}
			if !strings.Contains(text, test.mend) {
				t.Errorf("%q does not say %q", text, test.mend)
			}
			if want := fmt.Sprintf("ok TLS server the plain server %s takes connections", l.Addr()); !strings.HasSuffix(text, want) {
				t.Errorf("%q does not end with %q", text, want)
			}
		})
	}
	var out bytes.Buffer
	d := &doctor{host: &host{now: time.Now}, out: &out, cfg: &engine.Config{TLS: []engine.TLS{{To: "127.0.0.1:1", Certificate: filepath.Join(t.TempDir(), "none")}}}}
	d.checkTLSServers(t.Context())
	if text := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(text, "warn TLS server the plain server 127.0.0.1:1 takes no connection") {
		t.Errorf("%q", text)
	}
}
