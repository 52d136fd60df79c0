package vsock

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// both returns the two ends of a stream that the guest has opened.
func both(t testing.TB, l net.Listener, g *testGuest) (net.Conn, *guestConn) {
	t.Helper()
	gc, err := g.dial(1883)
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, gc
}

func closeWrite(t testing.TB, c net.Conn) {
	t.Helper()
	if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
}

// A guest calls the host: megabytes in both directions at once, and the end of each behind
// its bytes.
func TestGuestCalls(t *testing.T) {
	noLeaks(t)
	h, l, g := plugged(t)
	c, gc := both(t, l, g)
	if a := c.RemoteAddr().(Addr); a != (Addr{Guest: "meter", CID: testCID, Port: gc.key.local}) {
		t.Errorf("called from %+v", a)
	}
	if a := c.LocalAddr().(Addr); a.Port != 1883 || a.CID != hostCID {
		t.Errorf("called at %+v", a)
	}
	exchange(t, c, gc)
	if s := h.Ports()[0]; !s.Up || s.Name != "meter" || s.CID != testCID || s.Calls != 1 || s.BytesFrom != exchanged || s.BytesTo != exchanged || s.Received == 0 || s.Sent == 0 || s.Streams != 1 {
		t.Errorf("%+v", s)
	}
	c.Close()
	waitFor(t, "the guest to confirm the end", func() bool { return h.Ports()[0].Streams == 0 })
	if s := h.Ports()[0]; s.Violations != 0 || s.Overdue != 0 || s.Invalid != 0 {
		t.Errorf("%+v", s)
	}
}

const exchanged = 3 << 20

// exchange sends exchanged bytes in both directions at once.
func exchange(t *testing.T, c net.Conn, gc *guestConn) {
	t.Helper()
	sent := make([]byte, exchanged)
	for i := range sent {
		sent[i] = byte(i * i / 251)
	}
	want := sha256.Sum256(sent)
	check := func(who string, r io.Reader) {
		got := sha256.New()
		if n, err := io.Copy(got, r); err != nil || n != exchanged || !bytes.Equal(got.Sum(nil), want[:]) {
			t.Errorf("%s: %d bytes, or others: %v", who, n, err)
		}
	}
	done := make(chan bool, 3)
	go func() { check("guest", struct{ io.Reader }{gc}); done <- true }()
	go func() { check("host", struct{ io.Reader }{c}); done <- true }()
	go func() {
		if _, err := gc.Write(sent); err != nil {
			t.Error(err)
		}
		if err := gc.shutdown(noSend); err != nil {
			t.Error(err)
		}
		done <- true
	}()
	if n, err := c.Write(sent); n != len(sent) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	closeWrite(t, c)
	for range 3 {
		<-done
	}
	if _, err := c.Write([]byte{1}); err != unix.EPIPE {
		t.Errorf("behind the end: %v", err)
	}
}

// The host calls a guest, by the port's name or the CID.
func TestHostCalls(t *testing.T) {
	noLeaks(t)
	h, _, g := plugged(t)
	accepted := g.listen(8883)
	waitFor(t, "the guest", func() bool { return h.Ports()[0].Up })
	for _, a := range []Addr{{Guest: "meter", Port: 8883}, {CID: testCID, Port: 8883}} {
		c, err := h.Dial(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		if r := c.RemoteAddr().(Addr); r.Guest != "meter" || r.Port != 8883 {
			t.Errorf("connected with %+v", r)
		}
		exchange(t, c, <-accepted)
		c.Close()
	}
	if _, err := h.Dial(t.Context(), Addr{Guest: "meter", Port: 1}); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("where nobody listens: %v", err)
	}
	if _, err := h.Dial(t.Context(), Addr{Guest: "other", Port: 1}); !errors.Is(err, unix.EHOSTUNREACH) {
		t.Errorf("without a port: %v", err)
	}
	if _, err := h.Dial(t.Context(), Addr{Port: 1}); !errors.Is(err, ErrAddress) {
		t.Errorf("to the host: %v", err)
	}
	g.kill()
	waitFor(t, "the guest to be gone", func() bool { return !h.Ports()[0].Up })
	if _, err := h.Dial(t.Context(), Addr{Guest: "meter", Port: 8883}); !errors.Is(err, unix.EHOSTUNREACH) {
		t.Errorf("without a guest: %v", err)
	}
	if s := h.Ports()[0]; s.Dials != 2 || s.Connects != 1 {
		t.Errorf("%+v", s)
	}
}

