package tunnel

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff spaces attempts: from min, doubling up to max, each with up to a
// quarter taken off at random, so that gateways that lost the same network do not come
// back in step.
type backoff struct {
	min, max time.Duration
	last     time.Duration
}

// next returns how long to wait before the next attempt.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.min), b.max)
	return b.last - rand.N(b.last/4+1)
}

func (b *backoff) reset() { b.last = 0 }

// wait waits for the next attempt, or until ctx ends or early is closed.
func (b *backoff) wait(ctx context.Context, early <-chan struct{}) {
	timer := time.NewTimer(b.next())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-early:
	case <-ctx.Done():
	}
}

// Lanes that end at once must not follow one another as fast as the network can
// carry their openings, and lanes on which the ends do not understand each other need
// not follow soon: they will until one of the two is another program. Chosen, not
// measured: a lane each 2 s is as many as stalls can end; one each 30 s costs about as
// much as the signs of life of an idle connection.
const (
	paceGood = 5 * time.Second // a lane that lived this long starts anew
	paceMin  = 50 * time.Millisecond
	paceMax  = 2 * time.Second

	declineMin = time.Second
	declineMax = 30 * time.Second
)

// pacer spaces the lanes of one class. The first two follow at once.
type pacer struct {
	last     time.Time
	delay    time.Duration
	declined bool          // the last lane was
	pause    time.Duration // after it, if so
}

// ready returns when the next lane may start.
func (p *pacer) ready() time.Time { return p.last.Add(max(p.delay, p.pause)) }

// started notes that a lane starts.
func (p *pacer) started(now time.Time) {
	if p.last.IsZero() || now.Sub(p.last) >= paceGood {
		p.delay = 0
	} else {
		p.delay = min(max(2*p.delay, paceMin), paceMax)
	}
	if !p.declined {
		p.pause = 0
	}
	p.last, p.declined = now, false
}

// decline notes that the last lane was declined.
func (p *pacer) decline() {
	p.declined = true
	p.pause = min(max(2*p.pause, declineMin), declineMax)
}

// hurry forgets what was declined: the other end may be another one now.
func (p *pacer) hurry() { p.declined, p.pause = false, 0 }
