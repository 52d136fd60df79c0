package keylog

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sheaf/engine/aggregate/seal"
	"sheaf/engine/keylog"
	"sheaf/netstack/certtest"
)

// build builds the library as people do, and returns its path.
var build = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "preload")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "libsheafkeylog.so")
	out, err := exec.Command("make", "-C", "../..", "preload", "PRELOAD="+path).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := build(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// A bench is a place for a program that is tried: what it needs, and its key log.
type bench struct {
	t       *testing.T
	library string
	folder  string
	log     string // path of the key log
	ca      *certtest.CA
	crt     string // paths of a server's certificate and key, for 127.0.0.1
	key     string
	server  tls.Certificate // the same
}

func newBench(t *testing.T) *bench {
	t.Helper()
	library, err := build()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, library: library, folder: t.TempDir(), ca: certtest.NewCA(t, "CA")}
	b.log = filepath.Join(b.folder, "keys")
	b.server = b.ca.Issue(t, certtest.Leaf{Name: "server", Hosts: []string{"127.0.0.1"}})
	b.crt, b.key = certtest.Write(t, b.folder, "server", b.server)
	return b
}

// command returns a program that the library is loaded into; the test is skipped where it
// is not on this machine.
func (b *bench) command(name string, args ...string) *exec.Cmd {
	b.t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		b.t.Skipf("%s is not installed", name)
	}
	cmd := exec.CommandContext(b.t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+b.library, "SSLKEYLOGFILE="+b.log)
	return cmd
}

// serve starts a program and waits until it takes connections at an address.
func (b *bench) serve(address string, cmd *exec.Cmd) {
	b.t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // it ends its workers, too
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	b.t.Cleanup(func() {
		<-ended // the test's context has ended
		if b.t.Failed() {
			b.t.Logf("%v:\n%s", cmd.Args, out.String())
		}
	})
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return
		}
		select {
		case <-ended:
			b.t.Fatalf("%v ended:\n%s", cmd.Args, out.String())
		default:
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%v does not listen on %s", cmd.Args, address)
		}
	}
}

// known returns what a Store reads from the key log about a connection.
func (b *bench) known(random *[seal.RandomLen]byte) seal.Secrets {
	b.t.Helper()
	s := keylog.NewStore(0)
	defer s.Close()
	f := s.Follow(keylog.FileConfig{Path: b.log})
	if err := f.Status().Fault; err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Error(err)
	}
	if n := s.Stats(); n.Bad != 0 {
		b.t.Errorf("%d bad lines", n.Bad)
	}
	return s.Secrets(random)
}

// freePort returns an address that nothing listens on.
func freePort(t *testing.T) (address, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return l.Addr().String(), port
}

// A flight is a connection of a client that looks when something of the server comes.
type flight struct {
	net.Conn
	random [seal.RandomLen]byte // of the ClientHello
	came   func()
}

func (f *flight) Write(p []byte) (int, error) {
	// The random comes after the headers of record and message, and the version (RFC 8446
	// sections 5.1 and 4.1.2).
	if f.random == [seal.RandomLen]byte{} && len(p) > 11+seal.RandomLen {
		copy(f.random[:], p[11:])
	}
	return f.Conn.Write(p)
}

func (f *flight) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	if n > 0 {
		f.came()
	}
	return n, err
}

// call makes a connection to a server, and holds what the key log has by the time that
// something of the server is there: in its first flight the secrets of the handshake; all
// of them in what it sends once it has the client's Finished.
func (b *bench) call(address string, version uint16) {
	b.t.Helper()
	raw, err := net.Dial("tcp", address)
	if err != nil {
		b.t.Error(err)
		return
	}
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(20 * time.Second))
	f := &flight{Conn: raw}
	var last seal.Secrets
	f.came = func() {
		last = b.known(&f.random)
		if version == tls.VersionTLS13 && (last.ClientHandshake == nil || last.ServerHandshake == nil) {
			b.t.Error("the server's first flight is there before the secrets that open it")
		}
		if last.ClientTraffic != nil && last.ServerTraffic != nil {
			_ = raw.SetReadDeadline(time.Now()) // there is nothing more to wait for
		}
	}
	want := keylog.NewStore(0)
	conn := tls.Client(f, &tls.Config{
		RootCAs: b.ca.Pool(), ServerName: "127.0.0.1", MinVersion: version, MaxVersion: version, KeyLogWriter: want.Writer(),
		ClientSessionCache: tls.NewLRUClientSessionCache(1), // else it asks for no tickets
	})
	if err := conn.HandshakeContext(b.t.Context()); err != nil {
		b.t.Error(err)
		return
	}
	if version == tls.VersionTLS13 {
		_, _ = conn.Read(make([]byte, 1)) // its tickets
	}
	b.same(last, want.Secrets(&f.random))
}

