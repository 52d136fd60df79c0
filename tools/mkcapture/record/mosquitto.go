package record

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// startMosquitto starts Debian's mosquitto with a listener without TLS and one with, which
// has further lines of configuration. Its certificate is of the authority.
func startMosquitto(a *authority, lines []string) (*broker, error) {
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		return nil, fmt.Errorf("%w that has OpenSSL's TLS: %w", ErrNoBroker, err)
	}
	dir, err := os.MkdirTemp("", "mkcapture-")
	if err != nil {
		return nil, err
	}
	b := &broker{end: func() { os.RemoveAll(dir) }}
	if err := b.launch(program, dir, a, lines); err != nil {
		b.end()
		return nil, err
	}
	return b, nil
}

// launch writes mosquitto's configuration and starts it.
func (b *broker) launch(program, dir string, a *authority, lines []string) (err error) {
	if b.address, err = freeAddress(); err != nil {
		return err
	}
	if b.secure, err = freeAddress(); err != nil {
		return err
	}
	if err := a.save(dir); err != nil {
		return err
	}
	listener := func(at string) string {
		host, port, _ := net.SplitHostPort(at)
		return "listener " + port + " " + host
	}
	config := append([]string{
		"user root", "per_listener_settings true", "max_inflight_messages 0", "set_tcp_nodelay true",
		listener(b.address), "allow_anonymous true",
		listener(b.secure), "allow_anonymous true", "cafile " + filepath.Join(dir, "ca.pem"),
		"certfile " + filepath.Join(dir, "broker.pem"), "keyfile " + filepath.Join(dir, "broker.key"),
	}, lines...)
	path := filepath.Join(dir, "mosquitto.conf")
	if err := os.WriteFile(path, []byte(strings.Join(config, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	var said strings.Builder
	cmd := exec.Command(program, "-c", path)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return err
	}
	b.end = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		os.RemoveAll(dir)
	}
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp", b.secure)
		if err == nil {
			return c.Close()
		}
		if time.Since(begin) > 5*time.Second {
			b.end()
			return errors.Join(fmt.Errorf("mosquitto does not listen: %s", said.String()), err)
		}
	}
}

// freeAddress returns an address of loopback that nobody listens at.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
