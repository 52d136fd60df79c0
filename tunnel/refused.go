package tunnel

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// refusedEvery is the shortest time between two log lines about strangers.
const refusedEvery = 10 * time.Second

// refused counts the calls that were turned away, and logs few enough of them
// that nobody can fill a disk by calling.
type refused struct {
	log *slog.Logger

	mu     sync.Mutex
	total  uint64
	silent uint64 // since the last line
	last   time.Time
}

func (r *refused) note(from net.Addr, err error) {
	r.mu.Lock()
	r.total++
	silent := r.silent
	due := r.last.IsZero() || time.Since(r.last) >= refusedEvery
	if due {
		r.silent, r.last = 0, time.Now()
	} else {
		r.silent++
	}
	r.mu.Unlock()
	if due {
		addr := "unknown"
		if from != nil {
			addr = from.String()
		}
		r.log.Warn("call refused", "from", addr, "err", err, "more_since_last", silent)
	}
}

func (r *refused) count() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}
