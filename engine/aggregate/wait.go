package aggregate

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers"
)

// wait works out how long the frame may wait now.
func (m *Merger) wait(now time.Duration, src *source, pg *pendingGroup, g *group, flags uint8) {
	p := &m.pending
	class := parsers.ClassData
	switch {
	case flags&(flagSYN|flagFIN|flagRST) != 0:
		class = parsers.ClassUrgent
	case g.kind.tcp() && len(g.spans) == 0:
		// A flow that acknowledges often, or whole segments, is filling its
		// window: its sender waits for these.
		ack := seqnum.Value(m.seg.Ack)
		full := src.told != 0 && src.told.Add(fullAck).LessThanEq(ack)
		src.told = ack
		if src.acks++; src.acks < busyAcks && !full {
			class = parsers.ClassAck
		}
	case g.kind == kindIP4 && src.key.Proto == protoICMP, g.kind == kindIP6 && src.key.Proto == protoICMPv6:
		class = parsers.ClassUrgent
	case len(g.spans) > 0:
		class = parsers.ClassAck
		for i := range g.spans {
			if g.spans[i].class == parsers.ClassUrgent {
				class = parsers.ClassUrgent
				break
			}
			if g.spans[i].class == parsers.ClassData {
				class = parsers.ClassData
			}
		}
		if class == parsers.ClassAck {
			// The same holds for messages that acknowledge: a publisher may have
			// one message under way at a time.
			busy := src.acked != 0 && now-src.acked < thinAcks*m.cfg.AckWait
			src.acked = now
			if src.acks++; busy || src.acks >= busyAcks {
				class = parsers.ClassData
			}
		}
	}
	if len(g.members) == 1 && class != parsers.ClassUrgent {
		pg.expect = m.writer.expect(g)
	}
	complete := pg.expect >= setMinimum && len(g.members) >= pg.expect
	half := pg.expect >= setMinimum && len(g.members) >= pg.expect/2
	switch class {
	case parsers.ClassUrgent:
		if !p.urgent {
			p.urgent, p.urgentAt = true, now
		}
	case parsers.ClassAck:
		if !p.acks {
			p.acks, p.firstAck = true, now
		}
		p.acked = p.acked || complete
		p.halfAcked = p.halfAcked || half
	default:
		m.startData(now)
		if len(g.spans) == 0 {
			return
		}
		if now-m.loneAt < m.cfg.Window {
			m.alone = 0 // it would have had company
		}
		// A segment like no other waits for company in the carrier's packet only. It
		// goes along when the others go.
		switch n := len(g.members); {
		case n == 1 && pg.expect >= setMinimum:
			p.waiting++
		case n == 1:
			p.lone++
		case n == 2 && pg.expect < setMinimum:
			p.lone--
			p.waiting++
			if pg.expect == 0 {
				p.bursts++
			}
		}
		if complete && !pg.complete {
			pg.complete = true
			p.complete++
		}
		if half && !pg.half {
			pg.half = true
			p.half++
		}
	}
}

const (
	// busyAcks is how many acknowledgements of one flow wait in one frame
	// before the flow counts as busy.
	busyAcks = 4
	// fullAck is how many bytes an acknowledgement is for, at least, where a
	// receiver acknowledges every second full-sized segment (RFC 9293 section
	// 3.8.6.3), whatever the path's MTU.
	fullAck = 2 * 1200
	// halfQuiet is how many times Quiet end the wait for the rest of a known set
	// of which half has come. Where one host delays its acknowledgement, those of
	// the others are not to wait for it: a broker with Nagle on holds its next
	// message for them, and then other copies come late, too.
	halfQuiet = 2
	// aloneAfter is how many segments like no other have to have waited for company
	// in vain, one after the other, for the next one not to wait for a window. The
	// first that has one again within a window ends that.
	aloneAfter = 8
	// thinAcks is how many times AckWait lie between the acknowledging messages
	// of a flow that is not busy.
	thinAcks = 4

	protoICMP   = 1
	protoICMPv6 = 58
)

// slow works out when the next frame may be written for urgency, after one at
// now. The first urgent segment after a pause goes at once. Where the segments of
// this frame had to wait, a burst is going on, a hundred clients that connect,
// say: then twice as many share the next frame, until frames are half a window
// apart, since each costs the carrier more than most connects do. So the mean
// wait in a burst is a quarter of the window, and nothing waits elsewhere.
func (m *Merger) slow(now time.Duration) {
	next := m.cfg.Pace
	if m.pending.urgentAt < m.paced {
		next = max(next, min(2*m.pace, m.cfg.Window/2))
	}
	m.pace = next
	m.paced = now + next
}

// company notes whether waiting for others paid for a segment like no other.
func (m *Merger) company() {
	switch p := &m.pending; {
	case p.lone == 0:
	case p.packets == 1:
		m.alone++
		m.loneAt = p.firstData
	default:
		m.alone = 0
	}
}

func (m *Merger) startData(now time.Duration) {
	p := &m.pending
	if !p.data {
		p.data, p.firstData = true, now
	}
}

// Deadline returns when the next Flush is due, and for what reason. It reports
// false while nothing waits.
func (m *Merger) Deadline() (at time.Duration, why Reason, ok bool) {
	p := &m.pending
	switch {
	case p.packets == 0:
		return 0, 0, false
	case p.full:
		return p.last, FlushFull, true
	case p.waiting > 0 && p.complete == p.waiting, p.waiting == 0 && p.acked:
		return p.last, FlushComplete, true
	}
	at = 1<<63 - 1
	by := func(due time.Duration, reason Reason) {
		if due < at {
			at, why = due, reason
		}
	}
	if p.urgent {
		by(max(p.urgentAt, m.paced), FlushUrgent)
	}
	if p.data && p.firstData+m.cfg.Window < at {
		by(p.firstData+m.cfg.Window, FlushWindow)
		burst := p.bursts > 0 && p.bursts == p.waiting
		alone := p.lone == 1 && p.packets == 1 && m.alone >= aloneAfter
		if burst || alone {
			by(p.last+m.cfg.Quiet, FlushQuiet)
		}
		if p.half > 0 && p.half == p.waiting {
			by(p.last+halfQuiet*m.cfg.Quiet, FlushQuiet)
		}
	}
	if p.acks {
		by(p.firstAck+m.cfg.AckWait, FlushAck)
		if p.halfAcked && p.waiting == 0 {
			by(p.last+halfQuiet*m.cfg.Quiet, FlushQuiet)
		}
	}
	return at, why, true
}
