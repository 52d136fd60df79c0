package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"sheaf/engine"
	"sheaf/netstack"
	"sheaf/tunnel"
)

// A record is an output that may be read while it is written to.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// newKey makes a key and returns its fingerprint.
func newKey(t *testing.T, path string) string {
	t.Helper()
	got := sheaf(t, nil, "keygen", path)
	if got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	return strings.TrimSpace(got.stdout)
}

// given are the addresses that freePort has returned: the kernel may choose one again.
var given sync.Map

// freePort returns an address that nothing listens on, each another one.
func freePort(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if _, had := given.LoadOrStore(l.Addr().String(), true); !had {
			return l.Addr().String()
		}
	}
}

// started runs `sheaf up` for the length of a test, or until stop.
func started(t *testing.T, config string) (stop func(), stdout, stderr *record) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stdout, stderr = &record{}, &record{}
	done := make(chan error, 1)
	go func() { done <- up(ctx, config, stdout, stderr) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	eventually(t, "sheaf up", func() bool {
		select {
		case err := <-done:
			done <- err
			t.Fatalf("%v\n%s", err, stderr)
		default:
		}
		return strings.Contains(stdout.String(), "sheaf is up")
	})
	return stop, stdout, stderr
}

// A pair are two gateways without devices, each in a folder of its own.
type pair struct {
	clients, broker string // their configuration files
	control         string // the socket of the one beside the clients
	listen, local   string // of the one beside the broker; what clients connect to
	prints          [2]string
}

