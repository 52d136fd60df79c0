package linktest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"sheaf/netstack/link"
)

const (
	// patience is how long anything may take that is a matter of milliseconds, on a
	// machine with other things to do.
	patience = 20 * time.Second

	// moment is how long something has to last that shall last for ever.
	moment = 50 * time.Millisecond

	// backlog is how many frames the reader of a rig keeps for the test.
	backlog = 4096
)

// A rig is a Link that is read as the gateway reads it, at one path.
type rig struct {
	t    testing.TB
	kind Kind
	path string
	link link.Link

	frames chan []byte // as Read gave them; closed when it has ended
	err    error       // of Read, once frames is closed
	alive  []*peer
}

func newRig(t testing.TB, k Kind) *rig {
	t.Helper()
	r := &rig{t: t, kind: k, path: socketPath(t)}
	r.open()
	t.Cleanup(r.stop)
	return r
}

// open makes the Link, and reads it.
func (r *rig) open() {
	r.t.Helper()
	l, err := r.kind.Open(r.path)
	if err != nil {
		r.t.Fatalf("open: %v", err)
	}
	r.link, r.frames = l, make(chan []byte, backlog)
	go r.read(l, r.frames)
}

func (r *rig) read(l link.Link, frames chan<- []byte) {
	defer close(frames)
	bufs, sizes := buffers(l.BatchSize())
	for {
		n, err := l.Read(bufs, sizes)
		if (err == nil) != (n > 0) || n > len(bufs) {
			r.t.Errorf("Read returned %d of %d, %v", n, len(bufs), err)
		}
		for i := range n {
			frames <- bytes.Clone(bufs[i][:sizes[i]])
		}
		if err != nil {
			r.err = err
			return
		}
	}
}

// buffers are what a Read borrows.
func buffers(n int) (bufs [][]byte, sizes []int) {
	for range n {
		bufs = append(bufs, make([]byte, link.MaxFrame))
	}
	return bufs, make([]int, n)
}

// stop kills the guests and closes the Link.
func (r *rig) stop() {
	for _, p := range r.alive {
		p.kill()
	}
	r.alive = nil
	if r.link == nil {
		return
	}
	if err := r.link.Close(); err != nil {
		r.t.Errorf("Close: %v", err)
	}
	within(r.t, "Read after Close", func() {
		for range r.frames { // what nobody asked for
		}
	})
	if !errors.Is(r.err, os.ErrClosed) {
		r.t.Errorf("Read ended with %v, want os.ErrClosed", r.err)
	}
	r.link = nil
}

// next returns what the gateway received next.
func (r *rig) next() []byte {
	r.t.Helper()
	select {
	case f, ok := <-r.frames:
		if !ok {
			r.t.Fatalf("Read ended: %v", r.err)
		}
		return f
	case <-time.After(patience):
		r.t.Fatalf("nothing received; status %+v", r.link.Status())
	}
	return nil
}

// expect fails the test unless the gateway receives frame next.
func (r *rig) expect(frame []byte) {
	r.t.Helper()
	same(r.t, r.next(), frame)
}

// write is the Link's Write, in patience.
func (r *rig) write(frames ...[]byte) {
	r.t.Helper()
	within(r.t, "Write", func() {
		if err := r.link.Write(frames); err != nil {
			r.t.Errorf("Write: %v", err)
		}
	})
}

// status waits until the Link's status is as ok wants it.
func (r *rig) status(what string, ok func(link.Status) bool) link.Status {
	r.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		s := r.link.Status()
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: never: status %+v", what, s)
		}
	}
}

// A peer is a guest of the rig.
type peer struct {
	Guest
	t    testing.TB
	buf  []byte
	once sync.Once
}

// start starts a guest and does not wait for it.
func (r *rig) start() *peer {
	r.t.Helper()
	g, err := r.kind.Start(r.path)
	if err != nil {
		r.t.Fatalf("starting a guest: %v", err)
	}
	p := &peer{Guest: g, t: r.t, buf: make([]byte, link.MaxFrame)}
	r.alive = append(r.alive, p)
	return p
}

