package tunnel

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

const (
	// pulseBeat is how often a connection is looked at from which an answer is
	// expected: twice within askAfter.
	pulseBeat = 250 * time.Millisecond
	// pulseIdle is how often one is looked at from which none is: whether the carrier's
	// own sign of life went unanswered.
	pulseIdle = 5 * time.Second
	// Without an answer for so long, or for so many round trips if they take longer, a
	// connection is asked for one, then doubted, then lost. A doubt costs a call beside
	// the connection, a loss the epochs of its lanes, so the one is early and the other
	// late. Chosen, not measured.
	askAfter, askTrips     = 500 * time.Millisecond, 2
	doubtAfter, doubtTrips = time.Second, 4
	loseAfter, loseTrips   = 3 * time.Second, 12
)

// A probed is what a pulse counts the packets of and asks for a sign of life: a
// *[quic.Conn], or a stream over TCP.
type probed interface {
	ConnectionStats() quic.ConnectionStats
	SendDatagram([]byte) error // acknowledged, and not repeated (RFC 9221)
	Context() context.Context
}

// A pulse tells the end that can call anew whether the other one is still heard.
//
// QUIC by itself finds out at its idle timeout. Here a packet that has to be
// acknowledged and is not makes a connection doubted after a second, long before
// that. An end with nothing to send has nothing that could go unacknowledged, while
// the other one, which cannot call, may be writing in vain. So silence means
// something where more was due: the end that can call notes in what rhythm data
// comes, and asks once when it stops. Where nothing regular comes, and on an idle
// link, nothing is asked and nothing is spent.
type pulse struct {
	conn      probed
	wake      chan struct{} // capacity 1
	expecting atomic.Bool   // an answer, to what was sent when mark was stored
	mark      atomic.Uint64 // packets received by then
	mu        sync.Mutex    // of rhythm
	rhythm    rhythm
}

func newPulse(p probed) *pulse { return &pulse{conn: p, wake: make(chan struct{}, 1)} }

// sends is called before something is sent that has to be acknowledged.
func (u *pulse) sends() {
	u.mark.Store(u.conn.ConnectionStats().PacketsReceived)
	if !u.expecting.Swap(true) {
		select {
		case u.wake <- struct{}{}:
		default:
		}
	}
}

// reads is called when data came.
func (u *pulse) reads() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rhythm.heard(time.Now())
}

// A verdict is what a pulse says of its connection.
type verdict uint8

const (
	alive   verdict = iota
	doubted         // silent; it may come back
	lost            // to be given up
)

// feel tells what becomes of the connection, each change once, until it is over or
// lost.
func (u *pulse) feel(tell func(verdict)) {
	var asked time.Time // when the rhythm was last checked
	before := u.conn.ConnectionStats()
	for {
		wait := pulseIdle
		due := u.due()
		if due.After(asked) {
			wait = min(wait, time.Until(due))
		}
		timer := time.NewTimer(wait)
		select {
		case <-u.wake:
		case <-timer.C:
		case <-u.conn.Context().Done():
			timer.Stop()
			return
		}
		timer.Stop()
		now, due := time.Now(), u.due()
		stats := u.conn.ConnectionStats()
		unanswered := stats.PacketsReceived == before.PacketsReceived && stats.PacketsSent >= before.PacketsSent+3
		if overdue := due.After(asked) && !due.After(now); overdue || unanswered {
			asked = now
			u.ask()
		}
		if u.expecting.Load() && !u.await(tell) {
			return
		}
		before = u.conn.ConnectionStats()
	}
}

// due returns when the rhythm says that more should have come.
func (u *pulse) due() time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.rhythm.due()
}

// question makes a packet that is long enough for an end that has forgotten the
// connection, in a restart, to say so: shorter ones get no stateless reset (RFC 9000
// section 10.3), and few packets of acknowledgements are longer.
var question [24]byte

// ask sends what only an end that is there acknowledges.
func (u *pulse) ask() {
	u.sends()
	_ = u.conn.SendDatagram(question[:]) // fails when the connection is over, which its end tells
}

// await watches until something is heard behind the last that was sent. It reports
// false when the connection is over. Time is counted in beats: a process that stood
// still has not read what came meanwhile.
func (u *pulse) await(tell func(verdict)) bool {
	beat := time.NewTicker(pulseBeat)
	defer beat.Stop()
	var silent time.Duration
	said, asked := alive, false
	heard := u.mark.Load()
	for {
		select {
		case <-beat.C:
		case <-u.conn.Context().Done():
			return false
		}
		stats := u.conn.ConnectionStats()
		if stats.PacketsReceived != heard {
			heard, silent, asked = stats.PacketsReceived, 0, false
			if said != alive {
				said = alive
				tell(said)
			}
		}
		u.expecting.Store(false)
		if stats.PacketsReceived > u.mark.Load() {
			return true
		}
		u.expecting.Store(true)
		rtt := stats.SmoothedRTT
		switch silent += pulseBeat; {
		case silent >= max(loseAfter, loseTrips*rtt):
			tell(lost)
			return false
		case silent >= max(doubtAfter, doubtTrips*rtt):
			if said != doubted {
				said = doubted
				tell(said)
			}
		case silent >= max(askAfter, askTrips*rtt) && !asked:
			// What was sent may never have left, as when the other end takes no
			// more: this one does.
			asked = true
			u.ask()
		}
	}
}

const (
	// rhythmMin is the shortest silence that is out of rhythm. What comes within
	// rhythmBurst comes at once.
	rhythmMin, rhythmBurst = time.Second, 250 * time.Millisecond
	// rhythmMax is the longest gap that is told from longer ones: by then the
	// carrier has given a sign of life.
	rhythmMax = 15 * time.Second
)

// A rhythm is how often something comes, as TCP estimates round trips (RFC 6298
// section 2): the mean gap, and how far gaps are from it.
type rhythm struct {
	last      time.Time
	mean, dev time.Duration // 0 before the first gap
}

// heard notes that something came.
func (r *rhythm) heard(now time.Time) {
	gap := min(now.Sub(r.last), rhythmMax)
	switch {
	case r.last.IsZero():
	case gap < rhythmBurst:
		return
	case r.mean == 0:
		r.mean, r.dev = gap, gap/2
	default:
		r.dev += ((gap - r.mean).Abs() - r.dev) / 4
		r.mean += (gap - r.mean) / 8
	}
	r.last = now
}

// due returns when more should have come, or zero before there is a rhythm.
func (r *rhythm) due() time.Time {
	if r.mean == 0 {
		return time.Time{}
	}
	return r.last.Add(max(rhythmMin, r.mean+4*r.dev))
}
