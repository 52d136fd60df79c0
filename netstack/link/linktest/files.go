package linktest

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A socket that is left over gives way; anything else at the path is an error, and stays.
func testPath(t *testing.T, k Kind) {
	r := newRig(t, k)
	p := r.guest()
	if l, err := k.Open(r.path); err == nil {
		l.Close()
		t.Error("a second gateway at the same socket has no error")
	}
	r.exchange(p, 1)
	r.stop()
	if _, err := os.Lstat(r.path); !os.IsNotExist(err) {
		t.Errorf("after Close the socket is there: %v", err)
	}
	for _, network := range []string{"unix", "unixgram"} {
		leave(t, network, r.path)
		r.open()
		r.guest()
		r.stop()
	}
	if err := os.WriteFile(r.path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := k.Open(r.path); err == nil {
		l.Close()
		t.Error("a file in place of the socket has no error")
	}
	if b, err := os.ReadFile(r.path); err != nil || string(b) != "kept" {
		t.Errorf("the file: %q, %v", b, err)
	}
}

// leave makes a socket of one who has died.
func leave(t *testing.T, network, path string) {
	t.Helper()
	address := &net.UnixAddr{Name: path, Net: network}
	if network == "unixgram" {
		c, err := net.ListenUnixgram(network, address)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		return
	}
	l, err := net.ListenUnix(network, address)
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

// Others may not reach the socket, whatever the umask.
func testMode(t *testing.T, k Kind) {
	for _, umask := range []int{0, 0o022, 0o077} {
		old := unix.Umask(umask)
		r := newRig(t, k)
		unix.Umask(old)
		info, err := os.Lstat(r.path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != os.ModeSocket|0o600 {
			t.Errorf("umask %#o: mode %v", umask, info.Mode())
		}
		r.guest()
		r.stop()
	}
}
