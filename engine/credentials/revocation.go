package credentials

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Why a client's certificate is refused beyond what crypto/tls itself verifies.
var (
	ErrRevoked = errors.New("the client's certificate is revoked")
	ErrNoList  = errors.New("no current revocation list of the client certificate's issuer")
)

// An issuer is who signs certificates and revokes them: a name and a key, which stay when
// its own certificate is renewed.
type issuer struct{ subject, key string }

func issuerOf(c *x509.Certificate) issuer {
	return issuer{string(c.RawSubject), string(c.RawSubjectPublicKeyInfo)}
}

// A list is what one issuer has revoked.
type list struct {
	issuer      string          // its name
	from, until time.Time       // until is zero where the list does not say
	serials     map[string]bool // big-endian
}

func (l *list) current(now time.Time) bool {
	return !now.Before(l.from) && (l.until.IsZero() || !now.After(l.until))
}

// lists are those of all issuers.
type lists map[issuer]*list

// parseLists reads revocation lists: one in DER, or any number in PEM. Each must be
// signed by one of the authorities. Of two of an issuer the newer one counts.
func parseLists(b []byte, authorities []*x509.Certificate) (lists, error) {
	ders := [][]byte{b}
	if bytes.Contains(b, []byte("-----BEGIN")) {
		ders = nil
		for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
			if block.Type == "X509 CRL" {
				ders = append(ders, block.Bytes)
			}
		}
	}
	if len(ders) == 0 {
		return nil, errors.New(`no PEM block "X509 CRL"`)
	}
	all := make(lists)
	for _, der := range ders {
		crl, err := x509.ParseRevocationList(der)
		if err != nil {
			return nil, fmt.Errorf("no revocation list: %w", err)
		}
		for _, e := range crl.Extensions {
			if e.Critical { // RFC 5280 section 5.2: then it must not be used
				return nil, fmt.Errorf("the revocation list of %v has a critical extension %v: only complete lists of one issuer are understood", crl.Issuer, e.Id)
			}
		}
		by, err := signer(crl, authorities)
		if err != nil {
			return nil, err
		}
		if old := all[by]; old != nil && !crl.ThisUpdate.After(old.from) {
			continue
		}
		l := &list{issuer: crl.Issuer.String(), from: crl.ThisUpdate, until: crl.NextUpdate, serials: make(map[string]bool)}
		for _, e := range crl.RevokedCertificateEntries {
			l.serials[string(e.SerialNumber.Bytes())] = true
		}
		all[by] = l
	}
	return all, nil
}

// signer returns which of the authorities signed a list.
func signer(crl *x509.RevocationList, authorities []*x509.Certificate) (issuer, error) {
	err := errors.New("none in the client CA file has its issuer's name")
	for _, a := range authorities {
		if !bytes.Equal(a.RawSubject, crl.RawIssuer) {
			continue
		}
		if err = crl.CheckSignatureFrom(a); err == nil {
			return issuerOf(a), nil
		}
	}
	return issuer{}, fmt.Errorf("the revocation list of %v: %w", crl.Issuer, err)
}

// verify is a tls.Config's VerifyConnection: it refuses a client whose certificate is
// revoked, or not known not to be. It is asked for resumed sessions as well.
func (l lists) verify(state tls.ConnectionState, now time.Time) error {
	if len(state.PeerCertificates) == 0 {
		return nil
	}
	why := ErrNoList
	for _, chain := range state.VerifiedChains {
		switch err := l.check(chain, now); {
		case err == nil:
			return nil
		case errors.Is(err, ErrRevoked):
			why = err
		}
	}
	return why
}

// check tells whether a chain is good. The certificates between the client's and the last
// one need no list, but may be revoked.
func (l lists) check(chain []*x509.Certificate, now time.Time) error {
	for i, c := range chain {
		by := c // one that is itself in the client CA file stands for itself
		if i+1 < len(chain) {
			by = chain[i+1]
		}
		of := l[issuerOf(by)]
		switch {
		case of != nil && of.serials[string(c.SerialNumber.Bytes())]:
			return fmt.Errorf("%w: serial number %x", ErrRevoked, c.SerialNumber)
		case i == 0 && (of == nil || !of.current(now)):
			return ErrNoList
		}
	}
	return nil
}

// outdated returns the name of an issuer whose list is not current, or "".
func (l lists) outdated(now time.Time) string {
	for _, of := range l {
		if !of.current(now) {
			return of.issuer
		}
	}
	return ""
}
