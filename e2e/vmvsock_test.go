package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sheaf/e2e/order"
	"sheaf/engine"
)

// A vsockLab is a lab in which the gateway of the first site is a hypervisor's, and its
// guests have no NIC: two that are clients of the broker behind the second site's gateway,
// and one in which a broker runs. It has neither a device nor an address of the guests.
//
//	meter-1, meter-2 --- vsock:1883 ---------- gw1 ------- gw2 ---- broker
//	broker ------------- vsock:broker:1883 --+                 ---- mosquitto_pub, mosquitto_sub
type vsockLab struct {
	*lab
	host   *gateway
	guests map[string]*guest
}

// sockets are the guests, by the names of their ports: CID, and the address that each has
// at the other end. They lie in what the other gateway allows.
var sockets = []struct {
	name    string
	cid     int
	address string
}{{"meter-1", 11, "10.1.7.11"}, {"meter-2", 12, "10.1.7.12"}, {"broker", 13, "10.1.7.13"}}

// guestBroker is where clients find the broker that runs in a guest.
var guestBroker = netip.MustParseAddrPort("10.1.8.10:1883")

func newVsockLab(t *testing.T) *vsockLab {
	t.Helper()
	l := &vsockLab{lab: newLab(t, 2), guests: map[string]*guest{}}
	gateways := l.configure(tunnelOptions{})
	l.host = gateways[0]
	b, err := os.ReadFile(l.host.config)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(b), "[tun]")
	_, peers, found := strings.Cut(rest, "[[peer]]")
	if !found {
		t.Fatalf("a configuration of another form:\n%s", b)
	}
	text := &strings.Builder{}
	fmt.Fprintf(text, "%saddress = [%q]\n[[peer]]%s[vm]\naddress = [\"10.1.7.1/24\"]\n", before, l.clients().own4, peers)
	for _, s := range sockets {
		fmt.Fprintf(text, "[[vm.port]]\nname = %q\nat = \"vhost-user-vsock:%s\"\ncid = %d\naddress = [%q]\n", s.name, l.path(s.name), s.cid, s.address)
	}
	fmt.Fprintf(text, "[[forward]]\nfrom = \"vsock:1883\"\nto = \"%s:1883\"\n", l.broker().host4)
	fmt.Fprintf(text, "[terminate]\nprefixes = [\"%s/32\"]\nmap = { %q = \"vsock:broker:1883\" }\n", guestBroker.Addr(), guestBroker)
	if err := os.WriteFile(l.host.config, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	l.broker().mosquitto("")
	for _, g := range gateways {
		g.start()
	}
	l.waitUp(gateways...)
	return l
}

func (l *vsockLab) path(name string) string { return filepath.Join(l.dir, "vsock-"+name) }

// powerOn starts a guest with a socket device and no NIC. QEMU 7.2 ends where the back end
// of this device is not there yet, and has no reconnection for it.
func (l *vsockLab) powerOn(name string) *guest {
	l.t.Helper()
	g := l.host.site.gw.powerOn(machine{name: name, broker: name == "broker", args: []string{
		"-chardev", "socket,id=vsock,path=" + l.path(name), "-device", "vhost-user-vsock-pci,chardev=vsock",
	}})
	l.guests[name] = g
	return g
}

// port returns the status of a guest's port.
func (l *vsockLab) port(name string) engine.PortStatus {
	l.t.Helper()
	for _, p := range l.host.mustStatus().Guests.Ports {
		if p.Name == name && p.Vsock != nil {
			return p
		}
	}
	l.t.Fatalf("the status has no port %s with vsock", name)
	return engine.PortStatus{}
}

// Guests without a NIC publish and are notified through the tunnel, each message once, by an
// address of its own; one that is killed leaves the other's connection as it is, and
// connects again when it is back. A broker in a guest is reached from the other end.
func TestVsockGuests(t *testing.T) {
	l := newVsockLab(t)
	begin := time.Now()
	for _, s := range sockets {
		l.powerOn(s.name)
	}
	for _, g := range l.guests {
		g.awaitBoot()
		if len(g.booted.NICs) != 0 {
			t.Errorf("%s has NICs: %v", g.machine.name, g.booted.NICs)
		}
	}
	t.Logf("%d guests booted after %v", len(l.guests), time.Since(begin).Round(time.Millisecond))
	meters := []string{"meter-1", "meter-2"}
	for _, name := range meters {
		l.connectMeter(name)
	}
	const count = 40
	l.publishAll(meters, 0, count)
	l.wantReceived(meters, map[string]order.Sequence{"plant/meter-1": {Count: count, Last: count - 1}, "plant/meter-2": {Count: count, Last: count - 1}})
	l.wantSources()

	l.guests["meter-2"].end(9)
	eventually(t, 10*time.Second, func() string {
		if p := l.port("meter-2"); p.Link.Up || p.Vsock.Streams != 0 {
			return fmt.Sprintf("the killed guest is there still: %+v %+v", p.Link, p.Vsock)
		}
		return ""
	})
	l.powerOn("meter-2").awaitBoot()
	l.connectMeter("meter-2")
	l.publishAll(meters, count, count)
	whole := order.Sequence{Count: 2 * count, Last: 2*count - 1}
	l.wantReceived([]string{"meter-1"}, map[string]order.Sequence{"plant/meter-1": whole, "plant/meter-2": whole})
	if p := l.port("meter-2"); p.Link.Connects != 2 || p.Vsock.Violations != 0 {
		t.Errorf("%+v %+v", p.Link, p.Vsock)
	}
	l.brokerInGuest()
	reportGateways(t, l.host)
}