// A guest that does not answer a call is not waited for longer than the caller wants to.
func TestDialGivesUp(t *testing.T) {
	noLeaks(t)
	h := NewHost(nil)
	defer h.Close()
	path := filepath.Join(t.TempDir(), "s")
	if err := h.Plug("meter", PortConfig{CID: testCID, Path: path}); err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, path, testCID, guestSlot) // nobody hears
	waitFor(t, "the guest", func() bool { return h.Ports()[0].Up })
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, unix.ETIMEDOUT)
	defer cancel()
	if _, err := h.Dial(ctx, Addr{Guest: "meter", Port: 1}); !errors.Is(err, unix.ETIMEDOUT) {
		t.Error(err)
	}
	for _, want := range []uint16{opRequest, opReset} {
		if p, _, err := g.receive(); p.op != want || err != nil {
			t.Errorf("operation %d, %v; want %d", p.op, err, want)
		}
	}
	waitFor(t, "the stream to be gone", func() bool { return h.Ports()[0].Streams == 0 })
}

// Nobody listens; the listener is closed and opened again: who waits is reset, who comes
// meanwhile refused.
func TestListener(t *testing.T) {
	noLeaks(t)
	h, l, g := plugged(t)
	if _, err := g.dial(1884); err == nil {
		t.Error("a port that nobody listens at")
	}
	if _, err := h.Listen(t.Context(), Addr{Port: 1883}); !errors.Is(err, ErrInUse) {
		t.Errorf("twice: %v", err)
	}
	if _, err := h.Listen(t.Context(), Addr{Guest: "meter", Port: 1883}); !errors.Is(err, ErrAddress) {
		t.Errorf("of a guest: %v", err)
	}
	waits, err := g.dial(1883)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	l.Close()
	go func() { _, err := l.Accept(); failed <- err }()
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	waitFor(t, "who waits to be reset", waits.isReset)
	if _, err := g.dial(1883); err == nil {
		t.Error("the listener is closed")
	}
	l = listenAt(t, h, "vsock:1883")
	if l.Addr().String() != "vsock:1883" {
		t.Errorf("listens at %s", l.Addr())
	}
	both(t, l, g)
	go func() { _, err := l.Accept(); failed <- err }()
	l.Close()
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if s := h.Ports()[0]; s.Refused != 2 || s.Calls != 2 {
		t.Errorf("%+v", s)
	}
}

// Resets pass in both directions, as does the guest's end of receiving, and wake who waits.
func TestResets(t *testing.T) {
	noLeaks(t)
	_, l, g := plugged(t)
	c, gc := both(t, l, g)
	c.(interface{ SetLinger(int) error }).SetLinger(0)
	c.Close()
	waitFor(t, "the guest to be reset", gc.isReset)
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read behind Close: %v", err)
	}

	c, gc = both(t, l, g)
	failed := make(chan error, 2)
	go func() { _, err := c.Write(make([]byte, 1<<20)); failed <- err }()
	go func() { _, err := c.Read(make([]byte, 1)); failed <- err }()
	g.send(gc.header(opReset), nil)
	for range 2 {
		if err := <-failed; !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("%v, want a reset", err)
		}
	}

	c, gc = both(t, l, g)
	go func() { _, err := c.Write(make([]byte, 1<<20)); failed <- err }()
	gc.shutdown(noReceive)
	if err := <-failed; !errors.Is(err, unix.EPIPE) {
		t.Errorf("%v, want a broken pipe", err)
	}
	gc.Write([]byte("more"))
	if n, err := c.Read(make([]byte, 9)); n != 4 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// A guest that is killed resets its streams and nobody else's, and the next that comes
