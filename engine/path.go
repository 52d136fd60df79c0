package engine

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"sheaf/tunnel"
)

const (
	// fillsPacket is how many bytes that are written at once fill a carrier packet,
	// whatever its size: the largest one has 1,452 bytes.
	fillsPacket = 1500
	// pathRest is how long after a connection was left one stall is not enough to
	// leave the next one.
	pathRest = 10 * time.Minute
)

// A path is what the lanes of one peer find out together about the way to it. Where
// it becomes narrower without a word, full packets vanish for good, however often
// they are sent again, and small ones pass.
//
// A lane that stalls while no lane gets a full packet through is taken for that. If
// the connection answers all the same, the tunnel leaves it for another one, whose
// packets are small (tunnel.ReasonPath). A link that is too slow for a frame looks
// alike: soon after a connection was left, it takes two stalls in a row, with no full
// packet in between, to leave the next one.
type path struct {
	mu      sync.Mutex
	passed  time.Duration           // when a full packet last came through
	stalled [tunnel.NumClasses]bool // since then
	left    time.Duration           // when a connection was last left; 0 for never
}

// fits notes that a full packet came through.
func (p *path) fits(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed, p.stalled = now, [tunnel.NumClasses]bool{}
}

// stall notes that a lane has stalled that got nothing through since a time, and
// reports whether its connection should be left.
func (p *path) stall(class tunnel.Class, since, now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := p.stalled[class]
	p.stalled[class] = true
	if p.passed >= since || !again && p.left != 0 && now-p.left < pathRest {
		return false
	}
	p.left, p.stalled = now, [tunnel.NumClasses]bool{}
	return true
}

// askHost asks the host about the path, once when nothing got through for a quarter of
// a stall. It returns when to do so, or ErrPath.
func (e *epoch) askHost(now time.Duration) (wait time.Duration, err error) {
	if e.asked == e.pending {
		return time.Hour, nil
	}
	if wait = e.pending + e.link.stall/4 - now; wait > 0 {
		return wait, nil
	}
	if e.asked = e.pending; e.stream.Narrowed() {
		return 0, ErrPath
	}
	return time.Hour, nil
}

// judge returns the error with which the epoch is over that ended with err. The end
// that notices a stall tells the other one, but its next lane may come before word of
// it.
func (e *epoch) judge(err error) error {
	if !errors.Is(err, tunnel.ReasonStalled) && !errors.Is(err, tunnel.ReasonSuperseded) {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l, now := e.link, e.link.clock()
	if e.pending == 0 || now-e.pending < l.stall/2 || !l.path.stall(l.class, e.pending, now) {
		return err
	}
	return fmt.Errorf("%w: %w", tunnel.ReasonPath, err)
}
