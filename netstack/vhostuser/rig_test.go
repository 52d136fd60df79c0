package vhostuser

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/netstack/link"
	"sheaf/netstack/vhostuser/vhosttest"
)

var testMAC = net.HardwareAddr{0x52, 0x54, 0, 0x12, 0x34, 1}

const testMTU = 1400

// A rig is a NIC that is read as a gateway reads it.
type rig struct {
	t      testing.TB
	path   string
	nic    *NIC
	frames chan []byte // as Read gave them
}

func newRig(t testing.TB) *rig {
	t.Helper()
	noLeaks(t)
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "s"), frames: make(chan []byte, 4096)}
	var err error
	if r.nic, err = OpenNIC(NICConfig{Path: r.path, MAC: testMAC, MTU: testMTU}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		bufs, sizes := buffers()
		for {
			n, err := r.nic.Read(bufs, sizes)
			if err != nil {
				return
			}
			for i := range n {
				r.frames <- bytes.Clone(bufs[i][:sizes[i]])
			}
		}
	}()
	t.Cleanup(func() {
		r.nic.Close()
		<-done
	})
	return r
}

// buffers are what a Read borrows.
func buffers() (bufs [][]byte, sizes []int) {
	for range batchSize {
		bufs = append(bufs, make([]byte, link.MaxFrame))
	}
	return bufs, make([]int, batchSize)
}

// dial connects a front end that says nothing yet.
func (r *rig) dial() *vhosttest.FrontEnd {
	r.t.Helper()
	f, err := vhosttest.Dial(r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { f.Close() })
	return f
}

// guest starts a guest and waits until it is up.
func (r *rig) guest(o vhosttest.Options) *vhosttest.Guest {
	r.t.Helper()
	g, err := vhosttest.Start(r.path, o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(g.Kill)
	r.until("up", func(s link.Status) bool { return s.Up && g.FrontEnd() != nil })
	return g
}

// until waits until the NIC's status is as ok wants it.
func (r *rig) until(what string, ok func(link.Status) bool) link.Status {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s := r.nic.Status()
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: never: %+v", what, s)
		}
	}
}

// fault waits until a fault is in the status, with these words in it.
func (r *rig) fault(words ...string) {
	r.t.Helper()
	s := r.until("fault", func(s link.Status) bool { return s.Fault != "" && !s.Up })
	for _, w := range words {
		if !strings.Contains(s.Fault, w) {
			r.t.Errorf("fault %q, want %q in it", s.Fault, w)
		}
	}
}

// exchange sends a frame each way.
func (r *rig) exchange(g *vhosttest.Guest) {
	r.t.Helper()
	up, down := frame(60, 1), frame(160, 2)
	if err := g.Send(up); err != nil {
		r.t.Fatal(err)
	}
	r.expect(up)
	if err := r.nic.Write([][]byte{down}); err != nil {
		r.t.Fatal(err)
	}
	receive(r.t, g, down)
}

// expect waits for the next frame from the guest.
func (r *rig) expect(want []byte) {
	r.t.Helper()
	select {
	case f := <-r.frames:
		if !bytes.Equal(f, want) {
			r.t.Fatalf("a frame of %d bytes %.20x, want %d bytes %.20x", len(f), f, len(want), want)
		}
	case <-time.After(patience):
		r.t.Fatalf("no frame: %+v", r.nic.Status())
	}
}

// nothing fails the test if a frame comes from the guest.
func (r *rig) nothing() {
	r.t.Helper()
	select {
	case f := <-r.frames:
		r.t.Fatalf("a frame of %d bytes", len(f))
	case <-time.After(30 * time.Millisecond):
	}
}

// receive waits for the guest's next frame.
func receive(t testing.TB, g *vhosttest.Guest, want []byte) {
	t.Helper()
	buf := make([]byte, link.MaxFrame)
	var n int
	var err error
	within(t, "Receive", func() { n, err = g.Receive(buf) })
	if err != nil || !bytes.Equal(buf[:n], want) {
		t.Fatalf("the guest received %d bytes %.20x, %v; want %d bytes %.20x", n, buf[:n], err, len(want), want)
	}
}

// within fails the test if f does not return in patience.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s does not return", what)
	}
}

// frame returns one of n bytes that depend on i.
func frame(n, i int) []byte {
	f := make([]byte, n)
	for j := range f {
		f[j] = byte(i + j)
	}
	return f
}

// memfd returns the descriptor of a file in memory of so many bytes, which the test closes.
func memfd(t testing.TB, size int) int {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		t.Fatal(err)
	}
	return fd
}

// eventfd is memfd of an eventfd.
func eventfd(t testing.TB) int {
	t.Helper()
	e, err := vhosttest.NewEventfd()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e.FD()
}

// open is memfd of any file.
func open(t testing.TB, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return int(f.Fd())
}
