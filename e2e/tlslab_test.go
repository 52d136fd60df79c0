package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// What TLS that gateways open may cost beyond the same run in plain through the same
// gateways.
const (
	tlsBytes   = 1.2              // times the bytes of a delivery, in the steady state
	tlsLatency = time.Millisecond // more at the median, with what clients and broker take for TLS
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
		a.within("added by TLS at p50", m.Latency.P50-plain.Latency.P50, tlsLatency)
	})
}