// newPair writes the configurations of a pair for a server.
func newPair(t *testing.T, server string) *pair {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	p := &pair{
		clients: file("clients.toml"), broker: file("broker.toml"), control: file("c.sock"),
		listen: freePort(t), local: freePort(t),
		prints: [2]string{newKey(t, file("clients.key")), newKey(t, file("broker.key"))},
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(p.broker, fmt.Sprintf(`key = "broker.key"
listen = %q
control = %q
[[peer]]
name = "clients"
fingerprint = %q
allowed = ["10.99.0.1/32"]
[terminate]
prefixes = ["10.2.0.10/32"]
map = { "10.2.0.10:1883" = %q }
`, p.listen, file("b.sock"), p.prints[0], server))
	write(p.clients, fmt.Sprintf(`key = "clients.key"
control = %q
address = ["10.99.0.1"]
[[peer]]
name = "broker"
fingerprint = %q
endpoint = %q
allowed = ["10.2.0.0/24"] # the servers
[[forward]]
from = "tcp:%s"
to = "10.2.0.10:1883"
`, p.control, p.prints[1], p.listen, p.local))
	return p
}

// run starts both and waits until they have each other.
func (p *pair) run(t *testing.T) {
	t.Helper()
	started(t, p.broker)
	started(t, p.clients)
	eventually(t, "the lanes", func() bool {
		s, err := engine.NewClient(p.control).Status(t.Context())
		if err != nil {
			return false
		}
		for _, l := range s.Peers[0].Lanes {
			if !l.Up {
				return false
			}
		}
		return s.Peers[0].Up
	})
}

// edited returns a configuration file beside another one, with replacements.
func edited(t *testing.T, path string, replace ...string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(replace...).Replace(string(b))
	if text == string(b) && len(replace) > 0 {
		t.Fatalf("%q is not in\n%s", replace[0], text)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "edited-*.toml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// TestUpRefuses holds what is said of what keeps a gateway from coming up, and
// that nothing is left behind.
func TestUpRefuses(t *testing.T) {
	p := newPair(t, "127.0.0.1:1")
	dir := filepath.Dir(p.clients)
	file := func(name string) string { return filepath.Join(dir, name) }
	for name, mode := range map[string]os.FileMode{"open.key": 0o644, "garbage.key": 0o600, "file": 0o600} {
		if err := os.WriteFile(file(name), []byte("not a key"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(file("open.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	_, udpPort, _ := net.SplitHostPort(udp.LocalAddr().String())
	key, address := `key = "clients.key"`, `address = ["10.99.0.1"]`
	forward := fmt.Sprintf("[[forward]]\nfrom = \"tcp:%s\"\nto = \"10.2.0.10:1883\"\n", p.local)
	device := func(table string) []string { return []string{address, "", forward, "[tun]\n" + table} }
	for _, test := range []struct {
		name    string
		path    string // of a file, if it is not an edited one
		replace []string
		want    []string
	}{
		{"no file", file("none.toml"), nil, []string{"none.toml", "no such file", "-c FILE"}},
		{"a folder", dir, nil, []string{dir, "is a directory"}},
		{"no TOML", "", []string{key, "key"}, []string{"line 1", "edited-"}},
		{"unknown key", "", []string{"control =", "contrl ="}, []string{`line 2: unknown key "contrl"`}},
		{"log level", "", []string{key, key + "\nlog = \"loud\""}, []string{`log = "loud": expected debug, info, warn or error`}},
		{"bad fingerprint", "", []string{p.prints[1], "1234"}, []string{`[[peer]] "broker": fingerprint`}},
		{"no key", "", []string{"clients.key", "none.key"}, []string{"none.key", "sheaf keygen " + file("none.key")}},
		{"open key", "", []string{"clients.key", "open.key"}, []string{"chmod 600 " + file("open.key")}},
		{"garbage key", "", []string{"clients.key", "garbage.key"}, []string{"garbage.key", "sheaf keygen"}},
		{"own fingerprint", "", []string{p.prints[1], p.prints[0]}, []string{`[[peer]] "broker"`, "this gateway's own"}},
		{"TCP port", "", []string{key, key + "\nlisten = \"" + tcp.Addr().String() + "\""}, []string{tcp.Addr().String(), "another program", "ss -lptun"}},
		{"UDP port", "", []string{key, key + "\nlisten = \":" + udpPort + "\""}, []string{udpPort, "another program", "set listen to another port"}},
		{"absent address", "", []string{key, key + "\nlisten = \"192.0.2.77:4747\""}, []string{"192.0.2.77:4747", "no such address"}},
		{"forward port", "", []string{p.local, tcp.Addr().String()}, []string{"[[forward]]", tcp.Addr().String(), "choose another port"}},
		{"control is a file", "", []string{p.control, file("file")}, []string{file("file"), "something else at that path"}},
		{"control without folder", "", []string{p.control, file("none/c.sock")}, []string{"none/c.sock", "set control to a path in a folder that exists"}},
		{"MTU of 5", "", device("address = [\"10.99.0.1/24\"]\nmtu = 5\n"), []string{"mtu = 5", "576"}},
		{"MTU for IPv6", "", device("address = [\"fd99::1/64\"]\nmtu = 1000\n"), []string{"MTU 1000", "1280"}},
		{"long name", "", device("address = [\"10.99.0.1/24\"]\nname = \"abcdefghijklmnop\"\n"), []string{"abcdefghijklmnop", "at most 15"}},
		{"busy name", "", device("address = [\"10.99.0.1/24\"]\nname = \"lo\"\n"), []string{"device lo", "choose another name"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := test.path
			if path == "" {
				path = edited(t, p.clients, test.replace...)
			}
			refused(t, p, path, test.want...)
		})
	}
}

// refused runs `sheaf up`, which must fail and leave nothing behind.
func refused(t *testing.T, p *pair, path string, want ...string) {
	t.Helper()
	got := sheaf(t, nil, "up", "-c", path)
	if got.code != exitUnusable || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("%+v", got)
	}
	for _, w := range want {
		if !strings.Contains(got.stderr, w) {
			t.Errorf("%q is not in %q", w, got.stderr)
		}
	}
	if _, err := os.Lstat(p.control); err == nil {
		t.Error("the control socket is left behind")
	}
	for _, address := range []string{p.local, p.listen} {
		if l, err := net.Listen("tcp", address); err != nil {
			t.Error(err)
		} else {
			l.Close()
		}
	}
}

// TestUpRefusesRoutes runs in a network namespace of its own.
func TestUpRefusesRoutes(t *testing.T) {
	p := newPair(t, "127.0.0.1:1")
	if _, err := os.Stat(tunDriver); err != nil {
		t.Skipf("needs a TUN driver: %v", err)
	}
	runtime.LockOSThread() // the thread and its namespace end with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("needs root for a network namespace: %v", err)
	}
	lan, err := netstack.OpenTUN(netstack.TUNConfig{Name: "lan0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.2.0.7/24")}})
	if errors.Is(err, netstack.ErrPermission) {
		t.Skipf("needs CAP_NET_ADMIN for a TUN device: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer lan.Close()
	if lo, err := netlink.LinkByName("lo"); err != nil || netlink.LinkSetUp(lo) != nil {
		t.Fatal("no loopback device", err)
	}
	path := edited(t, p.clients, `address = ["10.99.0.1"]`, "",
		fmt.Sprintf("[[forward]]\nfrom = \"tcp:%s\"\nto = \"10.2.0.10:1883\"\n", p.local), "[tun]\naddress = [\"10.99.0.1/24\"]\n")
	refused(t, p, path, "route 10.2.0.0/24", "device lan0 has it already")
	refused(t, p, edited(t, path, `"10.2.0.0/24"`, `"10.0.0.0/8"`), "route 10.0.0.0/8", "device lan0 has 10.2.0.0/24 inside it", "name smaller prefixes")
	refused(t, p, edited(t, path, "10.99.0.1/24", "10.2.0.7/24"), "address 10.2.0.7/24", "device lan0", "of its own")
	links, err := netlink.LinkList()
	if err != nil || len(links) != 2 {
		t.Errorf("%d devices, %v; want lo and lan0", len(links), err)
	}
}

func TestUpCheck(t *testing.T) {
	p := newPair(t, "127.0.0.1:1")
	got := sheaf(t, nil, "up", "--check", "-c", p.clients)
	if got.code != exitOK || !strings.Contains(got.stdout, "is in order: 1 peer") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	refused(t, p, edited(t, p.clients, "control =", "contrl ="), "unknown key")
	got = sheaf(t, nil, "up", "--check", "-c", edited(t, p.clients, "control =", "log = \"x\"\ncontrol ="))
	if got.code != exitUnusable || !strings.Contains(got.stderr, `log = "x"`) {
		t.Errorf("%+v", got)
	}
	if got := sheaf(t, nil, "up", "now"); got.code != exitUnusable || !strings.Contains(got.stderr, "now") {
		t.Errorf("%+v", got)
	}
}

// TestUpWithoutPeer holds that a peer that cannot be reached is no reason to end,
// but one to say why.
func TestUpWithoutPeer(t *testing.T) {
	p := newPair(t, "127.0.0.1:1")
	stop, stdout, stderr := started(t, p.clients)
	eventually(t, "a reason in the log", func() bool { return strings.Contains(stderr.String(), "cannot reach peer") })
	if s := stderr.String(); !strings.Contains(s, "refused") || !strings.Contains(s, "peer=broker") {
		t.Errorf("stderr %s", s)
	}
	if s := stdout.String(); !strings.Contains(s, "peer broker with 1 route") {
		t.Errorf("stdout %s", s)
	}
	started(t, p.broker)
	eventually(t, "the peer", func() bool {
		s, err := engine.NewClient(p.control).Status(t.Context())
		return err == nil && s.Peers[0].Up
	})
	stop()
	if _, err := os.Lstat(p.control); err == nil {
		t.Error("the control socket is left behind")
	}
}

func TestUpSecondGateway(t *testing.T) {
	p := newPair(t, "127.0.0.1:1")
	started(t, p.clients)
	got := sheaf(t, nil, "up", "-c", p.clients)
	if got.code != exitUnusable || !strings.Contains(got.stderr, "another gateway is running") {
		t.Errorf("%+v", got)
	}
	if _, err := engine.NewClient(p.control).Status(t.Context()); err != nil {
		t.Errorf("the first one is disturbed: %v", err)
	}
}

func TestKeygen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	got := sheaf(t, nil, "keygen", path)
	if _, err := tunnel.ParseFingerprint(strings.TrimSpace(got.stdout)); got.code != exitOK || err != nil {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, want := range []string{fmt.Sprintf("key = %q", path), "fingerprint = \"" + strings.TrimSpace(got.stdout) + "\"", "is written"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("%q is not in %q", want, got.stderr)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	again := sheaf(t, nil, "keygen", path)
	if again.stdout != got.stdout || !strings.Contains(again.stderr, "nothing was written") {
		t.Errorf("%+v", again)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"keygen"}, "expected one, such as"},
		{[]string{"keygen", filepath.Join(dir, "none", "key")}, "mkdir -p -m 700 " + filepath.Join(dir, "none")},
		{[]string{"keygen", written(t, "garbage", []byte("not a key"))}, "move this one away"},
		{[]string{"keygen", dir}, "not a regular file"},
	} {
		if got := sheaf(t, nil, test.args...); got.code != exitUnusable || got.stdout != "" || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%q: %+v", test.args, got)
		}
	}
}
