package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What TLS that gateways open may cost beyond the same run in plain through the same
// gateways.
const (
	tlsBytes   = 1.2              // times the bytes of a delivery, in the steady state
	tlsLatency = time.Millisecond // more at the median, with what clients and broker take for TLS
	tlsReopen  = time.Second      // from when the lanes of a gateway are up that was killed, until its records are opened again
	tlsResumed = 900.0            // bytes of a connection that is resumed, used once and ended
)

// newKeyLog makes an empty key log where nothing reaches a disk, and returns its path.
func (l *lab) newKeyLog() string {
	l.t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", namespaces)
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "keylog")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// preloading returns the environment of a program with OpenSSL that is to write a key log.
func (l *lab) preloading(keylog string) []string {
	l.t.Helper()
	library := filepath.Join(l.dir, "libsheafkeylog.so")
	l.command("make", "-C", "..", "preload", "PRELOAD="+library)
	return []string{"LD_PRELOAD=" + library, "SSLKEYLOGFILE=" + keylog}
}

// opening returns the tables by which the gateways open connections to servers. The
// gateway of one site has the secrets, from a key log, which it empties or not.
func (l *lab) opening(at *site, keylog string, empty bool, servers ...netip.AddrPort) map[*site]string {
	var names []string
	for _, server := range servers {
		names = append(names, strconv.Quote(server.String()))
	}
	tables := map[*site]string{}
	for _, s := range l.sites {
		tables[s] = fmt.Sprintf("[[tls]]\nserver = [%s]\n", strings.Join(names, ", "))
	}
	tables[at] += fmt.Sprintf("keylog = %q\nempty = %v\n", keylog, empty)
	return tables
}

// secureBroker is where mosquitto listens for TLS.
func (l *lab) secureBroker() netip.AddrPort { return netip.AddrPortFrom(l.broker().host4, 8883) }

// secureMosquitto starts the broker, which listens in plain and for TLS. Those who come
// over TLS have to show a certificate, and are the user whom it names; what users may do
// is in the lines of an access list. Who comes in plain may do everything.
func (s *site) secureMosquitto(p *pki, env []string, access ...string) *process {
	l := s.lan.lab
	l.t.Helper()
	acl := p.path("acl")
	if err := os.WriteFile(acl, []byte("topic readwrite #\n"+strings.Join(access, "\n")+"\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return s.mosquittoWith(env, append([]string{"log_type notice", "acl_file " + acl},
		append(p.listener(l.secureBroker()), "require_certificate true", "use_identity_as_username true")...)...)
}

// listener returns the lines of mosquitto's configuration that have it listen for TLS.
func (p *pki) listener(at netip.AddrPort) []string {
	return []string{
		fmt.Sprintf("listener %d %s", at.Port(), at.Addr()),
		"cafile " + p.path("ca.pem"), "certfile " + p.path("server.pem"), "keyfile " + p.path("server.key"),
	}
}

// A secure is where a broker listens for TLS, and what clients need there.
type secure struct {
	broker netip.AddrPort
	*credentials
}

// compareTLS runs a fan-out in plain and over TLS, both through gateways, until the one
// takes little more than the other. Every body has to come as it was sent, and the
// broker's gateway has to tell of messages inside TLS as of others.
func (l *lab) compareTLS(gateways []*gateway, f trial, s secure) {
	t := l.t
	t.Helper()
	delivered, _ := gateways[1].told(f.delivery)
	judge(t, func(a *attempt) {
		plain := l.try(f, "plain")
		over := f
		over.broker, over.tls = s.broker, s.credentials
		m := l.try(over, "TLS")
		delivered += plain.Received + m.Received
		wantTold(t, gateways[1], f.delivery, delivered)
		t.Logf("%v: TLS takes %.2f times the bytes", f, m.perMessage()/plain.perMessage())
		a.atMost(f.String()+" over TLS", m.perMessage(), tlsBytes*plain.perMessage())
		if f.claim != "" {
			a.atMost(f.claim, m.perMessage(), slack*claimed(t, f.claim))
		}
		a.within("added by TLS at p50", m.Latency.P50-plain.Latency.P50, tlsLatency)
	})
}

// connections returns the ends of the connections that the clients' site has to a server,
// in order.
func (l *lab) connections(server netip.AddrPort) []string {
	l.t.Helper()
	var all []string
	for line := range strings.Lines(l.clients().lan.run("ss", "-Htn", "state", "established", "dst", server.String())) {
		all = append(all, strings.Fields(line)[2])
	}
	slices.Sort(all)
	return all
}
