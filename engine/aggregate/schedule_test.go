package aggregate

import (
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"

	"sheaf/parsers"
)

const us = time.Microsecond

// A timed schedule is told what came in the words of its rules.
type timed struct {
	*schedule
	t *testing.T
}

// defaults is a schedule with the times of a Config that says nothing.
func defaults(t *testing.T) timed {
	c := Config{}.withDefaults()
	return timed{&schedule{times: times{c.Window, c.Quiet, c.AckWait, c.UrgentInterval}}, t}
}

// one is a group of a message that is not known.
func one() *groupWait { return &groupWait{payload: true} }

// set is a group of a message whose last one went to n flows.
func set(n int) *groupWait { return &groupWait{payload: true, expected: n} }

func (s timed) data(at time.Duration, g *groupWait) { s.add(at, parsers.ClassData, g) }
func (s timed) ack(at time.Duration, g *groupWait)  { s.add(at, parsers.ClassAck, g) }
func (s timed) urgent(at time.Duration)             { s.add(at, parsers.ClassUrgent, &groupWait{}) }
func (s timed) copies(n int, at time.Duration, g *groupWait) {
	for range n {
		s.data(at, g)
	}
}

// due checks when the frame is due, and why.
func (s timed) due(at time.Duration, why Reason) {
	s.t.Helper()
	if got, reason, ok := s.deadline(); !ok || got != at || reason != why {
		s.t.Errorf("due at %v for %v (%v), expected at %v for %v", got, reason, ok, at, why)
	}
}

// goes checks when the frame is due, and why, and has it go.
func (s timed) goes(at time.Duration, why Reason) {
	s.t.Helper()
	s.due(at, why)
	s.flushed(at)
}

// class checks how a segment may wait.
func (s timed) class(at time.Duration, t traits, f *flowAcks, want parsers.Class) {
	s.t.Helper()
	if got := s.classify(at, t, f); got != want {
		s.t.Errorf("%+v at %v has class %d, expected %d", t, at, got, want)
	}
}

// The example of the comment on schedule.
func TestTimeline(t *testing.T) {
	s := defaults(t)
	message := set(100)
	s.data(0, message)
	s.due(5*ms, FlushWindow)
	s.data(400*us, one())
	s.due(5*ms, FlushWindow)
	s.copies(49, 1100*us, message)
	s.due(3100*us, FlushQuiet)
	s.data(1200*us, message)
	s.due(3200*us, FlushQuiet)
	s.copies(49, 2300*us, message)
	s.goes(2300*us, FlushComplete)
	s.urgent(20 * ms)
	s.goes(20*ms, FlushUrgent)
	s.urgent(20300 * us)
	s.due(21*ms, FlushUrgent)
	s.data(20600*us, one())
	s.goes(21*ms, FlushUrgent)
	s.urgent(21200 * us)
	s.goes(23*ms, FlushUrgent)
	s.ack(40*ms, &groupWait{})
	s.due(65*ms, FlushAck)
	message = one()
	s.data(50*ms, message)
	s.due(55*ms, FlushWindow)
	s.data(50200*us, message)
	s.due(51200*us, FlushQuiet)
	s.data(50700*us, message)
	s.goes(51700*us, FlushQuiet)
}

func TestControlSegmentIsUrgent(t *testing.T) {
	s := defaults(t)
	s.class(0, traits{tcp: true, control: true}, &flowAcks{}, parsers.ClassUrgent)
	s.class(0, traits{tcp: true, control: true, payload: true, message: parsers.ClassData}, &flowAcks{}, parsers.ClassUrgent)
}

func TestICMPIsUrgent(t *testing.T) {
	s := defaults(t)
	s.class(0, traits{icmp: true, message: parsers.ClassAck}, &flowAcks{}, parsers.ClassUrgent)
	s.class(0, traits{icmp: true, payload: true, message: parsers.ClassData}, &flowAcks{}, parsers.ClassUrgent)
}

func TestMessageSaysHowItMayWait(t *testing.T) {
	s := defaults(t)
	for _, c := range []parsers.Class{parsers.ClassUrgent, parsers.ClassData, parsers.ClassAck} {
		s.class(0, traits{tcp: true, payload: true, message: c}, &flowAcks{}, c)
		s.class(0, traits{payload: true, message: c}, &flowAcks{}, c)
	}
}

