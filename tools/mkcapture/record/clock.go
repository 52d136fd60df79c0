package record

import (
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/faketime"
)

// perPacket is how long a packet takes on the cable and in its hosts: about what
// lies between two copies that mosquitto writes on a machine of today.
const perPacket = 10 * time.Microsecond

// A clock is the time of the two stacks and of the capture. It moves with each
// packet, and where a workload says so; while the machine works, it stands still.
type clock struct {
	*faketime.ManualClock
	ahead atomic.Int64 // of the manual clock: what packets took
}

// newClock returns a clock that shows the beginning of a year, so that captures
// and times in messages look as they do.
func newClock() *clock {
	c := &clock{ManualClock: faketime.NewManualClock()}
	c.until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	return c
}

// Now implements tcpip.Clock.
func (c *clock) Now() time.Time {
	return c.ManualClock.Now().Add(time.Duration(c.ahead.Load()))
}

// NowMonotonic implements tcpip.Clock.
func (c *clock) NowMonotonic() tcpip.MonotonicTime {
	return c.ManualClock.NowMonotonic().Add(time.Duration(c.ahead.Load()))
}

// tick moves the clock by what a packet takes, and returns the time after it. No
// timer goes off: whoever sends a packet may hold what the timers want.
func (c *clock) tick() time.Time {
	c.ahead.Add(int64(perPacket))
	return c.Now()
}

// until moves the clock to a time, unless that is past; timers go off on the way.
func (c *clock) until(at time.Time) {
	if d := at.Sub(c.Now()); d > 0 {
		c.Advance(d)
	}
}
