package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A lab is the network of one test. The package documentation draws it.
type lab struct {
	t     *testing.T
	dir   string // for sockets, whose paths must be short, and all else
	wan   *node
	nodes []*node
	sites []*site
}

// A node is a machine: a network namespace.
type node struct {
	lab  *lab
	name string
	ns   string
}

// A site is a LAN, with one machine for all its hosts, and its gateway.
type site struct {
	number       int
	lan, gw      *node
	net4, net6   netip.Prefix
	host4, host6 netip.Addr // one address of the LAN
	wan4, wan6   netip.Addr
	own4, own6   netip.Addr // of the gateway inside the tunnel
	port         string     // of the gateway in the wan namespace
}

const namespaces = "sheaf-e2e-"

// requirements are the programs that the tests run.
var requirements = []string{"ip", "tc", "ethtool", "mosquitto", "mosquitto_pub", "mosquitto_sub", "tcpdump", "ping", "traceroute", "iperf3", "nft"}

// require skips the test unless it is asked for, and fails it where it is asked
// for and cannot run.
func require(t *testing.T) {
	t.Helper()
	if os.Getenv("E2E") == "" {
		t.Skip("end to end: takes minutes, root and a real broker; run it with make e2e, or E2E=1 or E2E=quick")
	}
	no := t.Fatalf
	if os.Getuid() != 0 {
		no("end to end: needs root for network namespaces and devices")
	}
	for _, name := range requirements {
		if _, err := exec.LookPath(name); err != nil {
			no("end to end: %s is not installed; the Debian packages are mosquitto mosquitto-clients iproute2 ethtool tcpdump iputils-ping traceroute iperf3 nftables", name)
		}
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		no("end to end: %v", err)
	}
}

// seconds is the length of a measurement: less of it with E2E=quick.
func seconds(full, quick int) time.Duration {
	if os.Getenv("E2E") == "1" {
		return time.Duration(full) * time.Second
	}
	return time.Duration(quick) * time.Second
}

// newLab makes the network: site 1 with clients, site 2 with the broker, and
// further ones with clients. Plain routes lead nowhere yet.
func newLab(t *testing.T, sites int) *lab {
	t.Helper()
	require(t)
	dir, err := os.MkdirTemp("", namespaces)
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, dir: dir}
	removeStale(t)
	t.Cleanup(l.remove)
	l.wan = l.node("wan")
	l.wan.ip("link add br0 type bridge forward_delay 0 mcast_snooping 0", "link set br0 up")
	for i := 1; i <= sites; i++ {
		l.addSite(i)
	}
	return l
}

