package linktest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"sheaf/netstack/link"
)

// common are sizes of frames, at the bounds and between them.
var common = []int{link.MinFrame, 15, 42, 60, 61, 160, 1514, 1518, 9014, link.MaxFrame - 1, link.MaxFrame}

// Frames both ways at once, of all sizes, keep their order and are counted.
func testOrder(t *testing.T, k Kind) {
	const n = 3000
	size := func(i int) int { return 60 + i%1455 }
	r := newRig(t, k)
	p := r.guest()
	before := r.link.Status()
	failed := make(chan error, 2)
	go func() {
		for i := range n {
			if err := p.Send(numbered(i, size(i))); err != nil {
				failed <- fmt.Errorf("the guest's Send: %w", err)
				return
			}
		}
		failed <- nil
	}()
	go func() {
		batch := r.link.BatchSize()
		for i := 0; i < n; {
			var frames [][]byte
			for ; i < n && len(frames) < batch; i++ {
				frames = append(frames, numbered(i, size(i)))
			}
			if err := r.link.Write(frames); err != nil {
				failed <- fmt.Errorf("the Link to the guest: %w", err)
				return
			}
		}
		failed <- nil
	}()
	received := make(chan int)
	go func() {
		buf := make([]byte, link.MaxFrame)
		for i := range n {
			m, err := p.Receive(buf)
			if err != nil || !bytes.Equal(buf[:m], numbered(i, size(i))) {
				t.Errorf("frame %d at the guest: %s, %v", i, brief(buf[:m]), err)
				break
			}
		}
		close(received)
	}()
	for i := range n {
		r.expect(numbered(i, size(i)))
	}
	within(t, "the other direction", func() { <-received })
	for range 2 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	s := r.link.Status()
	if s.Received-before.Received != n || s.Sent-before.Sent != n || s.Dropped != before.Dropped || s.Invalid != before.Invalid {
		t.Errorf("status %+v, before %+v", s, before)
	}
}

func testSizesIn(t *testing.T, k Kind) {
	r := newRig(t, k)
	p := r.guest()
	for _, size := range common {
		p.send(numbered(size, size))
		r.expect(numbered(size, size))
	}
	for i, size := range []int{link.MinFrame - 1, 1, link.MaxFrame + 1} {
		before := r.link.Status()
		p.send(numbered(size, size))
		s := r.status("a frame out of bounds seen", func(s link.Status) bool { return s.Invalid != before.Invalid || s.Fault != "" })
		if s.Invalid != before.Invalid+1 && s.Fault == "" {
			t.Errorf("%d bytes: status %+v, before %+v", size, s, before)
		}
		if s.Fault != "" {
			p.kill()
			p = r.start()
		}
		p.send(numbered(i, 60))
		r.expect(numbered(i, 60))
		if s := r.link.Status(); s.Received != before.Received+1 {
			t.Errorf("%d bytes: counted as received: %+v, before %+v", size, s, before)
		}
	}
}

func testSizesOut(t *testing.T, k Kind) {
	r := newRig(t, k)
	p := r.guest()
	for _, size := range common {
		r.write(numbered(size, size))
		p.expect(numbered(size, size))
	}
	before := r.link.Status()
	r.write(numbered(1, 60), numbered(2, link.MinFrame-1), nil, numbered(3, link.MaxFrame+1), numbered(4, 60))
	p.expect(numbered(1, 60), numbered(4, 60))
	if s := r.link.Status(); s.Sent != before.Sent+2 || s.Dropped != before.Dropped+3 || !s.Up {
		t.Errorf("status %+v, before %+v", s, before)
	}
}

// More frames than BatchSize, and none, are a Write as well.
func testBatches(t *testing.T, k Kind) {
	r := newRig(t, k)
	p := r.guest()
	batch := r.link.BatchSize()
	if batch < 1 {
		t.Fatalf("BatchSize %d", batch)
	}
	r.write()
	for _, n := range []int{1, 2, batch, batch + 1, 3*batch + 1} {
		var frames [][]byte
		for i := range n {
			frames = append(frames, numbered(i, 160))
		}
		before := r.link.Status()
		done := make(chan error, 1)
		go func() { done <- r.link.Write(frames) }()
		p.expect(frames...)
		within(t, "Write", func() {
			if err := <-done; err != nil {
				t.Errorf("Write: %v", err)
			}
		})
		if s := r.link.Status(); s.Sent != before.Sent+uint64(n) {
			t.Errorf("%d frames: sent %d", n, s.Sent-before.Sent)
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for _, f := range frames {
				if err := p.Send(f); err != nil {
					t.Errorf("the guest's Send: %v", err)
				}
			}
		}()
		for _, f := range frames {
			r.expect(f)
		}
		within(t, "the guest's Send", func() { <-sent })
	}
	if now := r.link.BatchSize(); now != batch {
		t.Errorf("BatchSize was %d and is %d", batch, now)
	}
}

