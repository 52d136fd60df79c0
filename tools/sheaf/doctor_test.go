package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sheaf/engine"
)

// deviceConfig is a configuration with a device. %q: key, fingerprint.
const deviceConfig = `key = %q
control = "CONTROL"
[tun]
address = ["10.99.0.1/24", "fd99::1/64"]
[[peer]]
name = "datacentre"
fingerprint = %q
endpoint = "127.0.0.1:9"
allowed = ["10.2.0.0/24", "10.99.0.2", "fd00:2::/64"]
`

// A patient is a host made up for doctor, on which all is well.
type patient struct {
	dir    string
	config string // its text
	host   *host
	net    *network
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{dir: t.TempDir(), net: &network{
		devices: []device{{"lo", 65536, true, true}, {"eth0", 1500, true, false}, {"eth1", 9000, false, false}},
		addresses: []located{
			{prefix: netip.MustParsePrefix("127.0.0.1/8"), device: "lo"}, {prefix: netip.MustParsePrefix("10.1.0.1/16"), device: "eth0"}, {prefix: netip.MustParsePrefix("fe80::1/64"), device: "eth0"},
		},
		routes: []located{
			{prefix: netip.MustParsePrefix("0.0.0.0/0"), device: "eth0"}, {prefix: netip.MustParsePrefix("10.1.0.0/16"), device: "eth0"},
			{prefix: netip.MustParsePrefix("::/0"), device: "eth0"}, {prefix: netip.MustParsePrefix("fe80::/64"), device: "eth0"}, {prefix: netip.MustParsePrefix("ff00::/8"), device: "eth0"},
		},
	}}
	p.host = &host{
		root:    filepath.Join(p.dir, "root"),
		network: func() (*network, error) { return p.net, nil },
		now:     func() time.Time { return time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC) },
	}
	p.set(t, tunDriver, "")
	p.set(t, "/proc/self/status", "Name:\tsheaf\nCapEff:\t0000000000001000\n")
	for name, value := range map[string]string{
		"ipv4/ip_forward": "1", "ipv6/conf/all/forwarding": "1", "ipv6/conf/all/disable_ipv6": "0", "ipv6/conf/default/disable_ipv6": "0",
		"ipv4/conf/all/rp_filter": "0", "ipv4/conf/default/rp_filter": "2", "core/rmem_max": "7500000", "core/wmem_max": "7500000",
	} {
		p.set(t, "/proc/sys/net/"+name, value+"\n")
	}
	key, other := filepath.Join(p.dir, "key"), filepath.Join(p.dir, "other")
	newKey(t, key)
	p.config = strings.Replace(fmt.Sprintf(deviceConfig, key, newKey(t, other)), "CONTROL", filepath.Join(p.dir, "c.sock"), 1)
	return p
}

