// Package certtest makes certificates, keys and revocation lists for tests.
package certtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A CA signs certificates.
type CA struct {
	Certificate *x509.Certificate
	key         crypto.Signer
}

// A Leaf says what certificate to make. The zero value of each field is its default.
type Leaf struct {
	Name   string        // common name
	Hosts  []string      // addresses and names of a server; none: it is a client's
	Serial int64         // 2
	Key    crypto.Signer // a new one of ECDSA on P-256
	Until  time.Time     // in an hour
}

// NewKey returns a key of ECDSA on P-256.
func NewKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// NewCA makes an authority that signs with an ECDSA key.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	key := NewKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return &CA{sign(t, template, template, key.Public(), key), key}
}

// Issue makes a certificate, with its Leaf parsed.
func (ca *CA) Issue(t testing.TB, l Leaf) tls.Certificate {
	t.Helper()
	if l.Serial == 0 {
		l.Serial = 2
	}
	if l.Key == nil {
		l.Key = NewKey(t)
	}
	if l.Until.IsZero() {
		l.Until = time.Now().Add(time.Hour)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(l.Serial), Subject: pkix.Name{CommonName: l.Name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: l.Until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, h := range l.Hosts {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		if a := net.ParseIP(h); a != nil {
			template.IPAddresses = append(template.IPAddresses, a)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	leaf := sign(t, template, ca.Certificate, l.Key.Public(), ca.key)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: l.Key, Leaf: leaf}
}

// Revoke returns the list, in DER, of revoked certificates by their serials, which is to
// be replaced until next.
func (ca *CA) Revoke(t testing.TB, next time.Time, serials ...int64) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: next}
	for _, s := range serials {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: big.NewInt(s), RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, ca.Certificate, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// Pool returns a pool that has the CA.
func (ca *CA) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.Certificate)
	return pool
}

// PEM returns blocks of a type, one for each of ders.
func PEM(kind string, ders ...[]byte) []byte {
	var out []byte
	for _, der := range ders {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})...)
	}
	return out
}

// Write writes a certificate and its key as NAME.crt and NAME.key, of mode 0600, and
// returns their paths.
func Write(t testing.TB, dir, name string, c tls.Certificate) (certificate, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	WriteFile(t, certificate, PEM("CERTIFICATE", c.Certificate...))
	WriteFile(t, key, PEM("PRIVATE KEY", der))
	return certificate, key
}

// WriteFile puts a new file of mode 0600 in the place of path, as who renews certificates
// does.
func WriteFile(t testing.TB, path string, b []byte) {
	t.Helper()
	err := os.WriteFile(path+".new", b, 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sign(t testing.TB, template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
