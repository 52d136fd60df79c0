package tunnel

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
)

// A way is a path in a test: it acknowledges what is sent after a round trip,
// unless it is cut.
type way struct {
	trip time.Duration
	ctx  context.Context

	mu             sync.Mutex
	cut, blocked   bool // blocked: streams take no more, and nothing of them is sent
	sent, received uint64
	datagrams      int
}

func (w *way) ConnectionStats() quic.ConnectionStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return quic.ConnectionStats{SmoothedRTT: w.trip, PacketsSent: w.sent, PacketsReceived: w.received}
}

func (w *way) Context() context.Context { return w.ctx }

func (w *way) SendDatagram([]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.datagrams++
	w.send()
	return nil
}

func (w *way) send() {
	w.sent++
	if w.cut {
		return
	}
	time.AfterFunc(w.trip, w.get)
}

// get is a packet that comes.
func (w *way) get() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.cut {
		w.received++
	}
}

func (w *way) set(cut, blocked bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut, w.blocked = cut, blocked
}

// asked returns how many datagrams were sent.
func (w *way) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.datagrams
}

// A patient is a pulse on a way, and what it said when.
type patient struct {
	*pulse
	way  *way
	said chan verdict
}

// feel runs f beside a pulse on a way of that round trip.
func feel(t *testing.T, trip time.Duration, f func(p *patient)) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &way{trip: trip, ctx: ctx}
		p := &patient{newPulse(w), w, make(chan verdict, 16)}
		var felt sync.WaitGroup
		felt.Go(func() { p.pulse.feel(func(v verdict) { p.said <- v }) })
		f(p)
		cancel()
		felt.Wait()
	})
}

// write sends something over a lane.
func (p *patient) write() {
	p.sends()
	p.way.mu.Lock()
	defer p.way.mu.Unlock()
	if !p.way.blocked {
		p.way.send()
	}
}

// read gets something over a lane.
func (p *patient) read() {
	p.way.get()
	p.reads()
}

// wants expects a verdict within a time, and returns how long it took.
func (p *patient) wants(t *testing.T, want verdict, within time.Duration) time.Duration {
	t.Helper()
	begin := time.Now()
	select {
	case v := <-p.said:
		if v != want {
			t.Errorf("verdict %d, not %d", v, want)
		}
	case <-time.After(within):
		t.Errorf("no verdict %d within %v", want, within)
	}
	return time.Since(begin)
}

// quiet expects no verdict for a time.
func (p *patient) quiet(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case v := <-p.said:
		t.Errorf("verdict %d", v)
	case <-time.After(d):
	}
}

// What is written into a path that is cut makes it doubted, then lost.
func TestPulseOfUnansweredWrite(t *testing.T) {
	feel(t, 20*time.Millisecond, func(p *patient) {
		p.write()
		p.quiet(t, time.Hour)
		p.way.set(true, false)
		p.write()
		p.quiet(t, doubtAfter-pulseBeat)
		p.wants(t, doubted, 2*pulseBeat)
		p.wants(t, lost, loseAfter)
		p.quiet(t, time.Hour)
	})
}

// What goes on being written does not put off the doubt.
func TestPulseOfManyUnansweredWrites(t *testing.T) {
	feel(t, 20*time.Millisecond, func(p *patient) {
		p.way.set(true, false)
		var writes sync.WaitGroup
		writes.Go(func() {
			for range 20 {
				p.write()
				time.Sleep(100 * time.Millisecond)
			}
		})
		p.wants(t, doubted, doubtAfter+pulseBeat)
		writes.Wait()
	})
}

// A path that comes back is trusted again.
func TestPulseThatReturns(t *testing.T) {
	feel(t, 20*time.Millisecond, func(p *patient) {
		p.way.set(true, false)
		p.write()
		p.wants(t, doubted, 2*time.Second)
		p.way.set(false, false)
		p.write()
		p.wants(t, alive, 2*pulseBeat)
		p.quiet(t, time.Hour)
	})
}

// An answer takes its time on a long path.
func TestPulseOfLongPath(t *testing.T) {
	feel(t, 900*time.Millisecond, func(p *patient) {
		p.write()
		p.quiet(t, time.Minute)
		p.way.set(true, false)
		p.write()
		p.quiet(t, doubtTrips*900*time.Millisecond-pulseBeat)
		p.wants(t, doubted, 2*pulseBeat)
	})
}

// A peer that takes no more is not one that is silent.
func TestPulseOfBlockedLane(t *testing.T) {
	feel(t, 20*time.Millisecond, func(p *patient) {
		p.way.set(false, true)
		for range 100 {
			p.write()
			p.quiet(t, 300*time.Millisecond)
		}
	})
}

// What came regularly and comes no more is asked about once; where it only paused,
// that is all.
func TestPulseOfBrokenRhythm(t *testing.T) {
	for _, every := range []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 10 * time.Second} {
		feel(t, 20*time.Millisecond, func(p *patient) {
			for range 200 {
				time.Sleep(every)
				p.read()
			}
			if p.way.asked() != 0 {
				t.Errorf("every %v: asked %d times while all was well", every, p.way.asked())
			}
			p.quiet(t, time.Hour)
			if p.way.asked() != 1 {
				t.Errorf("every %v: asked %d times in a pause", every, p.way.asked())
			}
			for range 200 {
				time.Sleep(every)
				p.read()
			}
			p.way.set(true, false)
			// From the next that would have come it is less than 3 s.
			if took := p.wants(t, doubted, time.Minute); took > max(every, rhythmMin)+every/10+2*time.Second {
				t.Errorf("every %v: doubted after %v", every, took)
			}
		})
	}
}

// What comes without a rhythm costs few questions.
func TestPulseWithoutRhythm(t *testing.T) {
	feel(t, 20*time.Millisecond, func(p *patient) {
		const bursts = 1000
		gap := time.Second
		for range bursts { // bursts of 5, from 0.1 to 12 s apart in no order
			gap = gap * 7919 % (12 * time.Second)
			time.Sleep(100*time.Millisecond + gap)
			for range 5 {
				p.read()
				time.Sleep(10 * time.Millisecond)
			}
		}
		if p.way.asked() > bursts/20 {
			t.Errorf("asked %d times in %d bursts", p.way.asked(), bursts)
		}
	})
}

// The carrier's own sign of life that goes unanswered makes a path asked.
func TestPulseOfIdleLink(t *testing.T) {
	feel(t, 20*time.Millisecond, func(p *patient) {
		alive := func(n int) {
			for range n {
				time.Sleep(15 * time.Second)
				p.way.mu.Lock()
				p.way.send()
				p.way.mu.Unlock()
			}
		}
		alive(100)
		p.quiet(t, time.Minute)
		if p.way.asked() != 0 {
			t.Errorf("an idle link was asked %d times", p.way.asked())
		}
		p.way.set(true, false)
		alive(1)
		for range 3 { // which QUIC repeats (RFC 9002 section 6.2)
			time.Sleep(200 * time.Millisecond)
			p.way.mu.Lock()
			p.way.send()
			p.way.mu.Unlock()
		}
		p.wants(t, doubted, pulseIdle+2*doubtAfter)
	})
}
