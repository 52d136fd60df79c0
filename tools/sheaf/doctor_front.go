package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"strings"
	"time"

	"sheaf/engine"
)

// soonExpired is how long before its end a certificate is warned of: who renews by
// program does so a third of its life before, 30 days of Let's Encrypt's 90.
const soonExpired = 14 * 24 * time.Hour

// checkTLSServers looks at the [[tls]] tables by which the gateway is itself the TLS
// server.
func (d *doctor) checkTLSServers(ctx context.Context) {
	for i := range d.cfg.TLS {
		if t := &d.cfg.TLS[i]; t.Certificate != "" {
			d.checkTLSFiles(t)
			d.checkPlainServer(ctx, t)
		}
	}
}

// checkTLSFiles looks whether a TLS server's files can be used.
func (d *doctor) checkTLSFiles(t *engine.TLS) {
	what := strings.Join(t.Servers, ", ")
	until, err := engine.InspectTLSServer(t)
	left := until.Sub(d.host.now())
	switch {
	case errors.Is(err, fs.ErrPermission):
		d.warn("TLS server", "run as root", "%s: its files may not be read by this user: %v", what, err)
	case err != nil:
		d.fail("TLS server", "put the right file there; the gateway reads it again by itself, and does not start with this one", "%s: %v", what, err)
	case left <= 0:
		d.fail("TLS server", "renew it", "%s: %s expired on %s", what, t.Certificate, until.UTC().Format(time.DateTime))
	case left < soonExpired:
		d.warn("TLS server", "renew it", "%s: %s expires on %s", what, t.Certificate, until.UTC().Format(time.DateTime))
	default:
		d.ok("TLS server", "%s: %s is good until %s", what, t.Certificate, until.UTC().Format(time.DateTime))
	}
}

// checkPlainServer looks whether the server behind the gateway's TLS answers.
func (d *doctor) checkPlainServer(ctx context.Context, t *engine.TLS) {
	dialer := net.Dialer{Timeout: dialTime}
	c, err := dialer.DialContext(ctx, "tcp", t.To)
	if err != nil {
		d.warn("TLS server", "start the server, or correct to of [[tls]]", "the plain server %s takes no connection: %v", t.To, err)
		return
	}
	c.Close()
	d.ok("TLS server", "the plain server %s takes connections", t.To)
}