// What Read has filled stays as it is, whatever comes later, and where it is.
func testReadBorrows(t *testing.T, k Kind) {
	path := socketPath(t)
	l, err := k.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g, err := k.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Kill()
	bufs, sizes := buffers(l.BatchSize())
	own := make([]*byte, len(bufs))
	for i, b := range bufs {
		own[i] = &b[0]
	}
	const more = 100
	next := make(chan struct{})
	go func() {
		_ = g.Send(numbered(1, 160))
		<-next
		for i := range more {
			_ = g.Send(numbered(i, 1514))
		}
	}()
	var n int
	within(t, "Read", func() { n, err = l.Read(bufs, sizes) })
	if n != 1 || err != nil {
		t.Fatalf("Read: %d, %v", n, err)
	}
	same(t, bufs[0][:sizes[0]], numbered(1, 160))
	close(next)
	others, othersSizes := buffers(l.BatchSize())
	for got := 0; got < more; got += n {
		within(t, "Read", func() { n, err = l.Read(others, othersSizes) })
		if err != nil {
			t.Fatal(err)
		}
	}
	same(t, bufs[0][:sizes[0]], numbered(1, 160))
	for i, b := range bufs {
		if &b[0] != own[i] {
			t.Errorf("buffer %d is another one", i)
		}
	}
}

// Frames are as they were when Write returns, and may be changed then.
func testWriteBorrows(t *testing.T, k Kind) {
	r := newRig(t, k)
	p := r.guest()
	var frames, want [][]byte
	for i := range 8 {
		frames, want = append(frames, numbered(i, 60+i)), append(want, numbered(i, 60+i))
	}
	r.write(frames...)
	for i, f := range frames {
		same(t, f, want[i])
		clear(f)
	}
	p.expect(want...)
}

func testReadWaits(t *testing.T, k Kind) {
	r := newRig(t, k)
	select {
	case f, ok := <-r.frames:
		t.Fatalf("Read returned without a guest: %x, %v, %v", f, ok, r.err)
	case <-time.After(moment):
	}
	if s := r.link.Status(); s != (link.Status{}) {
		t.Errorf("status %+v", s)
	}
	r.guest()
}

func testWriteDrops(t *testing.T, k Kind) {
	r := newRig(t, k)
	r.write(numbered(1, 60), numbered(2, 60))
	if s := r.link.Status(); s.Dropped != 2 || s.Sent != 0 {
		t.Errorf("before the first guest: %+v", s)
	}
	r.gone(r.guest())
	before := r.link.Status()
	r.write(numbered(1, 60), numbered(2, 60), numbered(3, 60))
	if s := r.link.Status(); s.Dropped != before.Dropped+3 || s.Sent != before.Sent {
		t.Errorf("after the guest: %+v, before %+v", s, before)
	}
	r.guest() // and nothing that was dropped comes now
}

// flood has Write wait: frames that are more than a guest has room for which takes none.
func (r *rig) flood() (frames [][]byte, done <-chan error) {
	for i := range 4000 {
		frames = append(frames, numbered(i, 1514))
	}
	ended := make(chan error, 1)
	go func() { ended <- r.link.Write(frames) }()
	select {
	case err := <-ended:
		r.t.Fatalf("Write did not wait: %v", err)
	case <-time.After(moment):
	}
	return frames, ended
}

func ended(t *testing.T, done <-chan error) (err error) {
	t.Helper()
	within(t, "Write", func() { err = <-done })
	return err
}

func testWriteWaits(t *testing.T, k Kind) {
	r := newRig(t, k)
	p := r.guest()
	before := r.link.Status()
	frames, done := r.flood()
	p.expect(frames...)
	if err := ended(t, done); err != nil {
		t.Fatal(err)
	}
	if s := r.link.Status(); s.Sent != before.Sent+uint64(len(frames)) || s.Dropped != before.Dropped {
		t.Errorf("status %+v, before %+v", s, before)
	}
}

func testWriteGuestGoes(t *testing.T, k Kind) {
	r := newRig(t, k)
	p := r.guest()
	before := r.link.Status()
	frames, done := r.flood()
	p.kill()
	if err := ended(t, done); err != nil {
		t.Fatal(err)
	}
	s := r.link.Status()
	if sent, dropped := s.Sent-before.Sent, s.Dropped-before.Dropped; dropped == 0 || sent+dropped != uint64(len(frames)) {
		t.Errorf("sent %d, dropped %d of %d", sent, dropped, len(frames))
	}
	r.status("guest down", func(s link.Status) bool { return !s.Up })
	r.guest()
}

// What a guest sends while nobody reads waits there, and so does the guest.
func testGuestWaits(t *testing.T, k Kind) {
	const n = 4000
	path := socketPath(t)
	l, err := k.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g, err := k.Start(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Kill()
	done := make(chan error, 1)
	go func() {
		for i := range n {
			if err := g.Send(numbered(i, 1514)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	select {
	case err := <-done:
		t.Fatalf("the guest did not wait: %v", err)
	case <-time.After(moment):
	}
	bufs, sizes := buffers(l.BatchSize())
	for i := 0; i < n; {
		var m int
		within(t, "Read", func() { m, err = l.Read(bufs, sizes) })
		if err != nil {
			t.Fatal(err)
		}
		for j := range m {
			same(t, bufs[j][:sizes[j]], numbered(i, 1514))
			i++
		}
	}
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
}
