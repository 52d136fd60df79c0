package pcap

import "time"

// A Clock turns the timestamps of a capture into the times at which a replay
// sends its packets. Its zero value is ready for use.
//
// Captures go back in time: several interfaces or receive queues are merged, or
// the machine's clock was set. A replay cannot, so a packet whose time lies
// before that of an earlier one is due together with it.
type Clock struct {
	first time.Time
	due   time.Duration
}

// At returns how long after the first packet the packet with capture time t is
// due. The result never decreases from call to call. A zero t, of a record
// without a time, is due together with the packet before it.
func (c *Clock) At(t time.Time) time.Duration {
	switch {
	case t.IsZero():
		return c.due
	case c.first.IsZero():
		c.first = t
	}
	c.due = max(c.due, t.Sub(c.first))
	return c.due
}
