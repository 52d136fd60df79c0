package engine

import (
	"errors"
	"sync"
	"time"

	"sheaf/tunnel"
)

const (
	// fillsPacket is how many bytes that are written at once fill a carrier packet,
	// whatever its size: quic-go's largest one has 1,452 bytes.
	fillsPacket = 1500
	// pathRest is how long after a connection was left one stall is not enough to
	// suspect the next one. Chosen, not measured: a link that is too slow for its
	// frames then costs a new connection every ten minutes at most.
	pathRest = 10 * time.Minute
)

// A blackHole is what the lanes of one peer find out together about the size of packets
// that the way to it takes. Where it becomes narrower without a word (a black
// hole, RFC 8899 section 4.3), full packets vanish for good, however often they are sent
// again, and small ones pass. Its zero value knows of none.
//
// A lane that stalls while no lane gets a full packet through may be such a case. The
// tunnel looks whether the connection answers all the same, and leaves it for another
// one, whose packets are small. A link that is too slow for a frame looks alike: soon
// after a connection was left, it takes two stalls in a row, with no full packet in
// between, to suspect the next one.
type blackHole struct {
	mu      sync.Mutex
	passed  time.Duration           // when a full packet last came through
	stalled [tunnel.NumClasses]bool // since then
	left    time.Duration           // when a connection was last left; 0 for never
}

// fits notes that a full packet came through.
func (p *blackHole) fits(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed, p.stalled = now, [tunnel.NumClasses]bool{}
}

// stall notes that a lane has stalled that got nothing through since a time, and
// reports whether the path may be the reason.
func (p *blackHole) stall(class tunnel.Class, since, now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	again := p.stalled[class]
	p.stalled[class] = true
	return p.passed < since && (again || p.left == 0 || now-p.left >= pathRest)
}

// leave notes that a connection was left because of the path.
func (p *blackHole) leave(now time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.stalled = now, [tunnel.NumClasses]bool{}
}

// askHost asks the host about the path, once when nothing got through for a quarter of
// a stall. It returns when to do so, or ErrPath.
func (e *epoch) askHost(now time.Duration) (wait time.Duration, err error) {
	if e.asked == e.pending {
		return time.Hour, nil
	}
	if wait = e.pending + e.runner.stall/4 - now; wait > 0 {
		return wait, nil
	}
	if e.asked = e.pending; e.stream.Narrowed() {
		return 0, ErrPath
	}
	return time.Hour, nil
}

// noteEnd takes note of what the end of the epoch, which either end may have noticed
// first, says of the path.
func (e *epoch) noteEnd(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l, now := e.runner, e.runner.clock()
	switch {
	case errors.Is(err, ErrPath):
		e.stream.Suspect() // and the host will be asked again
	case errors.Is(err, tunnel.ReasonPath):
		l.blackHole.leave(now)
	case !errors.Is(err, tunnel.ReasonStalled) || e.pending == 0 || now-e.pending < l.stall/2:
	case l.blackHole.stall(l.class, e.pending, now):
		e.stream.Suspect()
	}
}