// same holds that two know the same secrets, without telling them.
func (b *bench) same(got, want seal.Secrets) {
	b.t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	known := 0
	for i := range g.NumField() {
		if !bytes.Equal(g.Field(i).Bytes(), w.Field(i).Bytes()) {
			b.t.Errorf("%s: %d bytes in the key log, expected others, %d", g.Type().Field(i).Name, g.Field(i).Len(), w.Field(i).Len())
		}
		known += w.Field(i).Len()
	}
	if known == 0 {
		b.t.Error("the other end has no secrets to compare with")
	}
}

var versions = map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13}

func TestServer(t *testing.T) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			address, _ := freePort(t)
			b.serve(address, b.command("openssl", "s_server", "-accept", address, "-cert", b.crt, "-key", b.key, "-quiet"))
			for range 3 {
				b.call(address, version)
			}
			info, err := os.Stat(b.log)
			if err != nil || info.Mode() != 0o600 {
				t.Errorf("the key log has mode %v, %v", info.Mode(), err)
			}
			if strings.Contains(b.read(b.log), "EXPORTER") {
				t.Error("the key log has secrets that open no record")
			}
		})
	}
}

// A broker, and many connections at once.
func TestMosquitto(t *testing.T) {
	b := newBench(t)
	address, port := freePort(t)
	config := filepath.Join(b.folder, "mosquitto.conf")
	certtest.WriteFile(t, config, fmt.Appendf(nil, "user root\nlistener %s 127.0.0.1\nallow_anonymous true\ncertfile %s\nkeyfile %s\n", port, b.crt, b.key))
	b.serve(address, b.command("mosquitto", "-c", config))
	for _, version := range versions {
		var all sync.WaitGroup
		for range 25 {
			all.Go(func() { b.call(address, version) })
		}
		all.Wait()
	}
}

// accept takes a connection as a TLS server, which whoever calls ends, and returns its
// secrets and its random.
func (b *bench) accept(l net.Listener, version uint16) (seal.Secrets, [seal.RandomLen]byte) {
	b.t.Helper()
	var text bytes.Buffer
	c, err := l.Accept()
	if err != nil {
		b.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	conn := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{b.server}, MinVersion: version, MaxVersion: version, KeyLogWriter: &text})
	if err := conn.Handshake(); err != nil {
		b.t.Error(err)
	}
	_, _ = io.Copy(io.Discard, conn)
	var random [seal.RandomLen]byte
	var name string
	var r []byte
	if _, err := fmt.Sscanf(text.String(), "%s %x", &name, &r); err != nil {
		b.t.Error("no handshake")
	}
	copy(random[:], r)
	s := keylog.NewStore(0)
	s.Add(text.Bytes())
	return s.Secrets(&random), random
}

// client runs a program that is a client of a server here, and ends, and returns what the
// server knows of the connection.
func (b *bench) client(version uint16, program func(address string) *exec.Cmd) (seal.Secrets, [seal.RandomLen]byte) {
	b.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	defer l.Close()
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second))
	cmd := program(l.Addr().String())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	defer func() {
		if err := cmd.Wait(); err != nil || b.t.Failed() {
			b.t.Errorf("%v: %v\n%s", cmd.Args, err, out.String())
		}
	}()
	return b.accept(l, version)
}

func (b *bench) sClient(address string) *exec.Cmd {
	return b.command("openssl", "s_client", "-connect", address)
}

func TestClient(t *testing.T) {
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			want, random := b.client(version, b.sClient)
			b.same(b.known(&random), want)
		})
	}
}

// Python loads libssl for a module of its own: it is no dependency of the program. Its
// keylog_filename is a callback of the program's, which stays.
const python = `
import socket, ssl, sys
c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
if len(sys.argv) > 3: c.keylog_filename = sys.argv[3]
with socket.create_connection((sys.argv[1], sys.argv[2])) as s, c.wrap_socket(s) as t: t.unwrap
`

func (b *bench) python(args ...string) func(string) *exec.Cmd {
	return func(address string) *exec.Cmd {
		host, port, _ := net.SplitHostPort(address)
		return b.command("python3", append([]string{"-c", python, host, port}, args...)...)
	}
}

func TestModuleWithItsOwnLibrary(t *testing.T) {
	b := newBench(t)
	want, random := b.client(tls.VersionTLS13, b.python())
	b.same(b.known(&random), want)
}

