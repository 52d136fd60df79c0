package tunnel

import (
	"errors"
	"net"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// Errors of the way pass; those that path MTU discovery has to hear of do not.
func TestPassing(t *testing.T) {
	for err, want := range map[error]bool{
		unix.ENETUNREACH: true, unix.EHOSTUNREACH: true, unix.EADDRNOTAVAIL: true,
		unix.EMSGSIZE: false, unix.EINVAL: false, net.ErrClosed: false,
	} {
		if got := passing(&net.OpError{Op: "write", Err: err}); got != want {
			t.Errorf("%v passes: %v", err, got)
		}
	}
}

// A packet that the host has no way for is an error while a call is made, and
// afterwards one that is lost.
func TestSocketWithoutRoute(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("needs root for a network namespace: %v", err)
	}
	udp, err := net.ListenUDP("udp4", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := newSocket(udp, false)
	send := func() error {
		_, _, err := s.WriteMsgUDP([]byte("x"), nil, &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4747})
		return err
	}
	if err := send(); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("while calling: %v", err)
	}
	s.establish()
	if err := send(); err != nil {
		t.Errorf("established: %v", err)
	}
	s.Close()
	if err := send(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