func TestDatagramWithoutPayloadIsData(t *testing.T) {
	defaults(t).class(0, traits{message: parsers.ClassAck}, &flowAcks{}, parsers.ClassData)
}

func TestThinAckWaits(t *testing.T) {
	s := defaults(t)
	f := &flowAcks{}
	for i := range 5 { // each is for a message, and the only one in its frame
		f.inFrame = 0
		s.class(time.Duration(i)*ms, traits{tcp: true, message: parsers.ClassAck, ack: seqnum.Value(1 + 100*i)}, f, parsers.ClassAck)
	}
	s.ack(10*ms, &groupWait{})
	s.due(35*ms, FlushAck)
	s.ack(20*ms, &groupWait{}) // the first counts
	s.due(35*ms, FlushAck)
}

func TestBusyFlowsAcksAreData(t *testing.T) {
	s := defaults(t)
	bare := traits{tcp: true, message: parsers.ClassAck, ack: 1}
	f := &flowAcks{}
	for range 2 { // frames
		f.inFrame = 0
		for i := range 6 {
			want := parsers.ClassAck
			if i >= 3 {
				want = parsers.ClassData
			}
			s.class(0, bare, f, want)
		}
	}
	// messages that acknowledge count with them
	puback := traits{tcp: true, payload: true, message: parsers.ClassAck}
	f = &flowAcks{inFrame: 2}
	s.class(ms, puback, f, parsers.ClassAck)
	s.class(ms, bare, f, parsers.ClassData)
	f = &flowAcks{inFrame: 3}
	s.class(ms, puback, f, parsers.ClassData)
}

func TestFullSizedAckIsData(t *testing.T) {
	s := defaults(t)
	for _, tt := range []struct {
		last, ack seqnum.Value
		want      parsers.Class
	}{
		{1000, 3400, parsers.ClassData},
		{1000, 3399, parsers.ClassAck},
		{1000, 1000, parsers.ClassAck},
		{1000, 999, parsers.ClassAck}, // came late
		{0, 2400, parsers.ClassAck},   // none before
		{1<<32 - 1000, 1400, parsers.ClassData},
		{1<<32 - 1000, 1399, parsers.ClassAck},
	} {
		f := &flowAcks{last: tt.last}
		s.class(0, traits{tcp: true, ack: tt.ack}, f, tt.want)
		if f.last != tt.ack {
			t.Errorf("%d was acknowledged last, %d is remembered", tt.ack, f.last)
		}
	}
}

func TestFrequentAckMessagesAreData(t *testing.T) {
	s := defaults(t)
	puback := traits{tcp: true, payload: true, message: parsers.ClassAck}
	f := &flowAcks{}
	const thin = 100 * ms
	now := ms
	for _, tt := range []struct {
		after time.Duration
		want  parsers.Class
	}{
		{0, parsers.ClassAck}, // the first
		{thin, parsers.ClassAck},
		{thin - 1, parsers.ClassData},
		{thin, parsers.ClassAck},
		{ms, parsers.ClassData},
		{thin - 1, parsers.ClassData}, // from the last one, whatever it was
	} {
		now += tt.after
		f.inFrame = 0
		s.class(now, puback, f, tt.want)
	}
}

func TestNothingIsDueWhereNothingWaits(t *testing.T) {
	s := defaults(t)
	check := func() {
		t.Helper()
		if at, why, ok := s.deadline(); ok {
			t.Errorf("due at %v for %v", at, why)
		}
	}
	check()
	s.copies(3, ms, set(3))
	s.urgent(ms)
	s.ack(ms, &groupWait{})
	s.fill()
	s.flushed(2 * ms)
	check()
	if s.arrivals != (arrivals{}) {
		t.Errorf("a new frame begins with %+v", s.arrivals)
	}
}

func TestFullFrameGoesAtOnce(t *testing.T) {
	s := defaults(t)
	s.copies(2, 10*ms, set(3))
	s.data(11*ms, one())
	s.fill()
	s.due(11*ms, FlushFull)
	s = defaults(t)
	s.copies(3, 10*ms, set(3))
	s.urgent(10 * ms)
	s.fill()
	s.due(10*ms, FlushFull) // is the reason, whatever else is
}

