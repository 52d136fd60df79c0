package linktest

import (
	"errors"
	"os"
	"testing"
	"time"

	"sheaf/netstack/link"
)

// restarts is how often a guest is killed and started.
const restarts = 20

func testGuests(t *testing.T, k Kind) {
	r := newRig(t, k)
	files := 0
	for i := range restarts {
		before := r.link.Status()
		p := r.guest()
		up := r.link.Status()
		if up.Connects != uint64(i+1) || !up.Up || !up.Since.After(before.Since) {
			t.Fatalf("guest %d is up: %+v, before %+v", i, up, before)
		}
		r.gone(p)
		down := r.link.Status()
		if down.Up || !down.Since.After(up.Since) || down.Fault != "" || down.Connects != up.Connects {
			t.Fatalf("guest %d has gone: %+v, before %+v", i, down, up)
		}
		if i == 1 {
			files = descriptors(t)
		}
		// A Link that dials has a socket at times, whether anybody listens or not.
		for deadline := time.Now().Add(patience); i > 1 && descriptors(t) > files; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("guest %d: %d descriptors, with guest 1 there were %d", i, descriptors(t), files)
			}
		}
	}
}

func testTorn(t *testing.T, k Kind) {
	r := newRig(t, k)
	for name, tear := range k.Torn {
		p := r.guest()
		p.send(numbered(7, 160))
		if err := tear(p.Guest); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p.kill()
		r.expect(numbered(7, 160)) // what was whole is there
		s := r.status(name+": guest down", func(s link.Status) bool { return !s.Up })
		if s.Fault != "" {
			t.Errorf("%s: fault %q", name, s.Fault)
		}
		r.guest()
		r.stopGuests()
	}
}

func testRubbish(t *testing.T, k Kind) {
	r := newRig(t, k)
	for name, send := range k.Rubbish {
		p := r.guest()
		before := r.link.Status()
		p.send(numbered(7, 160))
		if err := send(p.Guest); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.expect(numbered(7, 160)) // what was right before it is there
		// A gateway that dials is soon back, and may be so before anybody looks.
		s := r.status(name+": given up", func(s link.Status) bool { return !s.Up || k.Dials && s.Connects > before.Connects })
		if !s.Up && s.Fault == "" || !s.Since.After(before.Since) {
			t.Errorf("%s: status %+v, before %+v", name, s, before)
		}
		p.kill()
		r.guest()
		if s := r.link.Status(); s.Fault != "" || s.Connects == before.Connects {
			t.Errorf("%s: the next guest: %+v, before %+v", name, s, before)
		}
		r.stopGuests()
	}
}

// stopGuests kills all guests, and waits until the Link has noticed.
func (r *rig) stopGuests() {
	r.t.Helper()
	for _, p := range r.alive {
		p.kill()
	}
	r.alive = nil
	r.down()
}

// A second guest neither disturbs the first one nor is heard beside it.
func testSecond(t *testing.T, k Kind) {
	r := newRig(t, k)
	first := r.guest()
	second, err := k.Start(r.path)
	if err != nil && k.SecondServed {
		t.Fatal(err)
	}
	sending := make(chan struct{})
	if err == nil {
		defer second.Kill()
		go func() {
			defer close(sending)
			_ = second.Send(numbered(99, 99))
		}()
	} else {
		close(sending)
	}
	for i := range 20 {
		r.exchange(first, 2*i)
		time.Sleep(moment / 20)
	}
	if s := r.link.Status(); s.Connects != 1 {
		t.Errorf("status %+v", s)
	}
	first.kill()
	if !k.SecondServed {
		r.down()
		if err == nil {
			second.Kill()
		}
		<-sending
		r.reach(r.start())
		return
	}
	within(t, "the second guest's Send", func() { <-sending })
	p := &peer{Guest: second, t: t, buf: make([]byte, link.MaxFrame)}
	r.status("second guest up", func(s link.Status) bool {
		if s.Connects == 1 {
			p.send(numbered(99, 99))
		}
		return s.Connects == 2 && s.Up
	})
	mark := numbered(3, 60)
	p.send(mark)
	for f := r.next(); len(f) != len(mark); f = r.next() {
		same(t, f, numbered(99, 99))
	}
	r.exchange(p, 5)
}

// A gateway that starts anew takes the place of the one that was.
func testGateway(t *testing.T, k Kind) {
	r := newRig(t, k)
	p := r.guest()
	for range 5 {
		if err := r.link.Close(); err != nil {
			t.Fatal(err)
		}
		within(t, "Read", func() {
			for range r.frames {
			}
		})
		if s := r.link.Status(); s.Up {
			t.Errorf("after Close: %+v", s)
		}
		if !k.Outlives {
			p.kill()
		}
		r.open()
		if !k.Outlives {
			p = r.start()
		}
		r.reach(p)
		if s := r.link.Status(); s.Connects != 1 {
			t.Errorf("status %+v", s)
		}
	}
}

// Close from elsewhere ends a Read and a Write that wait.
func testCloseWakes(t *testing.T, k Kind) {
	r := newRig(t, k)
	r.guest()
	_, done := r.flood()
	within(t, "Close", func() {
		if err := r.link.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	r.stop() // which looks at Read
	if err := ended(t, done); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write: %v", err)
	}
}

func testCloseAgain(t *testing.T, k Kind) {
	r := newRig(t, k)
	r.guest()
	l := r.link
	r.stop()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Errorf("Close again: %v", err)
		}
	}
	bufs, sizes := buffers(l.BatchSize())
	within(t, "Read after Close", func() {
		if n, err := l.Read(bufs, sizes); n != 0 || !errors.Is(err, os.ErrClosed) {
			t.Errorf("Read after Close: %d, %v", n, err)
		}
	})
	within(t, "Write after Close", func() {
		if err := l.Write([][]byte{numbered(1, 60)}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Write after Close: %v", err)
		}
	})
	if s := l.Status(); s.Up || s.Connects != 1 {
		t.Errorf("status after Close: %+v", s)
	}
}

func testCloseAlone(t *testing.T, k Kind) {
	r := newRig(t, k)
	time.Sleep(moment) // Read waits for a guest
	r.stop()
}

func testStatusAtOnce(t *testing.T, k Kind) {
	r := newRig(t, k)
	r.guest()
	_, done := r.flood()
	within(t, "Status", func() {
		for range 1000 {
			if s := r.link.Status(); !s.Up {
				t.Errorf("status %+v", s)
				break
			}
		}
	})
	r.stop()
	_ = ended(t, done)
}