func (l *lab) addSite(i int) {
	s := &site{
		number: i,
		net4:   netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16),
		net6:   netip.MustParsePrefix(fmt.Sprintf("fd00:%d::/64", i)),
		host4:  netip.AddrFrom4([4]byte{10, byte(i), 0, 10}),
		host6:  netip.MustParseAddr(fmt.Sprintf("fd00:%d::10", i)),
		wan4:   netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}),
		wan6:   netip.MustParseAddr(fmt.Sprintf("fd00:ff::%d", i)),
		own4:   netip.AddrFrom4([4]byte{10, 99, 0, byte(i)}),
		own6:   netip.MustParseAddr(fmt.Sprintf("fd00:99::%d", i)),
		port:   fmt.Sprintf("to-gw%d", i),
	}
	lan := "clients"
	if i == 2 {
		lan = "broker"
		s.net4 = netip.PrefixFrom(s.net4.Addr(), 24)
	}
	s.lan, s.gw = l.node(fmt.Sprintf("%s%d", lan, i)), l.node(fmt.Sprintf("gw%d", i))
	l.sites = append(l.sites, s)

	s.gw.ip(fmt.Sprintf("link add wan0 type veth peer name %s netns %s", s.port, l.wan.ns),
		fmt.Sprintf("link add lan0 type veth peer name eth0 netns %s", s.lan.ns))
	for _, c := range []struct {
		n    *node
		name string
	}{{s.gw, "wan0"}, {s.gw, "lan0"}, {s.lan, "eth0"}, {l.wan, s.port}} {
		c.n.plain(c.name)
	}
	l.wan.ip(fmt.Sprintf("link set %s master br0 up", s.port))
	s.gw.ip("link set lan0 up", "link set wan0 up",
		fmt.Sprintf("addr add 172.16.%d.1/30 dev lan0", i),
		fmt.Sprintf("addr add fd00:16:%d::1/64 dev lan0 nodad", i),
		fmt.Sprintf("addr add %s/24 dev wan0", s.wan4),
		fmt.Sprintf("addr add %s/64 dev wan0 nodad", s.wan6),
		fmt.Sprintf("route add %s via 172.16.%d.2", s.net4, i),
		fmt.Sprintf("route add %s via fd00:16:%d::2", s.net6, i))
	s.gw.sysctl("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1", "net.ipv4.conf.all.rp_filter=0")
	s.lan.sysctl("net.ipv6.ip_nonlocal_bind=1") // IPv4 needs no leave for local prefixes
	s.lan.ip("link set eth0 up",
		fmt.Sprintf("addr add %s/32 dev eth0", s.host4),
		fmt.Sprintf("addr add %s/128 dev eth0 nodad", s.host6),
		fmt.Sprintf("addr add 172.16.%d.2/30 dev eth0", i),
		fmt.Sprintf("addr add fd00:16:%d::2/64 dev eth0 nodad", i),
		fmt.Sprintf("route add local %s dev lo", s.net4),
		fmt.Sprintf("route add local %s dev lo", s.net6),
		fmt.Sprintf("route add default via 172.16.%d.1 src %s", i, s.host4),
		fmt.Sprintf("route add default via fd00:16:%d::1 src %s", i, s.host6))
}

// clients and broker are the sites that every lab has.
func (l *lab) clients() *site { return l.sites[0] }
func (l *lab) broker() *site  { return l.sites[1] }

// brokerAddress is where mosquitto listens.
func (l *lab) brokerAddress() netip.AddrPort { return netip.AddrPortFrom(l.broker().host4, 1883) }

// plainRoutes lets the gateways forward over the WAN, or ends that: what a
// tunnel is compared with. The routes are for the halves of each prefix, and so
// come before those into a tunnel.
func (l *lab) plainRoutes(on bool) {
	do := map[bool]string{true: "add", false: "del"}[on]
	for _, s := range l.sites {
		for _, o := range l.sites {
			if s == o {
				continue
			}
			for _, half := range halves(o.net4) {
				s.gw.ip(fmt.Sprintf("route %s %s via %s", do, half, o.wan4))
			}
			for _, half := range halves(o.net6) {
				s.gw.ip(fmt.Sprintf("route %s %s via %s", do, half, o.wan6))
			}
		}
	}
}

// halves returns the two prefixes that make up p.
func halves(p netip.Prefix) [2]netip.Prefix {
	upper := p.Addr().AsSlice()
	upper[p.Bits()/8] |= 0x80 >> (p.Bits() % 8)
	a, _ := netip.AddrFromSlice(upper)
	return [2]netip.Prefix{netip.PrefixFrom(p.Addr(), p.Bits()+1), netip.PrefixFrom(a, p.Bits()+1)}
}

func (l *lab) node(name string) *node {
	l.t.Helper()
	n := &node{lab: l, name: name, ns: fmt.Sprintf("%s%d-%s", namespaces, os.Getpid(), name)}
	l.command("ip", "netns", "add", n.ns)
	l.nodes = append(l.nodes, n)
	n.ip("link set lo up")
	n.sysctl("net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0")
	return n
}

// remove undoes newLab, whatever state the lab is in.
func (l *lab) remove() {
	for _, n := range l.nodes {
		removeNamespace(n.ns)
	}
	os.RemoveAll(l.dir)
}