func TestUrgentGoesAtOnce(t *testing.T) {
	s := defaults(t)
	s.data(10*ms, one())
	s.ack(11*ms, &groupWait{})
	s.urgent(12 * ms)
	s.due(12*ms, FlushUrgent)
	s.urgent(13 * ms) // the first counts
	s.due(12*ms, FlushUrgent)
}

func TestSecondUrgentFrameWaitsAnInterval(t *testing.T) {
	for _, tt := range []struct{ after, due time.Duration }{
		{0, ms}, {ms - 1, ms}, {ms, ms}, {ms + 1, ms + 1}, {time.Second, time.Second},
	} {
		s := defaults(t)
		s.urgent(10 * ms)
		s.goes(10*ms, FlushUrgent)
		s.urgent(10*ms + tt.after)
		s.due(10*ms+tt.due, FlushUrgent)
	}
	s := defaults(t) // from when the frame went
	s.urgent(10 * ms)
	s.flushed(12 * ms)
	s.urgent(12*ms + us)
	s.due(13*ms, FlushUrgent)
	s = defaults(t) // frames without an urgent segment do not count
	s.data(10*ms, one())
	s.goes(15*ms, FlushWindow)
	s.urgent(15*ms + us)
	s.due(15*ms+us, FlushUrgent)
}

func TestIntervalDoublesUpToHalfAWindow(t *testing.T) {
	for _, tt := range []struct {
		window, interval time.Duration
		want             []time.Duration
	}{
		{5 * ms, ms, []time.Duration{ms, 2 * ms, 2500 * us, 2500 * us}},
		{8 * ms, ms, []time.Duration{ms, 2 * ms, 4 * ms, 4 * ms}},
		{20 * ms, 3 * ms, []time.Duration{3 * ms, 6 * ms, 10 * ms, 10 * ms}},
		{4 * ms, 3 * ms, []time.Duration{3 * ms, 3 * ms, 3 * ms}}, // the least there is
	} {
		s := defaults(t)
		s.window, s.urgentInterval = tt.window, tt.interval
		now := 10 * ms
		s.urgent(now)
		s.goes(now, FlushUrgent)
		for _, apart := range tt.want {
			s.urgent(now + us)
			now += apart
			s.goes(now, FlushUrgent)
		}
	}
}

func TestPauseEndsABurstOfUrgentFrames(t *testing.T) {
	for _, tt := range []struct{ pause, next time.Duration }{
		{2500*us - 1, 2500 * us}, {2500 * us, ms}, // it would have waited, or not
	} {
		s := defaults(t)
		now := 10 * ms
		for _, apart := range []time.Duration{0, ms, 2 * ms, 2500 * us} {
			now += apart
			s.urgent(now - min(apart, us))
			s.goes(now, FlushUrgent)
		}
		s.urgent(now + tt.pause)
		now += 2500 * us
		s.goes(now, FlushUrgent)
		s.urgent(now + us)
		s.due(now+tt.next, FlushUrgent)
	}
}

func TestUrgentWithinTheWindowOutlastsQuiet(t *testing.T) {
	for _, tt := range []struct {
		window, due time.Duration
		why         Reason
	}{
		{5 * ms, 14 * ms, FlushUrgent},
		{4 * ms, 14 * ms, FlushUrgent}, // as the window ends
		{4*ms - 1, 11 * ms, FlushQuiet},
	} {
		s := defaults(t)
		s.window, s.urgentInterval = tt.window, 4*ms
		s.urgent(10 * ms)
		s.goes(10*ms, FlushUrgent)
		s.copies(2, 10*ms, one())
		s.urgent(10 * ms)
		s.due(tt.due, tt.why)
	}
}

func TestWaitsAreFromArrival(t *testing.T) {
	s := defaults(t)
	check := func(now, all, longest time.Duration) {
		t.Helper()
		if a, l := s.waits(now); a != all || l != longest {
			t.Errorf("waited %v, the longest %v, expected %v and %v", a, l, all, longest)
		}
	}
	check(10*ms, 0, 0) // a frame without packets
	for range 2 {
		s.data(11*ms, one())
		s.ack(12*ms, &groupWait{})
		s.urgent(15 * ms)
		check(15*ms, (4+3)*ms, 4*ms)
		check(17*ms, (6+5+2)*ms, 6*ms)
		s.flushed(17 * ms)
	}
}
