package aggregate

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers"
)

// A schedule says when the frame goes for which a Merger gathers segments. Of each
// segment it knows how long that may wait, and of its group how many members there
// are and how many are expected. It knows no packet and no byte:
//
//	classify   a segment is urgent, is data, or only acknowledges
//	add        it has come, and is a member of a group
//	fill       the frame takes no more
//	deadline   when the frame is due, and why; asked after each add
//	flushed    the frame has gone
//
// A segment waits only while waiting can pay. The frame goes at the earliest of
// these times, and takes along whatever else waits:
//
//   - At once, when it is full. While the carrier takes no more, the caller flushes
//     late, so frames grow up to there: batching adapts to the link by itself.
//   - At once, when nobody is missing. A group has a known set where the last
//     message like it, of the same topic, say, went to three flows or more. It is
//     complete when as many segments are there. The frame goes when all groups of
//     data that others could still join are complete; where there is none, when a
//     known set has acknowledged.
//   - At once, for what must not wait: SYN, FIN, RST, ICMP, pings, connects. In a burst
//     of them only the first goes at once. The others share frames, which are an
//     interval apart: 1 ms at first, then 2, at most half a window.
//   - A window (5 ms) after the first data.
//   - When nothing has come for a time (quiet, 1 ms), where more is not expected: at
//     the end of a burst of copies whose set is not known; after twice that, where
//     half of each known set is there and the rest is late; and behind a singleton, a
//     segment like no other, where eight before it waited for a window in vain. A
//     frame that goes for an urgent segment by the end of the window is not sent
//     sooner for quiet.
//   - ackWait (25 ms) after the first acknowledgement, so that it rides with data:
//     hosts delay them by 40 ms and more themselves. Where a flow is busy its
//     acknowledgements are data, since its sender waits for them.
//
// All of these are limits, not delays. On a fan-out that is known the frame waits
// for the spread of the copies: 2.3 ms at the median with 100 subscribers of
// mosquitto, 18 ms with 500, which is several frames.
//
// An example with the default times, in ms; TestTimeline runs it:
//
//	at    what comes                              due   why
//	 0.0  copy 1 of a message for a set of 100     5.0  window
//	 0.4  a singleton                              5.0  window
//	 1.1  copy 50                                  3.1  quiet: half of the set is there
//	 1.2  copy 51                                  3.2  quiet
//	 2.3  copy 100                                 2.3  complete; the singleton goes along
//	20.0  a SYN                                   20.0  urgent
//	20.3  a SYN of another client                 21.0  urgent, 1 ms after the last such frame
//	20.6  a singleton                             21.0  urgent; it goes along
//	21.2  a third SYN                             23.0  urgent, 2 ms after the last
//	40.0  an acknowledgement without payload      65.0  ack
//	50.0  a message that is not known             55.0  window
//	50.2  its second copy                         51.2  quiet
//	50.7  its third copy                          51.7  quiet; the acknowledgement goes along
type schedule struct {
	times
	arrivals

	// What outlives a frame.
	nextUrgent time.Duration // before it no frame goes for urgency
	interval   time.Duration // how long that was from the last one
	idle       int           // frames in a row that held one singleton and nothing else
	idleAt     time.Duration // when the singleton of the last such frame came
}

// times are those of the Config, none negative.
type times struct {
	window         time.Duration // from the first data
	quiet          time.Duration // from the last segment
	ackWait        time.Duration // from the first acknowledgement
	urgentInterval time.Duration // between frames for urgency, the least
}

// arrivals are what came since the last frame.
type arrivals struct {
	packets      int
	oldest, last time.Duration // when the first and the last of them came
	waited       time.Duration // of all of them together, until the last came
	full         bool

	urgent, data, acks           bool          // there are segments of the class
	urgentAt, firstData, ackedAt time.Duration // when the first of each came

	allAcked, halfAcked bool // a known set has acknowledged, or half of it

	// singletons counts groups of data with one member and no known set. Others share
	// the carrier's packet with them, no more, so nothing waits for them. A group
	// whose second member is data is taken off, also where its first was not, and so
	// had not been counted.
	singletons int
	gathering  int // groups of data that others may still join: with a known set, or with two members
	complete   int // of these, those with all members of the known set
	half       int // of these, those with half of them or more
	bursts     int // of these, those of which no set is known
}

// A groupWait is what a schedule has to know of a group; the Merger keeps it with
// the group. The zero value is right for a new group without payload and for a
// packet that is carried as it is: nothing is like them, so they wait for nobody.
type groupWait struct {
	payload  bool // set by the Merger: its members have some, so that others can be like them
	expected int  // set by the Merger: flows in the known set, 0 where none is known
	members  int  // so far
	complete bool // it is counted in arrivals.complete
	half     bool // it is counted in arrivals.half
}

