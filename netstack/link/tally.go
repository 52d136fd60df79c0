package link

import (
	"sync"
	"sync/atomic"
	"time"
)

// A tally is what a Link tells of itself. The zero value is that of one whose first
// guest is yet to come. Its methods may be called at the same time.
type tally struct {
	received, sent, dropped, invalid atomic.Uint64

	mu     sync.Mutex // guards the rest
	status Status     // without the counters above
}

// up notes that a guest is there.
func (t *tally) up() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status.Up, t.status.Since, t.status.Fault = true, time.Now(), ""
	t.status.Connects++
}

// down notes that the guest has gone, and its fault where it was given up for one.
func (t *tally) down(fault string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.status.Up {
		t.status.Up, t.status.Since = false, time.Now()
	}
	if fault != "" {
		t.status.Fault = fault
	}
}

// Status is that of the Link.
func (t *tally) Status() Status {
	t.mu.Lock()
	s := t.status
	t.mu.Unlock()
	s.Received, s.Sent = t.received.Load(), t.sent.Load()
	s.Dropped, s.Invalid = t.dropped.Load(), t.invalid.Load()
	return s
}