// guest starts a guest, and returns when frames have gone both ways.
func (r *rig) guest() *peer {
	r.t.Helper()
	p := r.start()
	r.exchange(p, 1<<20)
	return p
}

// exchange sends a frame each way.
func (r *rig) exchange(p *peer, i int) {
	r.t.Helper()
	up, down := numbered(i, 60), numbered(i+1, 61)
	p.send(up)
	r.expect(up)
	r.status("guest up", func(s link.Status) bool { return s.Up })
	r.write(down)
	p.expect(down)
}

// reach has a guest send until the gateway receives it, and then exchanges frames: for
// one that cannot know when it is heard.
func (r *rig) reach(p *peer) {
	r.t.Helper()
	knock, before := numbered(1<<21, 60), r.link.Status().Received
	r.status("guest heard", func(s link.Status) bool {
		if s.Received > before {
			return true
		}
		p.send(knock)
		return false
	})
	mark := numbered(1<<22, 62)
	p.send(mark)
	for f := r.next(); !bytes.Equal(f, mark); f = r.next() {
		same(r.t, f, knock)
	}
	r.exchange(p, 1<<20)
}

// gone kills a guest, and waits until the Link has noticed.
func (r *rig) gone(p *peer) {
	r.t.Helper()
	p.kill()
	r.down()
}

// down waits until the Link has noticed that no guest is there.
func (r *rig) down() {
	r.t.Helper()
	r.status("guest down", func(s link.Status) bool {
		if s.Up && r.kind.Silent {
			r.write(numbered(0, 60))
		}
		return !s.Up
	})
}

func (p *peer) kill() { p.once.Do(p.Guest.Kill) }

func (p *peer) send(frames ...[]byte) {
	p.t.Helper()
	within(p.t, "the guest's Send", func() {
		for _, f := range frames {
			if err := p.Send(f); err != nil {
				p.t.Errorf("the guest's Send: %v", err)
			}
		}
	})
}

func (p *peer) expect(frames ...[]byte) {
	p.t.Helper()
	for _, f := range frames {
		var n int
		var err error
		within(p.t, "the guest's Receive", func() { n, err = p.Receive(p.buf) })
		if err != nil {
			p.t.Fatalf("the guest's Receive: %v", err)
		}
		same(p.t, p.buf[:n], f)
	}
}

// numbered returns a frame of size bytes whose contents depend on i.
func numbered(i, size int) []byte {
	f := make([]byte, size)
	for j := range f {
		f[j] = byte(i>>8 + 7*i + j + j>>8)
	}
	if size >= link.HeaderLen {
		binary.BigEndian.PutUint32(f[2:], uint32(i))
	}
	return f
}

func same(t testing.TB, got, want []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	t.Fatalf("a frame of %s, want %s", brief(got), brief(want))
}

func brief(f []byte) string { return fmt.Sprintf("%d bytes %x", len(f), f[:min(len(f), 24)]) }

// within fails the test if f does not return in patience.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s does not return:\n%s", what, strings.Join(goroutines(), "\n\n"))
	}
}

// noLeaks fails the test if it leaves goroutines or descriptors behind. Call it first.
func noLeaks(t *testing.T) {
	routines, files := len(goroutines()), descriptors(t)
	t.Cleanup(func() {
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			now := goroutines()
			if len(now) <= routines && descriptors(t) <= files {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("%d goroutines before, %d now; %d descriptors before, %d now\n%s", routines, len(now), files, descriptors(t), strings.Join(now, "\n\n"))
				return
			}
		}
	})
}

func goroutines() []string {
	buf := make([]byte, 4<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var own []string
	for _, g := range strings.Split(string(buf), "\n\n") {
		if strings.Contains(g, "sheaf/netstack") && !strings.Contains(g, "testing.tRunner") && !strings.Contains(g, "linktest.within") {
			own = append(own, g)
		}
	}
	return own
}

func descriptors(t testing.TB) int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}