// removeNamespace ends what runs in a namespace of the tests and removes it.
func removeNamespace(ns string) {
	out, _ := exec.Command("ip", "netns", "pids", ns).Output()
	for _, f := range strings.Fields(string(out)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	_ = exec.Command("ip", "netns", "del", ns).Run()
	_ = os.RemoveAll(filepath.Join("/etc/netns", ns))
}

// removeStale removes the namespaces of test processes that were killed.
func removeStale(t *testing.T) {
	list, _ := filepath.Glob("/run/netns/" + namespaces + "*")
	for _, path := range list {
		ns := filepath.Base(path)
		number, _, _ := strings.Cut(strings.TrimPrefix(ns, namespaces), "-")
		pid, err := strconv.Atoi(number)
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			t.Logf("removing %s, which an earlier run left behind", ns)
			removeNamespace(ns)
		}
	}
}

// command runs a program and returns its output.
func (l *lab) command(name string, args ...string) string {
	l.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// command returns a command that runs on the node. Its process is the
// program's own.
func (n *node) command(name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", n.ns, name}, args...)...)
}

// run runs a program on the node and returns its output.
func (n *node) run(name string, args ...string) string {
	n.lab.t.Helper()
	out, err := n.try(name, args...)
	if err != nil {
		n.lab.t.Fatalf("%s: %s %s: %v\n%s", n.name, name, strings.Join(args, " "), err, out)
	}
	return out
}

// try is run for what may fail.
func (n *node) try(name string, args ...string) (string, error) {
	out, err := n.command(name, args...).CombinedOutput()
	return string(out), err
}

// ip runs lines of ip commands.
func (n *node) ip(lines ...string) {
	n.lab.t.Helper()
	cmd := exec.Command("ip", "-n", n.ns, "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		n.lab.t.Fatalf("%s: ip -batch: %v\n%s\n%s", n.name, err, strings.Join(lines, "\n"), out)
	}
}

func (n *node) sysctl(settings ...string) {
	n.lab.t.Helper()
	n.run("sysctl", append([]string{"-q", "-w"}, settings...)...)
}

// hosts makes the lines the node's hosts(5) file, for programs that are started
// after it did so first.
func (n *node) hosts(lines string) {
	n.lab.t.Helper()
	dir := filepath.Join("/etc/netns", n.ns) // which ip netns exec puts over /etc
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "hosts"), []byte("127.0.0.1 localhost\n"+lines+"\n"), 0o644)
	}
	if err != nil {
		n.lab.t.Fatal(err)
	}
}

// plain turns a device's offloads off: a packet is then what would be on a cable.
func (n *node) plain(device string) {
	n.lab.t.Helper()
	n.run("ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off", "tx", "off", "rx", "off")
}

// A count is of IP packets at an interface.
type count struct{ packets, bytes uint64 }

func (c count) sub(o count) count { return count{c.packets - o.packets, c.bytes - o.bytes} }

// ethernet is what each packet counted has beyond its IP bytes.
const ethernet = 14

// wanCount returns what the site's gateway sent to and got from the WAN.
func (s *site) wanCount() (sent, got count) {
	s.gw.lab.t.Helper()
	read := func(name string) uint64 {
		v, err := strconv.ParseUint(strings.TrimSpace(s.gw.run("cat", "/sys/class/net/wan0/statistics/"+name)), 10, 64)
		if err != nil {
			s.gw.lab.t.Fatal(err)
		}
		return v
	}
	sent, got = count{read("tx_packets"), read("tx_bytes")}, count{read("rx_packets"), read("rx_bytes")}
	sent.bytes -= ethernet * sent.packets
	got.bytes -= ethernet * got.packets
	return sent, got
}

// eventually waits until f returns "", which otherwise says what is missing.
func eventually(t *testing.T, limit time.Duration, f func() string) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		missing := f()
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", limit, missing)
		}
	}
}
