package netstack

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func TestForwardUnix(t *testing.T) {
	clients, brokers := backToBack(t, StackConfig{})
	join(t, clients, brokers, serve(t, echo), TerminateConfig{})
	path := filepath.Join(t.TempDir(), "s")
	cfg := ForwardConfig{From: "unix:" + path, To: netip.AddrPortFrom(server4, 1883)}

	// A socket file that a crash has left.
	stale, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	stale.(*net.UnixListener).SetUnlinkOnClose(false)
	stale.Close()

	f, changed := forward(t, clients, cfg)
	next(t, changed, nil)
	if _, err := clients.Forward(t.Context(), cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("second listener: %v", err)
	}
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Write([]byte("hello"))
	c.(*net.UnixConn).CloseWrite()
	if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	f.Close()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket file is left: %v", err)
	}
	os.WriteFile(path, nil, 0o600)
	if _, err := clients.Forward(t.Context(), cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("in place of a file: %v", err)
	}
}

func TestForwardConfig(t *testing.T) {
	noLeaks(t)
	s := newTestStack(t, StackConfig{Addresses: []netip.Prefix{netip.PrefixFrom(gateway4, 24)}})
	to := netip.AddrPortFrom(server4, 1883)
	for name, cfg := range map[string]ForwardConfig{
		"no port":            {From: "tcp:127.0.0.1:0", To: netip.AddrPortFrom(server4, 0)},
		"no IPv6 of its own": {From: "tcp:127.0.0.1:0", To: netip.AddrPortFrom(server6, 1883)},
		"foreign source":     {From: "tcp:127.0.0.1:0", To: to, Source: client4},
		"vsock":              {From: "vsock:2:1883", To: to},
		"no path":            {From: "unix:", To: to},
	} {
		if _, err := s.Forward(t.Context(), cfg); !errors.Is(err, ErrAddress) {
			t.Errorf("%s: %v", name, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := s.Forward(t.Context(), ForwardConfig{From: "tcp:" + l.Addr().String(), To: to}); !errors.Is(err, ErrInUse) {
		t.Errorf("port in use: %v", err)
	}
}