func (g *groupWait) known() bool      { return g.expected >= leastSet }
func (g *groupWait) isComplete() bool { return g.known() && g.members >= g.expected }
func (g *groupWait) isHalf() bool     { return g.known() && g.members >= g.expected/2 }

// flowAcks tell whether a flow is busy, by what it acknowledged. The Merger keeps
// them with the flow.
type flowAcks struct {
	inFrame   uint16        // acknowledgements since the last frame; set to 0 by the Merger
	last      seqnum.Value  // what the last one without payload acknowledged; 0 for none
	messageAt time.Duration // when the last message came that only acknowledges; 0 for none
}

// traits are what the class of a segment depends on.
type traits struct {
	control bool          // it has SYN, FIN or RST
	icmp    bool          // it is of ICMP or ICMPv6
	tcp     bool          // it is of TCP: without payload it only acknowledges
	ack     seqnum.Value  // what it acknowledges, where it is of TCP
	payload bool          // it has some
	message parsers.Class // that of its payload: of the message that may wait least
}

// Where other values were measured, it was on the captures of testdata but for the
// encrypted and the bulk one, with the carrier's 45 bytes a frame; they tell what a
// wait saves, not what a host does while it waits.
const (
	// leastSet is how many flows a known set has at least. Smaller groups are not
	// learned (codec.setMinimum), so that a smaller set is what is left of one that ended.
	leastSet = 3
	// busyAcks is with how many acknowledgements since the last frame a flow is busy:
	// this one and the next ones are data. With 2 the capture of 200 publishers
	// with QoS 1 takes 19 % more bytes; 3 and 8 change 0.1 % in all.
	busyAcks = 4
	// fullAck is for how many bytes an acknowledgement is at least, where a receiver
	// acknowledges every second full-sized segment (RFC 9293 section 3.8.6.3). A
	// path carries segments of 1200 bytes and more. Without this a sender that fills
	// its window was measured to wait 25 ms in each round of its slow start. On the
	// captures neither half of it nor twice as much changes more than 0.1 %.
	fullAck = 2 * 1200
	// thinAcks is how many times ackWait is between two acknowledging messages of a
	// flow that is not busy: 100 ms. A publisher with one message under way at a
	// time waits for each of them, and so would be held up for an ackWait each. With
	// 1 a fan-out to 100 with QoS 1 takes 9 % more bytes; 16 changes nothing.
	thinAcks = 4
	// halfQuiet is how many times quiet ends the wait for the rest of a known set
	// of which half is there. Measured at a round trip of 40 ms, where one host
	// delays its acknowledgement and the broker has Nagle on, so that it holds its
	// next message until all have acknowledged: messages came 26 ms late for
	// seconds when the others waited for that host; with this, 2 ms. Copies for such
	// a host come as late. With 1 the captures take 1.2 % more bytes, with 4 0.7 %
	// less, and one's mean wait (mixed-20) is 2.3 ms for 1.4; without it 9 ms.
	halfQuiet = 2
	// idleAfter is how many singletons in a row have to have waited in vain for the
	// next one to wait for quiet only. Measured with a publisher at the far side:
	// each message waited for a window on its way up, and its answer held the
	// notifications for another on their way down, 12 ms together. With 3 the
	// capture of commands to 50 units (control-50) takes 6 % more bytes; 32 changes
	// nothing in any.
	idleAfter = 8
	// burstShare is the part of a window that frames for urgency are apart at most, so
	// that the mean wait in a burst of connects is a quarter of a window. With 4 the
	// capture in which 500 clients connect takes 43 % more bytes, with 1 22 % less.
	burstShare = 2
)

// classify returns how a segment may wait, and notes in f, its flow's, what it
// acknowledges.
func (s *schedule) classify(now time.Duration, t traits, f *flowAcks) parsers.Class {
	switch {
	case t.control, t.icmp:
		return parsers.ClassUrgent
	case t.payload && t.message == parsers.ClassAck:
		return f.message(now, thinAcks*s.ackWait)
	case t.payload:
		return t.message
	case t.tcp:
		return f.bare(t.ack)
	}
	return parsers.ClassData
}

// bare returns the class of an acknowledgement without payload. A flow that
// acknowledges often, or whole segments, is filling its window: its sender waits
// for these.
func (f *flowAcks) bare(ack seqnum.Value) parsers.Class {
	full := f.last != 0 && f.last.Add(fullAck).LessThanEq(ack)
	f.last = ack
	if f.inFrame++; full || f.inFrame >= busyAcks {
		return parsers.ClassData
	}
	return parsers.ClassAck
}