func (l *vsockLab) connectMeter(name string) {
	l.t.Helper()
	// The forward's listener is open once the broker has answered it.
	eventually(l.t, 20*time.Second, func() string {
		if err := l.guests[name].try("connect", order.Client{Name: name, Vsock: 1883, Topic: "plant/+", QoS: 1}, nil); err != nil {
			return err.Error()
		}
		return ""
	})
}

func (l *vsockLab) publishAll(names []string, first, count int) {
	l.t.Helper()
	faults := make(chan error, len(names))
	for _, name := range names {
		go func() {
			faults <- l.guests[name].try("publish", order.Publish{Name: name, Topic: "plant/" + name, QoS: 1, First: first, Count: count, Every: 50 * time.Millisecond}, nil)
		}()
	}
	for range names {
		if err := <-faults; err != nil {
			l.t.Fatal(err)
		}
	}
}

// wantReceived waits until guests have got what was published, and fails the test unless each
// got all of it once, by a connection that never broke.
func (l *vsockLab) wantReceived(names []string, want map[string]order.Sequence) {
	l.t.Helper()
	for _, name := range names {
		var got order.Received
		eventually(l.t, 20*time.Second, func() string {
			l.guests[name].ask("received", order.Name{Name: name}, &got)
			for topic, s := range want {
				if got.Topics[topic].Count < s.Count {
					return fmt.Sprintf("%s has %+v", name, got.Topics)
				}
			}
			return ""
		})
		for topic, s := range want {
			if got.Topics[topic] != s || got.Lost != "" {
				l.t.Errorf("%s: %s: %+v, want %+v; %s", name, topic, got.Topics[topic], s, got.Lost)
			}
		}
		l.t.Logf("%s: from publish to notification p50 %v, p99 %v", name, got.Own.P50, got.Own.P99)
	}
}

// wantSources fails the test unless the broker has a connection from the address of each
// meter, and the status one stream.
func (l *vsockLab) wantSources() {
	l.t.Helper()
	connected := l.broker().lan.run("ss", "-Htn", "state", "established", "sport", "=", ":1883")
	for _, s := range sockets[:2] {
		if !strings.Contains(connected, s.address+":") {
			l.t.Errorf("the broker has no connection from %s, the address of %s:\n%s", s.address, s.name, connected)
		}
		if v := l.port(s.name).Vsock; v.Streams != 1 || v.Refused > 0 && v.Calls == 0 {
			l.t.Errorf("%s: %+v", s.name, v)
		}
	}
}

// brokerInGuest has clients at the other end's broker host publish to and be notified by the
// broker in a guest.
func (l *vsockLab) brokerInGuest() {
	l.t.Helper()
	g := l.guests["broker"]
	g.ask("run", order.Run{Argv: []string{"/mosquitto", "-c", "/etc/mosquitto.conf"}, Port: 1883, Wait: 30 * time.Second}, nil)
	g.ask("relay", order.Relay{Vsock: 1883, To: netip.MustParseAddrPort("127.0.0.1:1883")}, nil)
	at := guestBroker.Addr().String()
	lan := l.broker().lan
	eventually(l.t, 20*time.Second, func() string {
		if out, err := lan.try("mosquitto_pub", "-h", at, "-q", "1", "-r", "-t", "plant/9", "-m", "retained"); err != nil {
			return out
		}
		return ""
	})
	if got := strings.TrimSpace(lan.run("mosquitto_sub", "-h", at, "-q", "1", "-t", "plant/9", "-C", "1", "-W", "20")); got != "retained" {
		l.t.Errorf("the broker in a guest gave %q", got)
	}
	eventually(l.t, 10*time.Second, func() string {
		if p := l.port("broker"); p.Vsock.Streams != 0 || p.Vsock.Dials < 2 || p.Vsock.Overdue != 0 {
			return fmt.Sprintf("streams to the broker: %+v", p.Vsock)
		}
		return ""
	})
}
