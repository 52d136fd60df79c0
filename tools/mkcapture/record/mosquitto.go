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
	for try := 1; ; try++ {
		b := &broker{end: func() { os.RemoveAll(dir) }}
		err := b.launch(program, dir, a, lines)
		if err == nil {
			return b, nil
		}
		if try == launches || !strings.Contains(err.Error(), "Address already in use") {
			os.RemoveAll(dir)
			return nil, err
		}
	}
}

// launches is how often mosquitto is started until it has its ports: somebody else may take
// one between freeAddresses and it.
const launches = 5

// launch writes mosquitto's configuration and starts it.
func (b *broker) launch(program, dir string, a *authority, lines []string) (err error) {
	if b.address, b.secure, err = freeAddresses(); err != nil {
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
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	b.end = func() {
		_ = cmd.Process.Kill()
		<-done
		os.RemoveAll(dir)
	}
	for limit := time.After(5 * time.Second); ; {
		c, err := net.Dial("tcp", b.secure)
		if err == nil {
			return c.Close()
		}
		select {
		case <-time.After(10 * time.Millisecond):
			continue
		case <-limit:
			_ = cmd.Process.Kill()
			<-done
		case <-done:
		}
		return errors.Join(fmt.Errorf("mosquitto does not listen: %s", said.String()), err)
	}
}

// freeAddresses returns two addresses of loopback that nobody listens at.
func freeAddresses() (one, other string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer l.Close() // behind the second, which is not the same then
	second, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	return l.Addr().String(), second.Addr().String(), second.Close()
}