// message returns the class of a message that only acknowledges, of which a flow
// that is not busy has one in thin at most.
func (f *flowAcks) message(now, thin time.Duration) parsers.Class {
	often := f.messageAt != 0 && now-f.messageAt < thin
	f.messageAt = now
	if f.inFrame++; often || f.inFrame >= busyAcks {
		return parsers.ClassData
	}
	return parsers.ClassAck
}

// add notes that a segment has come and is of group g.
func (s *schedule) add(now time.Duration, class parsers.Class, g *groupWait) {
	if s.packets == 0 {
		s.oldest, s.last = now, now
	}
	s.waited += time.Duration(s.packets) * (now - s.last)
	s.last = now
	s.packets++
	g.members++
	switch class {
	case parsers.ClassUrgent:
		if !s.urgent {
			s.urgent, s.urgentAt = true, now
		}
	case parsers.ClassAck:
		if !s.acks {
			s.acks, s.ackedAt = true, now
		}
		s.allAcked = s.allAcked || g.isComplete()
		s.halfAcked = s.halfAcked || g.isHalf()
	default:
		if !s.data {
			s.data, s.firstData = true, now
		}
		if g.payload {
			s.gather(now, g)
		}
	}
}

// gather notes that g, whose segments have payload, has one more that is data.
func (s *schedule) gather(now time.Duration, g *groupWait) {
	if now-s.idleAt < s.window {
		s.idle = 0 // had the last singleton waited for a window, the two would share a frame
	}
	switch {
	case g.members == 1 && g.known():
		s.gathering++
	case g.members == 1:
		s.singletons++
	case g.members == 2 && !g.known():
		s.singletons--
		s.gathering++
		if g.expected == 0 {
			s.bursts++
		}
	}
	if !g.complete && g.isComplete() {
		g.complete = true
		s.complete++
	}
	if !g.half && g.isHalf() {
		g.half = true
		s.half++
	}
}

// fill notes that the frame takes no more.
func (s *schedule) fill() { s.full = true }

// deadline returns when the frame is due, and for what reason. It reports false
// while nothing waits.
func (s *schedule) deadline() (at time.Duration, why Reason, ok bool) {
	switch {
	case s.packets == 0:
		return 0, 0, false
	case s.full:
		return s.last, FlushFull, true
	case s.gathering > 0 && s.complete == s.gathering, s.gathering == 0 && s.allAcked:
		return s.last, FlushComplete, true
	}
	at = 1<<63 - 1
	by := func(due time.Duration, reason Reason) {
		if due < at {
			at, why = due, reason
		}
	}
	if s.urgent {
		by(max(s.urgentAt, s.nextUrgent), FlushUrgent)
	}
	if s.data && s.firstData+s.window < at {
		by(s.firstData+s.window, FlushWindow)
		burst := s.bursts > 0 && s.bursts == s.gathering
		inVain := s.singletons == 1 && s.packets == 1 && s.idle >= idleAfter
		if burst || inVain {
			by(s.last+s.quiet, FlushQuiet)
		}
		if s.half > 0 && s.half == s.gathering {
			by(s.last+halfQuiet*s.quiet, FlushQuiet)
		}
	}
	if s.acks {
		by(s.ackedAt+s.ackWait, FlushAck)
		if s.halfAcked && s.gathering == 0 {
			by(s.last+halfQuiet*s.quiet, FlushQuiet)
		}
	}
	return at, why, true
}

// waits returns how long the segments of a frame that goes now have waited, all
// together, and the one that waited longest.
func (s *schedule) waits(now time.Duration) (all, longest time.Duration) {
	if s.packets == 0 {
		return 0, 0
	}
	return s.waited + time.Duration(s.packets)*(now-s.last), now - s.oldest
}

// flushed notes that the frame went, and begins the next.
func (s *schedule) flushed(now time.Duration) {
	switch {
	case s.singletons == 0: // nothing that waiting was to pay for
	case s.packets == 1:
		s.idle++
		s.idleAt = s.firstData
	default:
		s.idle = 0
	}
	if s.urgent {
		s.spread(now)
	}
	s.arrivals = arrivals{}
}

// spread works out when the next frame may go for urgency, after one at now. The
// first urgent segment after a pause goes at once. Where those of this frame had
// to wait, a burst is going on, a hundred clients that connect, say: then twice as
// many share the next frame, until frames are half a window apart, since each costs
// the carrier more than most connects do.
func (s *schedule) spread(now time.Duration) {
	next := s.urgentInterval
	if s.urgentAt < s.nextUrgent {
		next = max(next, min(2*s.interval, s.window/burstShare))
	}
	s.interval = next
	s.nextUrgent = now + next
}
