package vsock

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A testKernel is a host's AF_VSOCK, with TCP on loopback in place of guests: there are
// hosts whose kernel has none, and no guest can be had that needs no hypervisor.
type testKernel struct {
	mu       sync.Mutex
	why      error // listenAt fails
	asked    int
	listener net.Listener
	why2     error // dialTo fails
	dialed   chan uint32
}

func (k *testKernel) host(t *testing.T) *Host {
	h := NewHost(nil)
	h.kernel = kernel{listenAt: k.listenAt, dialTo: k.dialTo, wait: time.Millisecond}
	t.Cleanup(func() { h.Close() })
	return h
}

func (k *testKernel) listenAt(uint32) (net.Listener, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
	if k.why != nil {
		return nil, &net.OpError{Op: "listen", Err: k.why}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	k.listener = l
	return l, err
}

func (k *testKernel) dialTo(uint32, uint32) (net.Conn, error) {
	k.mu.Lock()
	why := k.why2
	k.mu.Unlock()
	if why == errLate {
		<-k.dialed
		why = nil
	}
	if why != nil {
		return nil, &net.OpError{Op: "dial", Err: why}
	}
	return net.Dial("tcp", k.listener.Addr().String())
}

var errLate = errors.New("late")

func (k *testKernel) set(why error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.why = why
}

func (k *testKernel) times() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked
}

// A kernel that becomes a host while a port is listened at is listened in from then on.
func TestKernelBecomesHost(t *testing.T) {
	noLeaks(t)
	k := &testKernel{why: unix.EADDRNOTAVAIL}
	h := k.host(t)
	l := listenAt(t, h, "vsock:1883")
	waitFor(t, "it to be asked again", func() bool { return k.times() > 2 })
	k.set(nil)
	waitFor(t, "it to be listened in", func() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.listener != nil })
	for range 2 {
		guest, err := net.Dial("tcp", k.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(guest, "hello")
		guest.Close()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c); string(b) != "hello" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		c.Close()
	}
	waits, err := net.Dial("tcp", k.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer waits.Close()
	l.Close()
	if n, err := waits.Read(make([]byte, 1)); err == nil {
		t.Errorf("who waits when the listener is closed reads %d bytes", n)
	}
	if c, err := net.Dial("tcp", k.listener.Addr().String()); err == nil {
		t.Errorf("still listens: %v", c.RemoteAddr())
	}
}

// A kernel without vsock is not asked again; what else is wrong with the port is said.
func TestKernelListenFails(t *testing.T) {
	noLeaks(t)
	k := &testKernel{why: unix.EAFNOSUPPORT}
	h := k.host(t)
	l := listenAt(t, h, "vsock:1883")
	time.Sleep(5 * time.Millisecond)
	if n := k.times(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	l.Close()
	for why, want := range map[error]error{unix.EADDRINUSE: ErrInUse, unix.EACCES: unix.EACCES} {
		k.set(why)
		if _, err := h.Listen(t.Context(), Addr{Port: 80}); !errors.Is(err, want) {
			t.Errorf("%v: %v", why, err)
		}
	}
	k.set(unix.EAFNOSUPPORT)
	listenAt(t, h, "vsock:80") // the failures have left it free
}

// What the kernel says of a guest is said as a socket of TCP would, and who has given up
// gets no connection.
func TestKernelDial(t *testing.T) {
	noLeaks(t)
	k := &testKernel{dialed: make(chan uint32)}
	h := k.host(t)
	listenAt(t, h, "vsock:1883")
	to := Addr{CID: 9, Port: 1}
	c, err := h.Dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	for why, want := range map[error]error{
		unix.ECONNRESET: unix.ECONNREFUSED, unix.ENODEV: unix.EHOSTUNREACH, unix.EAFNOSUPPORT: unix.EHOSTUNREACH,
		unix.EADDRNOTAVAIL: unix.EHOSTUNREACH, unix.ETIMEDOUT: unix.ETIMEDOUT,
	} {
		k.why2 = why
		if _, err := h.Dial(t.Context(), to); !errors.Is(err, want) {
			t.Errorf("%v: %v", why, err)
		}
	}
	k.why2 = errLate
	ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, unix.ETIMEDOUT)
	defer cancel()
	if _, err := h.Dial(ctx, to); !errors.Is(err, unix.ETIMEDOUT) {
		t.Error(err)
	}
	k.dialed <- 0 // its connection is closed, or a descriptor is left
}

// This kernel, whatever it has, is asked for the host's CID only.
func TestLinuxKernel(t *testing.T) {
	noLeaks(t)
	h := NewHost(nil)
	defer h.Close()
	l, err := h.Listen(t.Context(), Addr{Port: 18830})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := linuxKernel.listenAt(18831)
	if err != nil {
		if !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.EAFNOSUPPORT) {
			t.Error(err)
		}
		return
	}
	defer socket.Close()
	if a := socket.Addr().String(); a != "host(2):18831" {
		t.Errorf("listens at %s", a)
	}
}
