package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"sheaf/engine/credentials"
	"sheaf/netstack"
)

// complainEvery bounds what the log says of failed handshakes of one server: one client
// with a wrong certificate tries for ever.
const complainEvery = 10 * time.Second

// A front is a [[tls]] table by which the gateway is itself the TLS server, in front of a
// plain one.
type front struct {
	servers     []netip.AddrPort
	plain       netip.AddrPort
	credentials *credentials.Credentials
	server      *netstack.TLSFront
	log         *slog.Logger

	complain rate.Sometimes
	mu       sync.Mutex        // guards failed
	failed   map[string]uint64 // handshakes by the reason, see failure
}

// openFronts reads what the tables with a certificate name. keyLog gets the secrets of
// their connections.
func openFronts(tables []TLS, keyLog func() io.Writer, log *slog.Logger) (all []*front, err error) {
	for i := range tables {
		t := &tables[i]
		if t.Certificate == "" {
			continue
		}
		f := &front{log: log, failed: make(map[string]uint64), complain: rate.Sometimes{First: 1, Interval: complainEvery}}
		if f.servers, err = t.servers(); err != nil {
			return nil, err
		}
		if f.plain, err = t.plain(); err != nil {
			return nil, err
		}
		cfg := t.credentials()
		cfg.KeyLog, cfg.Changed = keyLog(), f.noteChange
		if f.credentials, err = credentials.Open(cfg); err != nil {
			return nil, fmt.Errorf("[[tls]] %d: %w", i+1, err)
		}
		f.server = netstack.NewTLSFront(netstack.TLSFrontConfig{
			Config: f.credentials.Config, To: f.plain, Proxy: t.Proxy, Failed: f.noteFailure,
		})
		all = append(all, f)
	}
	return all, nil
}

// credentials returns where a table's files are.
func (t *TLS) credentials() credentials.Config {
	return credentials.Config{
		Certificate: t.Certificate, PrivateKey: t.PrivateKey,
		ClientCA: t.ClientCA, CRL: t.CRL, Optional: t.ClientAuth == authRequest, ALPN: t.ALPN,
	}
}

// InspectTLSServer reads the files that a [[tls]] table with a certificate names, as a
// gateway does that starts, and returns when the certificate expires. The error is about
// one of them, and says which.
func InspectTLSServer(t *TLS) (until time.Time, err error) {
	c, err := credentials.Open(t.credentials())
	if err != nil {
		return time.Time{}, err
	}
	return c.Until(), nil
}

// fronts returns the TLS servers by their addresses.
func fronts(all []*front) map[netip.AddrPort]*netstack.TLSFront {
	m := make(map[netip.AddrPort]*netstack.TLSFront)
	for _, f := range all {
		for _, s := range f.servers {
			m[s] = f.server
		}
	}
	return m
}

// noteChange logs that files changed, or are of no use.
func (f *front) noteChange(err error) {
	if err != nil {
		f.log.Error("TLS server's files are not in order, what was read before serves on", "server", f.servers[0], "err", err)
		return
	}
	f.log.Info("TLS server's files were read again", "server", f.servers[0], "certificate_until", f.credentials.Until())
}

// noteFailure counts and logs a handshake that failed.
func (f *front) noteFailure(client netip.AddrPort, err error) {
	why := failure(err)
	if why == "" {
		return
	}
	f.mu.Lock()
	f.failed[why]++
	f.mu.Unlock()
	if why != failedClosed {
		f.complain.Do(func() {
			f.log.Warn("TLS handshake failed", "server", f.servers[0], "client", client, "why", why, "err", err)
		})
	}
}

// Why handshakes fail.
const (
	failedClosed = "closed" // the client went away, often one that only looks whether somebody is there
	failedOther  = "other"
)

// failures are what crypto/tls says in words only.
var failures = []struct{ text, why string }{
	{"didn't provide a certificate", "no certificate"},
	{"unsupported application protocols", "protocol"},
	{"offered only unsupported versions", "version"},
	{"no cipher suite supported by both", "suite"},
}

// failure returns the reason of a failed handshake in a word or two, from a fixed set; ""
// where it is that this gateway ends.
func failure(err error) string {
	var remote *net.OpError
	switch {
	case errors.Is(err, context.Canceled):
		return ""
	case errors.Is(err, unix.ETIMEDOUT):
		return "timeout"
	case errors.Is(err, credentials.ErrRevoked):
		return "revoked"
	case errors.Is(err, credentials.ErrNoList):
		return "no revocation list"
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return "certificate"
	case errors.As(err, new(tls.RecordHeaderError)):
		return "no TLS"
	case errors.As(err, &remote) && remote.Op == "remote error": // an alert
		return "client refused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		return failedClosed
	}
	for _, f := range failures {
		if strings.Contains(err.Error(), f.text) {
			return f.why
		}
	}
	return failedOther
}

// A TLSServerStatus tells of a TLS server that the gateway is itself.
type TLSServerStatus struct {
	Servers []string               `json:"servers"`
	To      string                 `json:"to"`
	Until   time.Time              `json:"certificate_until"`
	Fault   string                 `json:"fault,omitempty"` // of its files: why those read before serve on
	Failed  map[string]uint64      `json:"failed"`          // handshakes, by why
	Stats   netstack.TLSFrontStats `json:"connections"`
}

func (f *front) status() TLSServerStatus {
	s := TLSServerStatus{
		To: f.plain.String(), Until: f.credentials.Until(), Fault: f.credentials.Fault(),
		Failed: make(map[string]uint64), Stats: f.server.Stats(),
	}
	for _, a := range f.servers {
		s.Servers = append(s.Servers, a.String())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for why, n := range f.failed {
		s.Failed[why] = n
	}
	return s
}
