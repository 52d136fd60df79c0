package credentials

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"
)

// interval is how often Watch looks at the files: who renews a certificate and then tries
// it does not wait, and four stat calls cost nothing.
const interval = 2 * time.Second

// Suites are those of TLS 1.2 that a server has: with forward secrecy, and authenticated
// encryption in which a record's length is that of its content and no more. Those of TLS
// 1.3 are all like that.
var Suites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// Config says where credentials are.
type Config struct {
	Certificate string // path of a PEM chain, the server's first
	PrivateKey  string // path of its key in PEM, which nobody else may read
	ClientCA    string // path of PEM certificates; empty: clients are not asked for theirs
	CRL         string // path of revocation lists, PEM or DER; empty: none
	Optional    bool   // clients without a certificate are let in as well

	ALPN   []string  // protocols that are spoken, the preferred first; none: whatever
	KeyLog io.Writer // gets the secrets of connections, see tls.Config.KeyLogWriter

	// Changed, if not nil, is called by Watch: with nil when changed files were taken,
	// and with the reason when something is wrong with them, once.
	Changed func(error)
}

// Credentials serve a TLS server.
type Credentials struct {
	cfg      Config
	sessions sessions
	now      atomic.Pointer[current]
	fault    atomic.Pointer[string] // nil: none

	// What follows is Watch's.
	seen  [numFiles]identity // what now was made of
	doubt string             // what was wrong the last time
	told  string             // what Changed was told of
}

// current is what was last read.
type current struct {
	config *tls.Config
	until  time.Time // of the certificate
	lists  lists
}

// Open reads the files.
func Open(cfg Config) (*Credentials, error) {
	c := &Credentials{cfg: cfg}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// Config returns what serves a connection that begins now. It is not to be modified.
func (c *Credentials) Config() *tls.Config { return c.now.Load().config }

// Until returns when the server's certificate expires.
func (c *Credentials) Until() time.Time { return c.now.Load().until }

// Fault returns what is wrong with the files as they are now, or "".
func (c *Credentials) Fault() string {
	if p := c.fault.Load(); p != nil {
		return *p
	}
	return ""
}

// Watch reads the files again when they change, until ctx is done.
func (c *Credentials) Watch(ctx context.Context) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.look(time.Now())
		case <-ctx.Done():
			return
		}
	}
}

// look reads the files again if they changed since what is used was read. Something that is
// wrong is told when it still is the next time: a certificate and its key are two files,
// which nobody replaces at once.
func (c *Credentials) look(now time.Time) {
	changed := c.changed()
	var err error
	if changed { // also where loading failed: then it is not what was read
		err = c.load()
	}
	if err == nil {
		err = c.expired(now)
	}
	if err == nil {
		c.fault.Store(nil)
		c.doubt = ""
		if changed || c.told != "" {
			c.told = ""
			c.tell(nil)
		}
		return
	}
	text := err.Error()
	c.fault.Store(&text)
	if text == c.doubt && text != c.told {
		c.told = text
		c.tell(err)
	}
	c.doubt = text
}

func (c *Credentials) tell(err error) {
	if c.cfg.Changed != nil {
		c.cfg.Changed(err)
	}
}

// expired tells of what was read that it is of no more use.
func (c *Credentials) expired(now time.Time) error {
	have := c.now.Load()
	if now.After(have.until) {
		return fmt.Errorf("%s expired on %s", c.cfg.Certificate, have.until.UTC().Format(time.DateTime))
	}
	if by := have.lists.outdated(now); by != "" {
		return fmt.Errorf("%s has no current revocation list of %s: its clients are refused", c.cfg.CRL, by)
	}
	return nil
}

// load reads all files. On an error nothing changes.
func (c *Credentials) load() error {
	var seen [numFiles]identity
	var content [numFiles][]byte
	defer func() { clear(content[fileKey]) }()
	for i, path := range c.paths() {
		if path == "" {
			continue
		}
		var err error
		if content[i], seen[i], err = readFile(path, i == fileKey); err != nil {
			return err
		}
	}
	pair, err := tls.X509KeyPair(content[fileCertificate], content[fileKey])
	if err != nil {
		return fmt.Errorf("%s with %s: %w", c.cfg.Certificate, c.cfg.PrivateKey, err)
	}
	have := &current{until: pair.Leaf.NotAfter, config: &tls.Config{
		Certificates: []tls.Certificate{pair},
		MinVersion:   tls.VersionTLS12,
		CipherSuites: Suites,
		NextProtos:   c.cfg.ALPN,
		KeyLogWriter: c.cfg.KeyLog,
		// A message of the plain server is a record: small ones at first cost 22 bytes
		// each, and gain what matters to a browser.
		DynamicRecordSizingDisabled: true,
		WrapSession:                 func(_ tls.ConnectionState, s *tls.SessionState) ([]byte, error) { return c.sessions.add(s) },
		UnwrapSession:               func(id []byte, _ tls.ConnectionState) (*tls.SessionState, error) { return c.sessions.get(id) },
	}}
	if c.cfg.ClientCA != "" {
		if err := c.trust(have, content[fileClientCA], content[fileCRL]); err != nil {
			return err
		}
	}
	c.now.Store(have)
	c.seen = seen
	return nil
}

// trust has clients asked for certificates, and says which are good.
func (c *Credentials) trust(have *current, ca, crl []byte) error {
	authorities, err := parseAuthorities(ca)
	if err != nil {
		return fmt.Errorf("%s: %w", c.cfg.ClientCA, err)
	}
	cfg := have.config
	cfg.ClientCAs = x509.NewCertPool()
	for _, a := range authorities {
		cfg.ClientCAs.AddCert(a)
	}
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	if c.cfg.Optional {
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	}
	if c.cfg.CRL == "" {
		return nil
	}
	if have.lists, err = parseLists(crl, authorities); err != nil {
		return fmt.Errorf("%s: %w", c.cfg.CRL, err)
	}
	cfg.VerifyConnection = func(state tls.ConnectionState) error { return have.lists.verify(state, time.Now()) }
	return nil
}

// parseAuthorities reads certificates in PEM, one or more.
func parseAuthorities(b []byte) (all []*x509.Certificate, err error) {
	for block, rest := pem.Decode(b); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, errors.New(`no PEM block "CERTIFICATE"`)
	}
	return all, nil
}
