package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDown holds when down removes nothing; e2e holds what it removes.
func TestDown(t *testing.T) {
	p := newPair(t, "127.0.0.1:1")
	dir := filepath.Dir(p.clients)
	device := filepath.Join(dir, "device.toml")
	text := fmt.Sprintf("key = \"clients.key\"\ncontrol = %q\n[tun]\naddress = \"10.99.0.1/24\"\n[[peer]]\nname = \"broker\"\nfingerprint = %q\nendpoint = \"127.0.0.1:9\"\nallowed = [\"10.2.0.0/24\"]\n", p.control, p.prints[1])
	if err := os.WriteFile(device, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	started(t, p.clients) // with the socket of the other
	for path, says := range map[string]string{
		p.clients:                       "has no [tun]: such a gateway makes no routes",
		device:                          "a gateway is running, and answers at " + p.control,
		filepath.Join(dir, "none.toml"): "no such file",
	} {
		if got := sheaf(t, nil, "down", "-c", path); got.code != exitUnusable || got.stdout != "" || !strings.Contains(got.stderr, says) {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