// finds the port.
func TestGuestGone(t *testing.T) {
	noLeaks(t)
	h, l, g := plugged(t)
	path := filepath.Join(t.TempDir(), "other")
	if err := h.Plug("other", PortConfig{CID: testCID + 1, Path: path}); err != nil {
		t.Fatal(err)
	}
	other := bootGuest(t, path, testCID+1)
	oc, ogc := both(t, l, other)
	c, _ := both(t, l, g)
	g.kill()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("%v, want a reset", err)
	}
	exchange(t, oc, ogc)
	c, gc := both(t, l, bootGuest(t, g.path, testCID))
	exchange(t, c, gc)
	if s := h.Ports()[0]; s.Connects != 2 {
		t.Errorf("%+v", s)
	}
	if err := h.Unplug("other"); err != nil {
		t.Error(err)
	}
	if err := h.Unplug("other"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("unplugged twice: %v", err)
	}
	if _, err := oc.Write(make([]byte, 1)); err == nil {
		t.Error("a stream of a port that is unplugged")
	}
	if s := h.Ports(); len(s) != 1 || s[0].Name != "meter" {
		t.Errorf("%+v", s)
	}
}

func TestPlug(t *testing.T) {
	noLeaks(t)
	h := NewHost(nil)
	dir := t.TempDir()
	if err := h.Plug("a", PortConfig{CID: 3, Path: filepath.Join(dir, "a")}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		name string
		cid  uint32
		path string
		want error
	}{
		"the host's CID": {"b", 2, "b", ErrAddress},
		"any CID":        {"b", anyCID, "b", ErrAddress},
		"same name":      {"a", 4, "b", ErrInUse},
		"same CID":       {"b", 3, "b", ErrInUse},
	} {
		if err := h.Plug(c.name, PortConfig{CID: c.cid, Path: filepath.Join(dir, c.path)}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := h.Plug("b", PortConfig{CID: 4, Path: dir}); err == nil {
		t.Error("a directory in the socket's place")
	}
	h.Close()
	h.Close()
	if err := h.Plug("b", PortConfig{CID: 4, Path: filepath.Join(dir, "b")}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := h.Listen(t.Context(), Addr{Port: 1}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("%v are left", names)
	}
}

// What a guest writes that is no packet stops its device, which says why, until it is started anew.
func TestFaults(t *testing.T) {
	for name, harm := range map[string]func(*testGuest){
		"a payload that is not there": func(g *testGuest) {
			h := packetFrom(opData, 1, 1883)
			h.length = 5
			g.sendRaw(h, []byte("1234"))
		},
		"no header": func(g *testGuest) {
			r := g.rings[transmitQueue]
			r.driver.Send(make([]byte, headerLen-1))
			r.driver.Kick()
			r.kick.Signal()
		},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			h, l, g := plugged(t)
			c, _ := both(t, l, g)
			harm(g)
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("%v, want a reset", err)
			}
			waitFor(t, "the fault", func() bool { return h.Ports()[0].Fault != "" && !h.Ports()[0].Up })
		})
	}
	t.Run("a small buffer", func(t *testing.T) {
		noLeaks(t)
		h := NewHost(nil)
		defer h.Close()
		path := filepath.Join(t.TempDir(), "s")
		if err := h.Plug("meter", PortConfig{CID: testCID, Path: path}); err != nil {
			t.Fatal(err)
		}
		g := newGuest(t, path, testCID, headerLen)
		g.send(packetFrom(opRequest, 1, 1), nil)
		waitFor(t, "the fault", func() bool { return h.Ports()[0].Fault != "" })
	})
}

// A guest that does not take what it is sent is not heard either once much is to be said
// to it, and goes on where it stopped.
func TestGuestDoesNotTake(t *testing.T) {
	noLeaks(t)
	h := NewHost(nil)
	defer h.Close()
	path := filepath.Join(t.TempDir(), "s")
	if err := h.Plug("meter", PortConfig{CID: testCID, Path: path}); err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, path, testCID, guestSlot)
	const calls = 1000
	sent := make(chan error)
	go func() {
		for i := range uint32(calls) {
			if err := g.send(packetFrom(opRequest, i+1, 1), nil); err != nil {
				sent <- err
			}
		}
		sent <- nil
	}()
	most := uint64(maxResets + 2*guestSize)
	waitFor(t, "the list to be full", func() bool { return h.Ports()[0].Refused >= maxResets })
	time.Sleep(20 * time.Millisecond)
	if n := h.Ports()[0].Refused; n > most {
		t.Errorf("%d calls are answered, of which the guest takes none: %+v", n, h.Ports()[0])
	}
	for i := range uint32(calls) {
		if p, _, err := g.receive(); p.op != opReset || p.dstPort != i+1 || err != nil {
			t.Fatalf("answer %d: %+v, %v", i, p, err)
		}
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}
