package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/engine/wire"
	"sheaf/tunnel"
)

// A health says how a lane is, by what its epochs did: a connection on which the
// two ends do not understand each other, or on which nothing gets through, leads
// nowhere. Its zero value is the health of a lane that never had an epoch. Times
// are the gateway's clock.
type health struct {
	down atomic.Int64 // since when no epoch runs, or running

	mu    sync.Mutex
	began time.Duration // when the last epoch began
	short int           // epochs in a row that did not last
	fails int           // attempts in a row at the next one that failed
	ended error         // why the last epoch or attempt ended
}

// running is in place of the time since when no epoch runs.
const running = -1

const (
	// steady is how long an epoch must last for the ones before it to be forgotten.
	// Chosen, not measured: five times the default stall, so that a lane on which
	// nothing gets through never seems to hold.
	steady = 10 * time.Second
	// flaps is how many epochs in a row that do not last make a lane that does not
	// hold. One may be a peer that restarts, two a peer that is restarted twice.
	flaps = 3
)

// errNoEpoch is what is wrong with a lane that never had an epoch.
var errNoEpoch = errors.New("no epoch has begun yet")

// begin notes that an epoch begins.
func (h *health) begin(now time.Duration) {
	h.mu.Lock()
	h.began, h.fails = now, 0
	h.mu.Unlock()
	h.down.Store(running)
}

// end notes why an epoch ended, or did not begin, and returns how many in a row
// went the same way.
func (h *health) end(now time.Duration, why error) (again int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = why
	if !h.isRunning() {
		h.fails++
		return h.fails
	}
	if now-h.began >= steady {
		h.short = 0
	}
	h.short++
	h.down.Store(int64(now))
	return h.short
}

// isRunning reports whether there is an epoch.
func (h *health) isRunning() bool { return h.down.Load() == running }

// away returns for how long there has been no epoch; 0 while there is one.
func (h *health) away(now time.Duration) time.Duration {
	if since := h.down.Load(); since != running {
		return now - time.Duration(since)
	}
	return 0
}

// fault returns what is wrong with the lane now, or nil: no epoch runs, or one
// that has not lasted longer than the ones before it.
func (h *health) fault(now time.Duration) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.isRunning() && h.ended == nil:
		return errNoEpoch
	case !h.isRunning():
		return h.ended
	case h.short >= flaps && now-h.began < steady:
		return fmt.Errorf("%d epochs in a row did not last for %v: %w", h.short, steady, h.ended)
	}
	return nil
}

// last returns why the last epoch ended, or nil.
func (h *health) last() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// tell logs why an epoch ended, or did not begin: what does not go away by itself
// once, when it is clear that it does not.
func (l *laneRunner) tell(why error, again int) {
	level, what := slog.LevelInfo, "epoch ended"
	switch {
	case isMismatch(why):
		level, what = slog.LevelDebug, "the peer is not understood"
		if l.mismatch.news(why) {
			level = slog.LevelWarn
		}
	case again == flaps:
		level, what = slog.LevelWarn, "lane does not hold"
	case again > flaps:
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, what, "peer", l.peer, "lane", l.class, "why", why)
}

// frameReason says what the peer is to be told of its frame that was not taken.
func frameReason(err error) tunnel.Reason {
	switch {
	case errors.Is(err, aggregate.ErrDigest):
		return tunnel.ReasonCorrupt
	case errors.Is(err, aggregate.ErrLimit):
		return tunnel.ReasonLimit
	}
	return tunnel.ReasonMalformed
}

// A Cause is the kind of a fault, for programs that want to mend it.
type Cause string

// What keeps a peer from being up. "" is what is none of these.
const (
	CauseOlder    Cause = "older here"  // this program is of an older version than the peer's
	CauseNewer    Cause = "older there" // the peer's is
	CauseVersion  Cause = "version"     // the two are, most likely, and it is not known which is older
	CauseKey      Cause = "key"         // another gateway answers
	CauseRefused  Cause = "refused"     // the peer does not know this gateway
	CauseProtocol Cause = "protocol"    // what answers is no gateway, or of another version
	CauseLimit    Cause = "limit"       // one asks the other for more than it may
	CauseClosed   Cause = "closed"      // no gateway listens there
	CauseRoute    Cause = "route"       // there is no way to the host
)

// CauseOf returns the kind of an error of the tunnel's or of [Handshake].
func CauseOf(err error) Cause {
	if e, ok := errors.AsType[*wire.VersionError](err); ok {
		if e.Here.Max < e.There.Min {
			return CauseOlder
		}
		return CauseNewer
	}
	for _, kind := range []struct {
		err   error
		cause Cause
	}{
		{tunnel.ReasonVersion, CauseVersion},
		{tunnel.ErrWrongKey, CauseKey},
		{tunnel.ErrRefused, CauseRefused},
		{tunnel.ErrProtocol, CauseProtocol},
		{tunnel.ReasonLimit, CauseLimit},
		{wire.ErrHello, CauseProtocol},
		{ErrNoHello, CauseVersion},
		{syscall.ECONNREFUSED, CauseClosed},
		{syscall.ENETUNREACH, CauseRoute},
		{syscall.EHOSTUNREACH, CauseRoute},
	} {
		if errors.Is(err, kind.err) {
			return kind.cause
		}
	}
	return ""
}
