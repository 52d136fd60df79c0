package vsock

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A guest's call arrives at PATH_PORT, which only the gateway's user reaches; its end passes
// by itself.
func TestListenUnix(t *testing.T) {
	noLeaks(t)
	h := NewHost(nil)
	defer h.Close()
	path := filepath.Join(t.TempDir(), "v.sock")
	l := listenAt(t, h, "vsock:"+path+":52")
	info, err := os.Stat(path + "_52")
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if _, err := h.Listen(t.Context(), Addr{Path: path, Port: 52}); !errors.Is(err, ErrInUse) {
		t.Errorf("twice: %v", err)
	}
	if l.Addr().String() != "vsock:"+path+":52" {
		t.Errorf("listens at %s", l.Addr())
	}
	guest, err := net.Dial("unix", path+"_52")
	if err != nil {
		t.Fatal(err)
	}
	defer guest.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if a := c.RemoteAddr().(Addr); a != (Addr{Path: path}) {
		t.Errorf("called from %+v", a)
	}
	guest.Write([]byte("hello"))
	guest.(*net.UnixConn).CloseWrite()
	if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	l.Close()
	if _, err := os.Stat(path + "_52"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	os.WriteFile(path+"_53", nil, 0o600)
	if _, err := h.Listen(t.Context(), Addr{Path: path, Port: 53}); !errors.Is(err, ErrInUse) {
		t.Errorf("in place of a file: %v", err)
	}
}

// hypervisor serves a socket as one of Firecracker's with answer, and returns its path. What
// it was asked for goes to asked.
func hypervisor(t *testing.T, answer string, asked chan string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "v.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			line, _ := bufio.NewReader(c).ReadString('\n')
			asked <- line
			io.WriteString(c, answer)
			if strings.HasSuffix(answer, "wait") {
				io.Copy(io.Discard, c)
			}
			c.Close()
		}
	}()
	return path
}

// The host's call is asked for in a line and answered in one; all behind that is the
// guest's.
func TestDialUnix(t *testing.T) {
	noLeaks(t)
	h := NewHost(nil)
	defer h.Close()
	asked := make(chan string, 1)
	for answer, want := range map[string]error{
		"OK 1073741824\nhello\nworld": nil,
		"OK 4294967295\nhello\nworld": nil,
		"":                            unix.ECONNREFUSED, // as when nobody listens in the guest
		"OK":                          unix.ECONNREFUSED,
		"NO 5\n":                      errAnswer,
		"OK x\n":                      errAnswer,
		"OK 123456789012":             errAnswer,
		"OK wait":                     unix.ETIMEDOUT,
	} {
		path := hypervisor(t, answer, asked)
		ctx, cancel := context.WithTimeoutCause(t.Context(), patience, unix.ETIMEDOUT)
		if want == unix.ETIMEDOUT {
			ctx, cancel = context.WithTimeoutCause(t.Context(), 20*time.Millisecond, unix.ETIMEDOUT)
		}
		c, err := h.Dial(ctx, Addr{Path: path, Port: 8883})
		cancel()
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", answer, err, want)
		}
		if line := <-asked; line != "CONNECT 8883\n" {
			t.Errorf("asked for %q", line)
		}
		if err != nil {
			continue
		}
		if b, err := io.ReadAll(c); string(b) != "hello\nworld" || err != nil {
			t.Errorf("%q: %q, %v", answer, b, err)
		}
		if a := c.RemoteAddr().String(); a != fmt.Sprintf("vsock:%s:8883", path) {
			t.Errorf("connected with %s", a)
		}
		c.Close()
	}
	// A hypervisor that is not there is no guest that refuses.
	path := filepath.Join(t.TempDir(), "v.sock")
	if _, err := h.Dial(t.Context(), Addr{Path: path, Port: 1}); !errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("without a socket: %v", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if _, err := h.Dial(t.Context(), Addr{Path: path, Port: 1}); !errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("with a socket that is left: %v", err)
	}
}
