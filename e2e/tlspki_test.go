package e2e

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A pki is an authority, and the certificates that it has signed: ECDSA P-256, as PEM
// files in a folder of the lab.
type pki struct {
	lab  *lab
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
	last int64 // serial number
}

// serverName is what clients call the broker, whose certificate names it and its
// addresses.
const serverName = "broker.example"

// newPKI makes an authority, and a certificate for the broker.
func (l *lab) newPKI() *pki {
	l.t.Helper()
	p := &pki{lab: l, dir: filepath.Join(l.dir, "pki")}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		l.t.Fatal(err)
	}
	p.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign})
	var addresses []net.IP
	for i := range 4 { // what listens on the LAN has one of the first
		addresses = append(addresses, addressAfter(l.broker().host4, i).AsSlice())
	}
	p.sign("server", &x509.Certificate{
		DNSNames: []string{serverName}, IPAddresses: addresses, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return p
}

// client makes a certificate whose common name is that of a client.
func (p *pki) client(name string) {
	p.lab.t.Helper()
	p.sign(name, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// fleet makes the certificates of a fan-out's clients: of so many subscribers, and of the
// publisher beside the broker. It returns their names, the publisher's last.
func (p *pki) fleet(subscribers int) (names []string) {
	p.lab.t.Helper()
	for i := range subscribers {
		names = append(names, "subscriber-"+addressAfter(p.lab.clients().host4, i).String())
	}
	names = append(names, "publisher-"+addressAfter(p.lab.broker().host4, 1).String())
	for _, name := range names {
		p.client(name)
	}
	return names
}

// sign makes a certificate of a template, NAME.pem, and its key, NAME.key. The first is
// the authority, which signs itself and all others.
func (p *pki) sign(name string, template *x509.Certificate) {
	p.lab.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		p.lab.t.Fatal(err)
	}
	p.last++
	template.SerialNumber = big.NewInt(p.last)
	template.Subject = pkix.Name{Organization: []string{"Plant 7"}, CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	template.KeyUsage |= x509.KeyUsageDigitalSignature
	parent, signer := p.cert, p.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		p.lab.t.Fatal(err)
	}
	if p.cert == nil {
		p.key = key
		if p.cert, err = x509.ParseCertificate(der); err != nil {
			p.lab.t.Fatal(err)
		}
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		p.lab.t.Fatal(err)
	}
	p.write(name+".pem", &pem.Block{Type: "CERTIFICATE", Bytes: der})
	p.write(name+".key", &pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

func (p *pki) write(name string, b *pem.Block) {
	p.lab.t.Helper()
	if err := os.WriteFile(p.path(name), pem.EncodeToMemory(b), 0o600); err != nil {
		p.lab.t.Fatal(err)
	}
}

// path returns the path of a file.
func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// credentials returns what clients with certificates of their own need.
func (p *pki) credentials() *credentials {
	return &credentials{Authority: p.path("ca.pem"), Certificates: p.dir}
}

// credentials are what clients need for TLS, of a helper's arguments. A nil pointer is
// for those in plain.
type credentials struct {
	Authority    string // path of whom to trust
	Certificates string // folder of the clients' own, NAME.pem and NAME.key; empty: they have none
	KeyLog       string // path of the key log that they append to; empty: they write none
	Max          uint16 // version of TLS; 0: the newest
}

// config returns what a client is to use.
func (c *credentials) config(name string) (*tls.Config, error) {
	if c == nil {
		return nil, nil
	}
	authority, err := os.ReadFile(c.Authority)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: serverName, MaxVersion: c.Max}
	if !config.RootCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s: no certificate", c.Authority)
	}
	if c.Certificates != "" {
		base := filepath.Join(c.Certificates, name)
		own, err := tls.LoadX509KeyPair(base+".pem", base+".key")
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{own}
	}
	if c.KeyLog != "" {
		if config.KeyLogWriter, err = appending(c.KeyLog); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// logs are the key logs that this process appends to, by path: one file for all its clients.
var logs sync.Map

// appending opens a key log.
func appending(path string) (*os.File, error) {
	open, _ := logs.LoadOrStore(path, sync.OnceValues(func() (*os.File, error) {
		return os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	}))
	return open.(func() (*os.File, error))()
}
