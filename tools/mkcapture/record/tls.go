package record

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// brokerName is the name in the broker's certificate.
const brokerName = "broker.example"

// An authority signs the certificates of a broker and of its clients, ECDSA P-256.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	signed int64 // certificates
}

func newAuthority() (*authority, error) {
	a := &authority{}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("a key: %w", err)
	}
	about := a.about("plant authority")
	about.IsCA, about.BasicConstraintsValid, about.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, about, about, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("a certificate: %w", err)
	}
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// about returns what a certificate says that is valid today.
func (a *authority) about(name string) *x509.Certificate {
	a.signed++
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.signed), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
}

// issue returns a certificate for a name.
func (a *authority) issue(name string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("a key: %w", err)
	}
	about := a.about(name)
	about.DNSNames = []string{name}
	about.KeyUsage = x509.KeyUsageDigitalSignature
	about.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, about, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// roots returns the pool that the authority is in.
func (a *authority) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// save writes the authority's certificate and one of the broker's with its key into a
// folder, as ca.pem, broker.pem and broker.key.
func (a *authority) save(dir string) error {
	cert, err := a.issue(brokerName)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name, kind string
		der        []byte
	}{{"ca.pem", "CERTIFICATE", a.cert.Raw}, {"broker.pem", "CERTIFICATE", cert.Certificate[0]}, {"broker.key", "PRIVATE KEY", key}} {
		if err := os.WriteFile(filepath.Join(dir, f.name), pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der}), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// tlsConfigs makes a certificate for the broker, and returns what both sides use.
func tlsConfigs() (server, client *tls.Config, err error) {
	a, err := newAuthority()
	if err != nil {
		return nil, nil, err
	}
	cert, err := a.issue(brokerName)
	if err != nil {
		return nil, nil, err
	}
	server = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	return server, &tls.Config{RootCAs: a.roots(), ServerName: brokerName, MinVersion: tls.VersionTLS13}, nil
}
