package tunnel

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// refusedEvery is the shortest time between two log lines about strangers: 8,640 lines
// a day at most. Between two of the same about the same host it doubles up to
// refusedMost: a gateway of another version, or with another key, calls for as long as
// it is not mended.
const (
	refusedEvery = 10 * time.Second
	refusedMost  = time.Hour
)

// refused counts the calls that were turned away, and logs few enough of them
// that nobody can fill a disk by calling.
type refused struct {
	log *slog.Logger

	mu     sync.Mutex
	total  uint64
	silent uint64 // since the last line
	last   time.Time
	what   string        // it said
	every  time.Duration // from it to the next of the same
}

func (r *refused) note(from net.Addr, err error) {
	addr, host := "unknown", ""
	if from != nil {
		addr = from.String()
		host, _, _ = net.SplitHostPort(addr)
	}
	what := host + " " + err.Error()
	r.mu.Lock()
	r.total++
	wait, next := refusedEvery, refusedEvery
	if what == r.what {
		wait, next = r.every, min(2*r.every, refusedMost)
	}
	silent, since := r.silent, time.Since(r.last)
	due := r.last.IsZero() || since >= wait
	if due {
		r.silent, r.last, r.what, r.every = 0, time.Now(), what, next
	} else {
		r.silent++
	}
	r.mu.Unlock()
	if due {
		r.log.Warn("call refused", "from", addr, "err", err, "more_since_last", silent)
	}
}

func (r *refused) count() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.total
}
