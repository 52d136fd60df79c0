package e2e

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"sheaf/e2e/order"
)

// A guest reaches the host of its gateway, and is reached from there, where the
// configuration says so and not otherwise. The broker behind the peer it reaches in any
// case, and a device beside its port carries on.
func TestGuestsHost(t *testing.T) {
	const mac, guest, router = "52:54:00:01:07:01", "10.1.77.11", "10.1.77.1"
	for _, host := range []bool{false, true} {
		t.Run(fmt.Sprintf("host = %v", host), func(t *testing.T) {
			l := newLab(t, 2)
			path := filepath.Join(l.dir, "port")
			table := fmt.Sprintf("[vm]\naddress = [\"%s/24\"]\nhost = %v\n[[vm.port]]\nname = \"guest\"\nat = \"stream:%s\"\ndial = true\nmac = %q\naddress = [%q]\n",
				router, host, path, mac, guest)
			l.tunnel(tunnelOptions{offload: true, tables: map[*site]string{l.clients(): table}})
			g := l.clients().gw.boot(machine{name: "guest", nics: []nic{{kind: "stream", path: path, mac: mac, dial: true}}})
			g.ask("net", order.Net{MAC: mac, Addresses: []netip.Prefix{netip.MustParsePrefix(guest + "/24")}, Routers: []netip.Addr{netip.MustParseAddr(router)}}, nil)
			for to, reached := range map[netip.Addr]bool{l.broker().host4: true, netip.MustParseAddr(router): true, l.clients().own4: host} {
				var p order.Pinged
				g.ask("ping", order.Ping{To: to, Count: 5, Every: 20 * time.Millisecond, Wait: 3 * time.Second}, &p)
				if (p.Got == p.Sent) != reached || !reached && p.Got > 0 {
					t.Errorf("the guest had %d of %d echoes from %v, which it reaches: %v", p.Got, p.Sent, to, reached)
				}
			}
			out, err := l.clients().gw.try("ping", "-I", "sheaf0", "-c", "3", "-i", "0.2", "-W", "3", guest) // by the device, whatever the routes are
			if (err == nil) != host {
				t.Errorf("from the host: %v\n%s", err, out)
			}
			l.clients().lan.run("ping", "-c", "1", "-W", "5", l.broker().host4.String())
		})
	}
}
