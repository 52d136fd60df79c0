package engine

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sheaf/engine/aggregate/seal"
)

// masterLine returns a key log's line about connection n, and what it tells.
func masterLine(n byte) (line string, random [seal.RandomLen]byte, master []byte) {
	random[0] = n
	master = bytes.Repeat([]byte{n, 0xda}, 24)
	return fmt.Sprintf("CLIENT_RANDOM %x %x\n", random, master), random, master
}

// A logBuffer takes a log from many goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// take returns what was written since the last time.
func (l *logBuffer) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.b.String()
	l.b.Reset()
	return s
}

func TestSecretsWithoutTables(t *testing.T) {
	s, err := openSecrets(nil, slog.New(slog.DiscardHandler))
	if err != nil || s.config() != nil || s.status() != nil || s.Close() != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// Beside the clients only the servers are named: the other gateway has the secrets.
func TestSecretsOfThePeer(t *testing.T) {
	s, err := openSecrets([]TLS{{Servers: []string{"10.2.0.10:8883", "[fd00::1]:443"}}, {Servers: []string{"10.2.0.11:8883"}}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := s.config()
	if c.Secrets != nil {
		t.Error("secrets come from nowhere")
	}
	for a, want := range map[string]bool{
		"10.2.0.10:8883": true, "[::ffff:10.2.0.10]:8883": true, "[fd00::1]:443": true, "10.2.0.11:8883": true,
		"10.2.0.10:8884": false, "10.2.0.12:8883": false, "[fd00::1]:8883": false,
	} {
		if c.Served(netip.MustParseAddrPort(a)) != want {
			t.Errorf("%s is served: %v", a, !want)
		}
	}
	if got := s.status(); !slices.Equal(got.Servers, []string{"10.2.0.10:8883", "[fd00::1]:443", "10.2.0.11:8883"}) || got.KeyLogs != nil {
		t.Errorf("%+v", got)
	}
}

// The key logs of all tables, and what a TLS server in this process writes, are one
// source.
func TestSecretsAreOneSource(t *testing.T) {
	folder := t.TempDir()
	first, r1, m1 := masterLine(1)
	second, r2, m2 := masterLine(2)
	third, r3, m3 := masterLine(3)
	for name, text := range map[string]string{"a": first, "b": second} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := openSecrets([]TLS{
		{Servers: []string{"10.2.0.10:8883"}, KeyLog: filepath.Join(folder, "a")},
		{Servers: []string{"10.2.0.11:8883"}, KeyLog: filepath.Join(folder, "b"), Empty: true},
		{Servers: []string{"10.2.0.12:8883"}, Certificate: "server.pem"},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer().Write([]byte(third)); err != nil {
		t.Error(err)
	}
	for i, want := range map[*[seal.RandomLen]byte][]byte{&r1: m1, &r2: m2, &r3: m3} {
		if got := s.config().Secrets.Secrets(i).Master; !bytes.Equal(got, want) {
			t.Errorf("connection %d is not known", i[0])
		}
	}
	if got := s.status(); got.Connections != 3 || got.Asked != 3 || got.Known != 3 || got.Lines != 3 || got.Bad != 0 || len(got.KeyLogs) != 2 {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]string{"a": first, "b": ""} { // only what is to be emptied is
		if b, err := os.ReadFile(filepath.Join(folder, name)); err != nil || strings.Trim(string(b), "\x00") != want {
			t.Errorf("%s has %q, %v", name, b, err)
		}
	}
	if err := s.Close(); err != nil || s.config().Secrets.Secrets(&r1).Master != nil {
		t.Errorf("after Close %v, and secrets are there", err)
	}
}

// What becomes of a key log is logged once, and says what to do.
func TestKeyLogIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "keys")
		var log logBuffer
		s, err := openSecrets([]TLS{{Servers: []string{"10.2.0.10:8883"}, KeyLog: path}}, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		said := func(step string, want ...string) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			text := log.take()
			got := strings.Split(strings.TrimSpace(text), "\n")
			if len(got) != 1 || got[0] == "" {
				t.Errorf("%s: logged %q", step, got)
			}
			for _, w := range want {
				if !strings.Contains(text, w) {
					t.Errorf("%s: %q is not in %q", step, w, got)
				}
			}
		}
		said("not there", "level=INFO", "waited for", path)
		line, _, _ := masterLine(1)
		if err := os.WriteFile(path, []byte(line), 0o644); err != nil {
			t.Fatal(err)
		}
		said("for others", "level=ERROR", "others may read", "chmod 600 "+path)
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		said("mended", "key log is read", path)
		if s.status().Connections != 1 {
			t.Errorf("%+v", s.status())
		}
	})
}

// A gateway that holds secrets tells nobody: they are not in its status, metrics or log,
// and not in memory once it is closed.
func TestSecretsAreNotTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	line, random, master := masterLine(1)
	if err := os.WriteFile(path, []byte(line+"CLIENT_RANDOM "+hex.EncodeToString(master)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	key := newKey(t, filepath.Join(t.TempDir(), "other"))
	own := filepath.Join(t.TempDir(), "key")
	newKey(t, own)
	var log logBuffer
	s := startWith(t, fmt.Sprintf(`key = %q
control = "off"
metrics = "127.0.0.1:0"
address = "10.99.0.1"
[[forward]]
from = "tcp:127.0.0.1:0"
to = "10.2.0.10:8883"
[[peer]]
name = "other"
fingerprint = %q
endpoint = "127.0.0.1:9"
allowed = ["10.2.0.0/24"]
[[tls]]
server = ["10.2.0.10:8883"]
keylog = %q
`, own, key, path), slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), func(*Gateway) {})
	status := s.g.Status()
	if got := status.Secrets; got == nil || got.Connections != 1 || got.Bad != 1 || len(got.KeyLogs) != 1 || got.KeyLogs[0].Fault != "" {
		t.Errorf("%+v", got)
	}
	told, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get("http://" + s.g.scrape.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil || len(page) == 0 {
		t.Fatalf("%d bytes of metrics: %v", len(page), err)
	}
	if !strings.Contains(log.String(), path) {
		t.Error("the log does not name the key log")
	}
	for _, secret := range []string{hex.EncodeToString(master), hex.EncodeToString(master[:4]), string(master[:4])} {
		for what, text := range map[string]string{"status": string(told), "metrics": string(page), "log": log.String()} {
			if strings.Contains(text, secret) {
				t.Errorf("the %s has a secret", what)
			}
		}
	}
	source := s.g.secrets.config().Secrets
	if !bytes.Equal(source.Secrets(&random).Master, master) {
		t.Error("the gateway has no secrets to hide")
	}
	s.stop()
	if source.Secrets(&random).Master != nil {
		t.Error("secrets outlive the gateway")
	}
}
