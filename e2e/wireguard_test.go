package e2e

import (
	"bufio"
	"crypto/ecdh"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wireguard joins the first two sites by wireguard-go, what the tunnel is
// compared with, until the function it returns is called. The program is built
// from the module whose package tun the tunnel uses.
func (l *lab) wireguard() (end func()) {
	t := l.t
	t.Helper()
	program := filepath.Join(l.dir, "wireguard-go")
	if out, err := exec.Command("go", "build", "-o", program, "golang.zx2c4.com/wireguard").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	sites := []*site{l.clients(), l.broker()}
	var keys [2]*ecdh.PrivateKey
	for i := range keys {
		var err error
		if keys[i], err = ecdh.X25519().GenerateKey(rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	var processes []*process
	for i, s := range sites {
		device := fmt.Sprintf("wg-%d-%d", os.Getpid()%100000, i)
		control := "/var/run/wireguard/" + device + ".sock"
		p := launch(t, "wireguard-go on "+s.gw.name, s.gw.command(program, "-f", device))
		processes = append(processes, p)
		t.Cleanup(func() { os.Remove(control) })
		eventually(t, 5*time.Second, func() string {
			_, err := os.Stat(control)
			if err != nil {
				return err.Error()
			}
			return ""
		})
		o := sites[1-i]
		wireguardSet(t, control, fmt.Sprintf("private_key=%x\nlisten_port=51820\npublic_key=%x\nendpoint=%s:51820\nallowed_ip=%s\nallowed_ip=%s\n",
			keys[i].Bytes(), keys[1-i].PublicKey().Bytes(), o.wan4, o.net4, o.net6))
		s.gw.ip("link set "+device+" up", fmt.Sprintf("route add %s dev %s", o.net4, device), fmt.Sprintf("route add %s dev %s", o.net6, device))
	}
	return func() {
		for _, p := range processes {
			p.end(syscall.SIGTERM)
		}
	}
}

// wireguardSet gives a device its configuration, as
// https://www.wireguard.com/xplatform/ says.
func wireguardSet(t *testing.T, control, lines string) {
	t.Helper()
	c, err := net.Dial("unix", control)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "set=1\n%s\n", lines); err != nil {
		t.Fatal(err)
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil || strings.TrimSpace(answer) != "errno=0" {
		t.Fatalf("wireguard-go: %q, %v", answer, err)
	}
}
