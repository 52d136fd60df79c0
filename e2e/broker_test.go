package e2e

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// mosquitto starts the broker on a site's LAN and returns its address.
func (s *site) mosquitto(lines ...string) netip.AddrPort {
	s.lan.lab.t.Helper()
	s.mosquittoWith(nil, lines...)
	return netip.AddrPortFrom(s.host4, 1883)
}

// mosquittoWith is mosquitto with variables in the broker's environment, NAME=VALUE.
func (s *site) mosquittoWith(env []string, lines ...string) *process {
	l := s.lan.lab
	l.t.Helper()
	config := filepath.Join(l.dir, s.lan.name+"-mosquitto.conf")
	lines = append([]string{
		"listener 1883 " + s.host4.String(),
		"listener 1883 " + s.host6.String(),
		"allow_anonymous true",
		"persistence false",
		"user root",
		"max_queued_messages 0",
		"log_type error", "log_type warning",
	}, lines...)
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
	broker := launch(l.t, "mosquitto", s.lan.command("sh", "-c", "ulimit -n $(ulimit -Hn); exec env "+strings.Join(env, " ")+" mosquitto -c "+config))
	eventually(l.t, 5*time.Second, func() string {
		if out, err := s.lan.try("mosquitto_pub", "-h", s.host4.String(), "-t", "hello", "-m", "hello"); err != nil {
			return out
		}
		return ""
	})
	return broker
}

// program fails the test if the program of a broker is not there.
func (l *lab) program(path, debian string) {
	l.t.Helper()
	if _, err := exec.LookPath(path); err != nil {
		l.t.Fatalf("end to end: %s is not installed; the Debian package is %s", path, debian)
	}
}

// listening waits until something on the site's LAN listens on each of the ports.
func (s *site) listening(ports ...int) {
	l := s.lan.lab
	l.t.Helper()
	eventually(l.t, 60*time.Second, func() string {
		for _, port := range ports {
			if s.lan.run("ss", "-Hltn", fmt.Sprintf("sport = :%d", port)) == "" {
				return fmt.Sprintf("nothing listens on port %d", port)
			}
		}
		return ""
	})
}

// A quantiles value tells of a set of durations.
type quantiles struct {
	N                  int
	P50, P90, P99, Max time.Duration
}

func newQuantiles(d []time.Duration) quantiles {
	if len(d) == 0 {
		return quantiles{}
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return d[min(int(q*float64(len(d))), len(d)-1)] }
	return quantiles{len(d), at(0.50), at(0.90), at(0.99), d[len(d)-1]}
}

func (q quantiles) String() string {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return fmt.Sprintf("p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, max %.2f ms", ms(q.P50), ms(q.P90), ms(q.P99), ms(q.Max))
}

// addressAfter returns the address that is n after a.
func addressAfter(a netip.Addr, n int) netip.Addr {
	for range n {
		a = a.Next()
	}
	return a
}

// dialerFrom dials from an address.
func dialerFrom(a netip.Addr) *net.Dialer {
	return &net.Dialer{Timeout: 15 * time.Second, LocalAddr: &net.TCPAddr{IP: a.AsSlice()}}
}

// The unmodified clients of a Debian system, over the tunnel and back.
func TestMosquittoClients(t *testing.T) {
	l := newLab(t, 2)
	gateways := l.tunnel(tunnelOptions{offload: true})
	l.broker().mosquitto()
	for _, host := range []netip.Addr{l.broker().host4, l.broker().host6} {
		for qos := range 3 {
			topic, level := fmt.Sprintf("plant/%d", qos), fmt.Sprint(qos)
			sub := launch(t, "mosquitto_sub", l.clients().lan.command("stdbuf", "-oL", "mosquitto_sub", "-d", "-h", host.String(), "-t", topic, "-q", level, "-C", "20", "-W", "20"))
			eventually(t, 10*time.Second, func() string {
				if !strings.Contains(sub.log.String(), "SUBACK") {
					return "no SUBACK: " + sub.log.String()
				}
				return ""
			})
			pub := l.clients().lan.command("mosquitto_pub", "-h", host.String(), "-t", topic, "-q", level, "-l")
			var want []string
			for i := range 20 {
				want = append(want, fmt.Sprintf(`{"line":%d,"state":"running"}`, i))
			}
			pub.Stdin = strings.NewReader(strings.Join(want, "\n") + "\n")
			if out, err := pub.CombinedOutput(); err != nil {
				t.Fatalf("mosquitto_pub: %v\n%s", err, out)
			}
			<-sub.done
			if sub.err != nil {
				t.Errorf("%v, QoS %d: mosquitto_sub: %v", host, qos, sub.err)
			}
			var got []string
			for line := range strings.Lines(sub.log.String()) {
				if strings.HasPrefix(line, "{") {
					got = append(got, strings.TrimSpace(line))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%v, QoS %d: got %q", host, qos, got)
			}
		}
	}
	wantNothingLost(t, gateways...)
	for _, g := range gateways {
		s := g.mustStatus()
		p := s.Peers[0]
		t.Logf("%s: sent %d packets, %d bytes in %d frames, %d bytes", s.Device, p.Sent.Packets, p.Sent.Bytes, p.Sent.Frames, p.Sent.BytesFrames)
		if p.Carrier != "quic" || p.Sent.Packets == 0 || p.Sent.BytesFrames*2 > p.Sent.Bytes {
			t.Errorf("%s: no savings: %+v", g.name, p.Sent)
		}
		messages := uint64(0)
		for _, lane := range p.Lanes {
			for _, e := range lane.Events {
				if e.Protocol == "mqtt" && strings.HasPrefix(e.Event, "plant/") {
					messages += e.Messages
				}
			}
		}
		if messages != 2*3*20 {
			t.Errorf("%s: status tells of %d messages, not 120", g.name, messages)
		}
	}
}
