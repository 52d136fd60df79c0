package engine

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lone starts a gateway whose peers never call, with a control socket.
func lone(t *testing.T) (*site, string) {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "control.sock")
	newKey(t, filepath.Join(dir, "key"))
	s := start(t, fmt.Sprintf(`
key = %q
listen = "127.0.0.1:0"
control = %q
metrics = "127.0.0.1:0"
[terminate]
prefixes = ["10.2.0.0/24"]
[[peer]]
name = "a"
fingerprint = %q
allowed = ["10.1.0.0/16"]
[[peer]]
name = "b"
fingerprint = %q
allowed = ["10.1.7.0/24", "fd00::/16"]
`, filepath.Join(dir, "key"), socket, newKey(t, filepath.Join(dir, "a")), newKey(t, filepath.Join(dir, "b"))))
	return s, socket
}

// listed returns routes as text.
func listed(routes []Route) string {
	var list []string
	for _, r := range routes {
		list = append(list, fmt.Sprintf("{%v %s%s}", r.Prefix, r.Peer, r.Fault))
	}
	return fmt.Sprint(list)
}

func TestControl(t *testing.T) {
	s, socket := lone(t)
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v, %v", info, err)
	}
	c := NewClient(socket)
	ctx := t.Context()
	routes := func() string {
		t.Helper()
		r, err := c.Routes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return listed(r)
	}
	before := "[{10.1.0.0/16 a} {10.1.7.0/24 b} {fd00::/16 b}]"
	if got := routes(); got != before {
		t.Errorf("routes %s", got)
	}
	r := Route{Prefix: netip.MustParsePrefix("10.3.0.0/24"), Peer: "b"}
	if err := c.AddRoute(ctx, r); err != nil {
		t.Fatal(err)
	}
	if got := routes(); !strings.Contains(got, "{10.3.0.0/24 b}") {
		t.Errorf("routes %s", got)
	}
	for _, bad := range []struct {
		r    Route
		want string
	}{
		{Route{Prefix: r.Prefix, Peer: "c"}, `no peer "c"; there are a, b`},
		{Route{Prefix: r.Prefix, Peer: "a"}, `already lies behind peer "b"`},
		{Route{Prefix: netip.MustParsePrefix("10.3.0.1/24"), Peer: "a"}, "no prefix"},
		{Route{Peer: "a"}, ""},
	} {
		if err := c.AddRoute(ctx, bad.r); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%v: error %v, expected %q", bad.r, err, bad.want)
		}
	}
	if err := c.DelRoute(ctx, r); err != nil {
		t.Fatal(err)
	}
	if got := routes(); got != before {
		t.Errorf("routes %s", got)
	}
	if err := c.DelRoute(ctx, r); err == nil {
		t.Error("a route that is not there was removed")
	}
	st, err := c.Status(ctx)
	if err != nil || len(st.Peers) != 2 || st.Peers[0].Up || st.Fingerprint != s.g.fingerprint.String() {
		t.Errorf("status %+v, %v", st, err)
	}

	// a second gateway leaves the first one's socket alone
	if _, err := listenControl(socket); err == nil || !strings.Contains(err.Error(), "another gateway is running") {
		t.Errorf("a second gateway: %v", err)
	}
	resp, err := http.Get("http://" + s.g.scrape.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	for _, want := range []string{`sheaf_peer_up{peer="a"} 0`, `sheaf_flushes_total{lane="messages",peer="b",reason="window"} 0`, `sheaf_bytes_total{direction="sent",layer="wire",peer="a"} 0`, `sheaf_wait_seconds_count{lane="bulk",peer="a"} 0`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in the metrics (%v):\n%s", want, err, text)
		}
	}

	s.stop()
	if _, err := c.Status(ctx); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	again, err := listenControl(path)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenControl(path); err == nil {
		t.Error("a file was replaced")
	}
}

// A peer is only sent what is behind it, by the longest prefix, and may only
// send from there.
func TestPrefixes(t *testing.T) {
	s, _ := lone(t)
	g := s.g
	packet := func(src, dst string) []byte {
		p := make([]byte, 20)
		p[0] = 0x45
		a, b := netip.MustParseAddr(src).As4(), netip.MustParseAddr(dst).As4()
		copy(p[12:], a[:])
		copy(p[16:], b[:])
		return p
	}
	for dst, want := range map[string]string{"10.1.0.1": "a", "10.1.7.1": "b", "10.4.0.1": ""} {
		got := ""
		if p := g.router.to(netip.MustParseAddr(dst)); p != nil {
			got = p.name
		}
		if got != want {
			t.Errorf("%s lies behind %q, expected %q", dst, got, want)
		}
	}
	a := g.peers["a"]
	g.deliver(a, [][]byte{packet("10.1.0.1", "10.2.0.1"), packet("10.9.0.1", "10.2.0.1"), {0x45}})
	if got := a.refused.Load(); got != 2 {
		t.Errorf("%d packets refused", got)
	}
}

func TestReload(t *testing.T) {
	s, _ := lone(t)
	cfg := *s.g.cfg
	cfg.Peers = append([]Peer(nil), cfg.Peers...)
	cfg.Peers[0].Allowed = Prefixes{{netip.MustParsePrefix("10.8.0.0/16")}}
	if err := s.g.Reload(&cfg); err != nil {
		t.Fatal(err)
	}
	if got := listed(s.g.Routes()); got != "[{10.1.7.0/24 b} {10.8.0.0/16 a} {fd00::/16 b}]" {
		t.Errorf("routes %s", got)
	}
	cfg.Peers[0].Name = "c"
	if err := s.g.Reload(&cfg); !errors.Is(err, ErrConfig) {
		t.Errorf("another peer: %v", err)
	}
}