// set writes a file of the host's system.
func (p *patient) set(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(p.host.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// examine runs doctor, but for what is beyond the host, and returns what it says.
func (p *patient) examine(t *testing.T, running *engine.Status) (string, *doctor) {
	t.Helper()
	path := filepath.Join(p.dir, "sheaf.toml")
	if err := os.WriteFile(path, []byte(p.config), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	d := &doctor{host: p.host, path: path, out: &out}
	d.checkConfig()
	d.checkControl(t.Context())
	if running != nil {
		d.running = running
	}
	d.checkKey()
	d.checkClock()
	d.checkDriver()
	d.checkCapability()
	if d.cfg != nil {
		d.checkNetwork()
		d.checkBuffers()
		d.checkListen()
		d.checkTLS()
	}
	return out.String(), d
}

func TestDoctorHost(t *testing.T) {
	busy, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	replace := func(old, with string) func(*testing.T, *patient) {
		return func(t *testing.T, p *patient) {
			if !strings.Contains(p.config, old) {
				t.Fatalf("%q is not in\n%s", old, p.config)
			}
			p.config = strings.Replace(p.config, old, with, 1)
		}
	}
	set := func(name, value string) func(*testing.T, *patient) {
		return func(t *testing.T, p *patient) { p.set(t, name, value) }
	}
	remove := func(path string) func(*testing.T, *patient) {
		return func(t *testing.T, p *patient) { _ = os.Remove(filepath.Join(p.host.root, path)) }
	}
	route := func(prefix, device string) func(*testing.T, *patient) {
		return func(_ *testing.T, p *patient) {
			p.net.routes = append(p.net.routes, located{prefix: netip.MustParsePrefix(prefix), device: device})
		}
	}
	running := &engine.Status{Device: "sheaf7", Fingerprint: "another", Uptime: time.Minute, Peers: []engine.PeerStatus{
		{Name: "datacentre", Allowed: []string{"10.2.0.0/24", "10.99.0.2/32", "fd00:2::/64", "10.8.0.0/24"}},
	}}
	without := func(prefix string) func(*testing.T, *patient) { // the routes of the gateway, or its address
		p := netip.MustParsePrefix(prefix)
		return func(_ *testing.T, pt *patient) {
			pt.net.routes = slices.DeleteFunc(pt.net.routes, func(r located) bool { return r.prefix == p && r.device == "sheaf7" })
			pt.net.addresses = slices.DeleteFunc(pt.net.addresses, func(r located) bool { return r.prefix == p && r.device == "sheaf7" })
		}
	}
	fallback := func(prefix string) func(*testing.T, *patient) {
		return func(_ *testing.T, p *patient) {
			p.net.routes = append(p.net.routes, located{prefix: netip.MustParsePrefix(prefix), spare: true, ours: true})
		}
	}
	for _, test := range []struct {
		name    string
		spoil   func(*testing.T, *patient)
		running *engine.Status
		line    string // how a line begins, with single spaces
		mend    string // part of the mend under it
	}{
		{"well", func(*testing.T, *patient) {}, nil, "ok routes nothing on this host overlaps the 3 subnets behind peers", ""},
		{"config", replace("allowed", "alowed"), nil, "FAIL configuration", ""},
		{"plain", replace("[tun]", "carrier = [\"plain\"]\n[tun]"), nil, "warn configuration carrier = [\"plain\"]", "inside another VPN"},
		{"control off", func(t *testing.T, p *patient) { replace(filepath.Join(p.dir, "c.sock"), "off")(t, p) }, nil, "warn control", "give it a path"},
		{"control long", func(t *testing.T, p *patient) {
			replace(filepath.Join(p.dir, "c.sock"), "/"+strings.Repeat("x", 107))(t, p)
		}, nil, "FAIL control", "shorter path"},
		{"control taken", func(t *testing.T, p *patient) {
			_ = os.WriteFile(filepath.Join(p.dir, "c.sock"), nil, 0o600)
		}, nil, "FAIL control at ", "set control to another path"},
		{"control folder", func(t *testing.T, p *patient) {
			replace(filepath.Join(p.dir, "c.sock"), filepath.Join(p.dir, "none", "c.sock"))(t, p)
		}, nil, "FAIL control the socket cannot be made", "a folder that exists"},
		{"no key", func(_ *testing.T, p *patient) { _ = os.Remove(filepath.Join(p.dir, "key")) }, nil, "FAIL key", "sheaf keygen /"},
		{"open key", func(_ *testing.T, p *patient) { _ = os.Chmod(filepath.Join(p.dir, "key"), 0o640) }, nil, "FAIL key", "chmod 600 /"},
		{"bad key", func(_ *testing.T, p *patient) {
			_ = os.WriteFile(filepath.Join(p.dir, "key"), []byte("x"), 0o600)
		}, nil, "FAIL key", "make another"},
		{"open folder", func(_ *testing.T, p *patient) { _ = os.Chmod(p.dir, 0o777) }, nil, "warn key others may write to", "chmod go-w"},
		{"own fingerprint", func(t *testing.T, p *patient) { p.config = strings.Replace(p.config, `key"`, `other"`, 1) }, nil, "FAIL key [[peer]] \"datacentre\": the fingerprint is this gateway's own", "at the other end"},
		{"other key runs", func(*testing.T, *patient) {}, running, "warn key the gateway that is running has another one", "restart"},
		{"clock", func(_ *testing.T, p *patient) { p.host.now = func() time.Time { return time.Unix(0, 0) } }, nil, "warn clock it says 1970-01-01", "set-ntp"},
		{"no driver", remove(tunDriver), nil, "FAIL driver", "modprobe tun"},
		{"no capability", set("/proc/self/status", "CapEff:\t0000000000000000\n"), nil, "FAIL capability", "run as root"},
		{"name taken", replace("[tun]", "[tun]\nname = \"eth1\""), nil, "FAIL device eth1", "ip link del eth1"},
		{"name free", replace("[tun]", "[tun]\nname = \"sheaf7\""), nil, "ok device sheaf7 is free", ""},
		{"name running", replace("[tun]", "[tun]\nname = \"sheaf7\""), running, "ok device sheaf7 is the gateway's", ""},
		{"other name runs", replace("[tun]", "[tun]\nname = \"sheaf8\""), running, "warn device", "restart"},
		{"same route", route("10.2.0.0/24", "eth1"), nil, "FAIL routes [[peer]] \"datacentre\": route 10.2.0.0/24: device eth1 has it already", "ip route"},
		{"route inside", route("10.2.0.128/25", "eth1"), nil, "FAIL routes [[peer]] \"datacentre\": route 10.2.0.0/24: device eth1 has 10.2.0.128/25 inside it", "ip route"},
		{"own route", route("10.2.0.0/24", "sheaf7"), running, "ok routes", ""},
		{"wider route", route("10.0.0.0/8", "eth1"), nil, "ok routes", ""},
		{"spare route", func(_ *testing.T, p *patient) {
			p.net.routes = append(p.net.routes, located{prefix: netip.MustParsePrefix("10.2.0.0/24"), spare: true})
		}, nil, "ok routes nothing on this host overlaps", ""},
		{"spare route inside", func(_ *testing.T, p *patient) {
			p.net.routes = append(p.net.routes, located{prefix: netip.MustParsePrefix("10.2.0.128/25"), spare: true})
		}, nil, "FAIL routes [[peer]] \"datacentre\": route 10.2.0.0/24: another route has 10.2.0.128/25", "ip route"},
		{"in place", func(*testing.T, *patient) {}, running, "ok routes sheaf7 has its addresses, and the routes to 4 subnets", ""},
		{"device gone", func(_ *testing.T, p *patient) { p.net.devices = p.net.devices[:3] }, running, "FAIL device sheaf7 of the gateway that is running is gone", "restart"},
		{"device down", func(_ *testing.T, p *patient) { p.net.device("sheaf7").up = false }, running, "FAIL device sheaf7 is down", "NetworkManager"},
		{"address missing", without("fd99::1/64"), running, "FAIL address fd99::1/64 is missing on device sheaf7", "in its log"},
		{"route missing", without("10.2.0.0/24"), running, "FAIL routes 10.2.0.0/24, behind datacentre, has no route to device sheaf7", "in its log"},
		{"added route missing", without("10.8.0.0/24"), running, "FAIL routes 10.8.0.0/24, behind datacentre, has no route to device sheaf7", "in its log"},
		{"route inside an added one", route("10.8.0.128/25", "eth1"), running, "FAIL routes behind datacentre: route 10.8.0.0/24: device eth1 has 10.8.0.128/25 inside it", "ip route"},
		{"fallback to come", func(*testing.T, *patient) {}, nil, "ok fallback packets to the 3 subnets behind peers will be refused", ""},
		{"fallback", func(t *testing.T, p *patient) {
			for _, f := range []string{"10.2.0.0/24", "10.99.0.2/32", "fd00:2::/64"} {
				fallback(f)(t, p)
			}
		}, nil, "ok fallback while no gateway runs, packets to the 3 subnets behind peers are refused", ""},
		{"fallback missing", fallback("10.2.0.0/24"), running, "warn fallback of the 3 subnets behind peers 2 would go", "in the gateway's log"},
		{"fallback is others", replace("[tun]", "[tun]\nfallback = \"route\""), nil, "ok fallback while no gateway runs, packets to the 3 subnets behind peers go where other routes lead", ""},
		{"stale fallback", fallback("10.77.0.0/16"), nil, "warn fallback packets to 10.77.0.0/16 are refused for a gateway", "ip route del unreachable 10.77.0.0/16 proto 115"},
		{"fallback of an added route", func(t *testing.T, p *patient) {
			for _, f := range []string{"10.2.0.0/24", "10.99.0.2/32", "fd00:2::/64", "10.8.0.0/24"} {
				fallback(f)(t, p)
			}
		}, running, "ok fallback while no gateway runs, packets to the 3 subnets behind peers are refused", ""},
		{"all routes", replace("10.2.0.0/24", "0.0.0.0/0"), nil, "FAIL routes", "only what is behind the peer"},
		{"LAN behind peer", replace("10.2.0.0/24", "10.0.0.0/8"), nil, "FAIL routes", "ip route"},
		{"own address", replace("10.2.0.0/24", "10.1.0.1"), nil, "warn routes", "both ends"},
		{"tunnel subnet", replace("10.99.0.2", "10.99.0.0/24"), nil, "FAIL routes [[peer]] \"datacentre\": allowed 10.99.0.0/24 is the subnet of the tunnel", "10.99.0.1/32"},
		{"address taken", replace("10.99.0.1/24", "10.1.0.1/32"), nil, "FAIL address 10.1.0.1 is device eth0's already", "of its own"},
		{"subnet taken", route("10.99.0.0/25", "eth1"), nil, "FAIL address 10.99.0.1/24", "nowhere else"},
		{"IPv6 off", set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1\n"), nil, "FAIL address fd99::1/64: IPv6 is off", "sysctl -w net.ipv6.conf.default.disable_ipv6=0"},
		{"IPv4 not forwarded", set("/proc/sys/net/ipv4/ip_forward", "0\n"), nil, "warn forwarding net.ipv4.ip_forward is 0", "sysctl -w net.ipv4.ip_forward=1"},
		{"IPv6 not forwarded", set("/proc/sys/net/ipv6/conf/all/forwarding", "0\n"), nil, "warn forwarding net.ipv6.conf.all.forwarding is 0", "accept_ra"},
		{"no IPv6", remove("/proc/sys/net/ipv6/conf/all/forwarding"), nil, "warn forwarding net.ipv6.conf.all.forwarding is not known", "kernel"},
		{"gateways only", replace(`"10.2.0.0/24", "10.99.0.2", "fd00:2::/64"`, `"10.99.0.2", "fd99::2"`), nil, "ok forwarding not needed", ""},
		{"strict", set("/proc/sys/net/ipv4/conf/default/rp_filter", "1\n"), nil, "warn rp_filter net.ipv4.conf.default.rp_filter is 1", "sysctl -w net.ipv4.conf.all.rp_filter=2"},
		{"all strict", func(t *testing.T, p *patient) {
			p.set(t, "/proc/sys/net/ipv4/conf/default/rp_filter", "0")
			p.set(t, "/proc/sys/net/ipv4/conf/all/rp_filter", "1")
		}, nil, "warn rp_filter net.ipv4.conf.all.rp_filter is 1", "=2"},
		{"device strict", set("/proc/sys/net/ipv4/conf/sheaf7/rp_filter", "1\n"), running, "warn rp_filter net.ipv4.conf.sheaf7.rp_filter is 1", "=2"},
		{"loose wins", func(t *testing.T, p *patient) {
			p.set(t, "/proc/sys/net/ipv4/conf/default/rp_filter", "1")
			p.set(t, "/proc/sys/net/ipv4/conf/all/rp_filter", "2")
		}, nil, "ok rp_filter", ""},
		{"MTU for IPv6", replace("[tun]", "[tun]\nmtu = 1000"), nil, "FAIL MTU", "1280"},
		{"large MTU", replace("[tun]", "[tun]\nmtu = 9000"), nil, "warn MTU the tunnel's 9000 is more", "set mtu of [tun] to 1500"},
		{"small MTU", replace("[tun]", "[tun]\nmtu = 1400"), nil, "warn MTU the tunnel's 1400 is less than the 1500 of eth0", "leave mtu"},
		{"narrow path", func(_ *testing.T, p *patient) { p.net.devices[1].mtu = 1200 }, nil, "warn MTU device eth0 of the default route carries 1200 bytes", "tls"},
		{"no default route", func(_ *testing.T, p *patient) { p.net.routes = nil }, nil, "ok MTU", ""},
		{"no netlink", func(_ *testing.T, p *patient) {
			p.host.network = func() (*network, error) { return nil, errors.New("not today") }
		}, nil, "warn network", "ip route"},
		{"buffers", func(t *testing.T, p *patient) {
			p.set(t, "/proc/self/status", "CapEff:\t0\n")
			p.set(t, "/proc/sys/net/core/rmem_max", "212992\n")
		}, running, "warn UDP buffers net.core.rmem_max is 213.0 kB", "sysctl -w net.core.rmem_max=7340032"},
		{"port", replace("[tun]", "listen = \""+busy.LocalAddr().String()+"\"\n[tun]"), nil, "FAIL listen another program", "ss -lptun"},
		{"port free", replace("[tun]", "listen = \"127.0.0.1:0\"\n[tun]"), nil, "ok listen 127.0.0.1:0 is free", ""},
		{"listen elsewhere", replace("[tun]", "listen = \"192.0.2.77:4747\"\n[tun]"), nil, "FAIL listen 192.0.2.77:4747: this host has no such address", "ip address"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPatient(t)
			if test.running != nil {
				p.net.devices = append(p.net.devices, device{"sheaf7", 1500, true, false})
				for _, a := range []string{"10.99.0.1/24", "fd99::1/64"} {
					p.net.addresses = append(p.net.addresses, located{prefix: netip.MustParsePrefix(a), device: "sheaf7"})
				}
				for _, r := range []string{"10.2.0.0/24", "10.99.0.2/32", "fd00:2::/64", "10.8.0.0/24"} {
					route(r, "sheaf7")(t, p)
				}
			}
			test.spoil(t, p)
			out, d := p.examine(t, test.running)
			lines := strings.Split(out, "\n")
			for i, line := range lines {
				if !strings.HasPrefix(strings.Join(strings.Fields(line), " "), test.line) {
					continue
				}
				mend, has := strings.CutPrefix(strings.TrimSpace(lines[i+1]), "mend: ")
				if has != (test.mend != "") || !strings.Contains(mend, test.mend) {
					t.Errorf("mend %q, want %q", mend, test.mend)
				}
				if failed := strings.HasPrefix(line, "FAIL"); failed != (d.failures > 0) {
					t.Errorf("%d failures\n%s", d.failures, out)
				}
				if test.name == "well" && d.warnings > 0 {
					t.Errorf("%d warnings\n%s", d.warnings, out)
				}
				return
			}
			if test.name == "config" {
				return
			}
			t.Errorf("no line %q in\n%s", test.line, out)
		})
	}
}

// TestDoctorHere reads what this host has to tell.
func TestDoctorHere(t *testing.T) {
	n, err := readNetwork()
	if err != nil {
		t.Skipf("needs to read the host's devices by netlink: %v", err)
	}
	if lo := n.device("lo"); lo == nil || !lo.loopback || lo.mtu == 0 {
		t.Errorf("%+v", n)
	}
	if h := thisHost(); h.sysctl("kernel.ostype") != "Linux" || h.sysctl("no.such") != "" || h.sysctlNumber("kernel.ostype") != -1 {
		t.Error("settings of the kernel are read otherwise")
	}
}