// A module that jumps to SSL_new as its last act is not on the stack: the return address
// is its caller's, which knows nothing of OpenSSL.
const (
	jumping = `
void *TLS_client_method(void), *SSL_CTX_new(const void *), *SSL_new(void *), *SSL_CTX_get_keylog_callback(void *);
void *context(void) { return SSL_CTX_new(TLS_client_method()); }
void *connection(void *ctx) { return SSL_new(ctx); }
void *callback(void *ctx) { return SSL_CTX_get_keylog_callback(ctx); }
`
	jumper = `
#include <dlfcn.h>
int main(int n, char **args) {
	void *m = dlopen(args[1], RTLD_NOW | RTLD_LOCAL);
	if (n != 2 || !m) return 2;
	void *(*context)(void) = (void *(*)(void))dlsym(m, "context");
	void *(*connection)(void *) = (void *(*)(void *))dlsym(m, "connection");
	void *(*callback)(void *) = (void *(*)(void *))dlsym(m, "callback");
	void *ctx = context();
	if (callback(ctx)) return 3;
	if (!connection(ctx)) return 4;
	return callback(ctx) ? 0 : 5;
}
`
)

func TestJumpedTo(t *testing.T) {
	b := newBench(t)
	compile := func(name, text string, args ...string) string {
		t.Helper()
		source, target := filepath.Join(b.folder, name+".c"), filepath.Join(b.folder, name)
		certtest.WriteFile(t, source, []byte(text))
		out, err := exec.Command("gcc", append([]string{"-O2", "-o", target, source}, args...)...).CombinedOutput()
		if err != nil && strings.Contains(string(out), "libssl.so.3") {
			t.Skip("there is no libssl.so.3")
		} else if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return target
	}
	module := compile("jumping", jumping, "-shared", "-fPIC", "-l:libssl.so.3", "-l:libcrypto.so.3")
	if out, err := b.command(compile("jumper", jumper, "-ldl"), module).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestOtherCallbackStays(t *testing.T) {
	b := newBench(t)
	other := filepath.Join(b.folder, "other")
	want, random := b.client(tls.VersionTLS13, b.python(other))
	b.same(b.known(&random), want)
	if err := os.Chmod(other, 0o600); err != nil {
		t.Fatal(err)
	}
	b.log = other
	b.same(b.known(&random), want)
}

// A file is made anew once it is gone, whoever took it away.
func TestRotation(t *testing.T) {
	b := newBench(t)
	address, _ := freePort(t)
	b.serve(address, b.command("openssl", "s_server", "-accept", address, "-cert", b.crt, "-key", b.key, "-quiet"))
	b.call(address, tls.VersionTLS13)
	if err := os.Rename(b.log, b.log+".1"); err != nil {
		t.Fatal(err)
	}
	b.call(address, tls.VersionTLS13)
	if err := os.Remove(b.log); err != nil {
		t.Fatal(err)
	}
	b.call(address, tls.VersionTLS13)
}

// Where nothing can be written, or others could read it, nothing is, and the program runs
// on.
func TestNothingIsWritten(t *testing.T) {
	for name, spoil := range map[string]func(b *bench) error{
		"no variable":          func(b *bench) error { b.log = ""; return nil },
		"too long":             func(b *bench) error { b.log = "/" + strings.Repeat("a", 5000); return nil },
		"no folder":            func(b *bench) error { b.log = filepath.Join(b.folder, "none", "keys"); return nil },
		"a folder":             func(b *bench) error { return os.Mkdir(b.log, 0o700) },
		"a link":               func(b *bench) error { return os.Symlink(filepath.Join(b.folder, "target"), b.log) },
		"a pipe, nobody reads": func(b *bench) error { return exec.Command("mkfifo", b.log).Run() },
		"others may read":      func(b *bench) error { return errors.Join(os.WriteFile(b.log, nil, 0o600), os.Chmod(b.log, 0o604)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if err := spoil(b); err != nil {
				t.Fatal(err)
			}
			b.client(tls.VersionTLS13, b.sClient)
			if info, err := os.Stat(b.log); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
				t.Errorf("%d bytes were written", info.Size())
			}
		})
	}
}

// Without the library the same programs write nothing: it is what these tests are about.
func TestWithoutTheLibrary(t *testing.T) {
	b := newBench(t)
	_, random := b.client(tls.VersionTLS13, func(address string) *exec.Cmd {
		cmd := b.sClient(address)
		cmd.Env = append(os.Environ(), "SSLKEYLOGFILE="+b.log)
		return cmd
	})
	if b.known(&random).ClientTraffic != nil {
		t.Error("this OpenSSL writes a key log by itself")
	}
}
