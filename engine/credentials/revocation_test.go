package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"sheaf/netstack/certtest"
)

// withList opens credentials with a client CA and a revocation list.
func withList(t *testing.T, der func(*certtest.CA) []byte, kind string) *bench {
	t.Helper()
	return newBench(t, func(b *bench) {
		b.clientCA()
		content := der(b.ca)
		if kind == "PEM" {
			content = certtest.PEM("X509 CRL", content)
		}
		b.cfg.CRL = b.file("crl", content)
	})
}

// Revoked certificates are refused, in full handshakes and resumed ones, and from when
// the list has them.
func TestRevoked(t *testing.T) {
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for _, kind := range []string{"DER", "PEM"} {
			t.Run(tls.VersionName(version)+" "+kind, func(t *testing.T) {
				until := time.Now().Add(time.Hour)
				b := withList(t, func(ca *certtest.CA) []byte { return ca.Revoke(t, until, 7) }, kind)
				client := func(serial int64) *tls.Config {
					cfg := b.client(b.ca.Issue(t, certtest.Leaf{Name: "plc", Serial: serial}))
					cfg.MaxVersion, cfg.ClientSessionCache = version, tls.NewLRUClientSessionCache(1)
					return cfg
				}
				if _, _, err := b.connect(client(7)); !errors.Is(err, ErrRevoked) {
					t.Errorf("revoked: %v", err)
				}
				other := client(8)
				for i := range 2 {
					if state, _, err := b.connect(other); err != nil || state.DidResume != (i > 0) {
						t.Errorf("not revoked: %v, resumed %v", err, state.DidResume)
					}
				}
				b.file("crl", b.ca.Revoke(t, until, 7, 8))
				b.c.look(time.Now())
				if _, _, err := b.connect(other); !errors.Is(err, ErrRevoked) {
					t.Errorf("revoked with a session: %v", err)
				}
			})
		}
	}
}

// A list that is not current lets nobody in, which is told; a client that need not have a
// certificate and has none is let in.
func TestListNotCurrent(t *testing.T) {
	b := withList(t, func(ca *certtest.CA) []byte { return ca.Revoke(t, time.Now().Add(-time.Minute)) }, "DER")
	client := b.client(b.ca.Issue(t, certtest.Leaf{Name: "plc"}))
	if _, _, err := b.connect(client); !errors.Is(err, ErrNoList) {
		t.Errorf("an expired list: %v", err)
	}
	b.c.look(time.Now())
	b.c.look(time.Now())
	if len(b.changes) != 1 || !strings.Contains(b.changes[0].Error(), "no current revocation list of CN=an authority") {
		t.Errorf("told of %v", b.changes)
	}
	b.file("crl", b.ca.Revoke(t, time.Now().Add(time.Hour)))
	b.c.look(time.Now())
	b.serves(client, 2)
	if len(b.changes) != 2 || b.changes[1] != nil {
		t.Errorf("told of %v", b.changes)
	}

	l := &list{from: time.Unix(100, 0), until: time.Unix(200, 0)}
	for at, want := range map[int64]bool{99: false, 100: true, 200: true, 201: false} {
		if l.current(time.Unix(at, 0)) != want {
			t.Errorf("current at %d: %v", at, !want)
		}
	}
	l.until = time.Time{}
	if !l.current(time.Unix(1<<32, 0)) {
		t.Error("a list that says no end has one")
	}
}

// Which lists a chain needs: one of the issuer of the client's certificate. Others count
// where they are there.
func TestListOfChain(t *testing.T) {
	now := time.Now()
	root, middle := certtest.NewCA(t, "root"), certtest.NewCA(t, "middle")
	leaf := certificateOf(t, middle.Issue(t, certtest.Leaf{Serial: 7}))
	chain := []*x509.Certificate{leaf, middle.Certificate, root.Certificate}
	good := &list{from: now.Add(-time.Minute)}
	revokes := func(serial int64) *list {
		return &list{from: good.from, serials: map[string]bool{string(big.NewInt(serial).Bytes()): true}}
	}
	for _, tt := range []struct {
		name string
		have lists
		want error
	}{
		{"none", lists{}, ErrNoList},
		{"of the root only", lists{issuerOf(root.Certificate): good}, ErrNoList},
		{"of the issuer", lists{issuerOf(middle.Certificate): good}, nil},
		{"of the issuer, with another", lists{issuerOf(middle.Certificate): revokes(8)}, nil},
		{"the leaf is revoked", lists{issuerOf(middle.Certificate): revokes(7)}, ErrRevoked},
		{"the issuer is revoked", lists{issuerOf(middle.Certificate): good, issuerOf(root.Certificate): revokes(1)}, ErrRevoked},
	} {
		if err := tt.have.check(chain, now); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
	// Of several chains one that is good is enough; that one is revoked says more than
	// that another is not known.
	state := tls.ConnectionState{PeerCertificates: chain[:1], VerifiedChains: [][]*x509.Certificate{chain, {leaf, root.Certificate}}}
	if err := (lists{issuerOf(middle.Certificate): revokes(7)}).verify(state, now); !errors.Is(err, ErrRevoked) {
		t.Error(err)
	}
	if err := (lists{issuerOf(root.Certificate): good}).verify(state, now); err != nil {
		t.Error(err)
	}
	if err := (lists{}).verify(tls.ConnectionState{}, now); err != nil {
		t.Errorf("no certificate: %v", err)
	}
}

// Several lists in one file; of one issuer the newer counts, wherever it stands.
func TestParseLists(t *testing.T) {
	one, two := certtest.NewCA(t, "one"), certtest.NewCA(t, "two")
	authorities := []*x509.Certificate{one.Certificate, two.Certificate}
	until := time.Now().Add(time.Hour)
	newer := one.Revoke(t, until, 9)
	all, err := parseLists(certtest.PEM("X509 CRL", newer, two.Revoke(t, until, 5), one.Revoke(t, until, 9, 10)), authorities)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d lists, %v", len(all), err)
	}
	if l := all[issuerOf(one.Certificate)]; len(l.serials) != 1 || !l.serials["\x09"] {
		t.Errorf("%v", l.serials)
	}
	if l := all[issuerOf(two.Certificate)]; !l.serials["\x05"] || l.issuer != "CN=two" {
		t.Errorf("%+v", l)
	}

	// What says that it is not complete must not be taken for it.
	key := certtest.NewKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "three"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCRLSign}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	three, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	delta := &x509.RevocationList{Number: big.NewInt(2), ThisUpdate: time.Now(), NextUpdate: until,
		ExtraExtensions: []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}}}}
	if der, err = x509.CreateRevocationList(nil, delta, three, key); err != nil {
		t.Fatal(err)
	}
	if _, err := parseLists(der, []*x509.Certificate{three}); err == nil || !strings.Contains(err.Error(), "critical extension 2.5.29.27") {
		t.Error(err)
	}
}
