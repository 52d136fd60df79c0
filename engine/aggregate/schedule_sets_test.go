package aggregate

import (
	"testing"
	"time"
)

func TestDataWaitsAWindow(t *testing.T) {
	s := defaults(t)
	s.data(10*ms, one())
	s.due(15*ms, FlushWindow)
	s.data(13*ms, one()) // the first counts
	s.due(15*ms, FlushWindow)
}

func TestDataThatNothingIsLikeWaitsAWindow(t *testing.T) {
	s := defaults(t)
	acks := &groupWait{expected: 2} // of busy flows; or a packet that is carried as it is
	now := 10 * ms
	for range 10 {
		for range 5 {
			s.data(now, acks) // neither a burst nor a set
			s.due(now+5*ms, FlushWindow)
		}
		s.flushed(now + 5*ms)
		now += 100 * ms
		s.data(now, &groupWait{}) // nor a singleton
		s.goes(now+5*ms, FlushWindow)
		now += 100 * ms
	}
	s.singletons(1, now, 5*ms, FlushWindow)
}

func TestAckRidesWithData(t *testing.T) {
	s := defaults(t)
	s.ack(10*ms, &groupWait{})
	s.data(12*ms, one())
	s.due(17*ms, FlushWindow)
	s = defaults(t)
	s.ack(10*ms, &groupWait{})
	s.data(31*ms, one()) // whose window ends later
	s.due(35*ms, FlushAck)
}

func TestWindowBoundsAll(t *testing.T) {
	s := defaults(t)
	known, burst := set(10), one()
	for at := 10 * ms; at < 14*ms; at += 250 * us {
		s.data(at, burst)
	}
	s.due(14750*us, FlushQuiet)
	s.data(14*ms, burst)
	s.due(15*ms, FlushWindow) // which is when quiet ends, too
	s.data(14500*us, burst)
	s.copies(9, 14500*us, known)
	s.ack(14500*us, &groupWait{})
	s.due(15*ms, FlushWindow)
}

func TestBurstEndsWithQuiet(t *testing.T) {
	s := defaults(t)
	message := one()
	s.data(10*ms, message)
	s.due(15*ms, FlushWindow) // no burst yet
	s.data(10*ms, message)
	s.due(11*ms, FlushQuiet)
	s.data(10900*us, message)
	s.due(11900*us, FlushQuiet)
	s.data(11*ms, one()) // nothing waits for a singleton
	s.due(12*ms, FlushQuiet)
	other := one()
	s.copies(2, 11500*us, other)
	s.due(12500*us, FlushQuiet)
}

func TestBurstBesideASetWaitsForTheSet(t *testing.T) {
	s := defaults(t)
	s.copies(2, 10*ms, one())
	message := set(10)
	s.data(10*ms, message)
	s.due(15*ms, FlushWindow)
	s.copies(9, 10*ms, message) // nor is a burst complete
	s.due(15*ms, FlushWindow)
}

func TestBurstBeginsWithItsSecondSegmentIfThatIsData(t *testing.T) {
	s := defaults(t)
	g := one()
	s.ack(10*ms, g)
	s.data(11*ms, g)
	s.due(12*ms, FlushQuiet)
	s = defaults(t)
	g = one()
	s.data(10*ms, g)
	s.ack(10*ms, g)
	s.data(10*ms, g)
	s.due(15*ms, FlushWindow)
}

func TestCompleteSetWaitsForNobody(t *testing.T) {
	for _, n := range []int{3, 4, 100} {
		s := defaults(t)
		message := set(n)
		s.copies(n-1, 10*ms, message)
		if _, why, _ := s.deadline(); why == FlushComplete {
			t.Errorf("%d of %d are complete", n-1, n)
		}
		s.data(11*ms, message)
		s.due(11*ms, FlushComplete)
		s.data(12*ms, message) // more than there were
		s.due(12*ms, FlushComplete)
	}
}

func TestAllSetsAreWaitedFor(t *testing.T) {
	s := defaults(t)
	a, b := set(3), set(4)
	s.copies(3, 10*ms, a)
	s.copies(1, 10*ms, b)
	s.due(15*ms, FlushWindow)
	s.data(10*ms, b) // all of one is more than half of it
	s.due(12*ms, FlushQuiet)
	s.copies(2, 11*ms, b)
	s.due(11*ms, FlushComplete)
}

func TestMembersThatOnlyAcknowledgeCountForTheSet(t *testing.T) {
	s := defaults(t)
	g := set(3)
	s.data(10*ms, g)
	s.ack(10*ms, g)
	s.data(10*ms, g)
	s.due(10*ms, FlushComplete)
}

func TestSmallSetIsNotWaitedFor(t *testing.T) {
	for expected := 1; expected < 3; expected++ {
		s := defaults(t)
		g := set(expected)
		for range 3 { // neither complete nor a burst
			s.data(10*ms, g)
			s.due(15*ms, FlushWindow)
		}
		now := 100 * ms
		s = defaults(t)
		for i := range 10 { // one of it is a singleton
			now += 100 * ms
			s.data(now, set(expected))
			if i < 8 {
				s.goes(now+5*ms, FlushWindow)
			} else {
				s.goes(now+ms, FlushQuiet)
			}
		}
		s = defaults(t)
		g = &groupWait{expected: expected}
		for range 3 {
			s.ack(10*ms, g)
			s.due(35*ms, FlushAck)
		}
	}
}

func TestHalfOfAKnownSetWaitsTwiceQuiet(t *testing.T) {
	for _, tt := range []struct{ expected, half int }{{4, 2}, {7, 3}, {10, 5}, {101, 50}} {
		s := defaults(t)
		message := set(tt.expected)
		for n := 1; n < tt.half; n++ {
			s.data(10*ms, message)
			s.due(15*ms, FlushWindow)
		}
		s.data(10*ms, message)
		s.due(12*ms, FlushQuiet)
		s.data(11*ms, one()) // whatever comes
		s.due(13*ms, FlushQuiet)
	}
}

func TestHalfOfOneSetBesideLessOfAnotherWaitsAWindow(t *testing.T) {
	s := defaults(t)
	a, b := set(10), set(10)
	s.copies(5, 10*ms, a)
	s.copies(4, 10*ms, b)
	s.due(15*ms, FlushWindow)
	s.data(10*ms, b)
	s.due(12*ms, FlushQuiet)
}

func TestAcknowledgementsOfAKnownSetWaitForNobody(t *testing.T) {
	s := defaults(t)
	acks := &groupWait{expected: 3}
	s.ack(10*ms, acks)
	s.ack(11*ms, acks)
	s.due(13*ms, FlushQuiet) // half
	s.ack(12*ms, acks)
	s.due(12*ms, FlushComplete)
	s.ack(13*ms, &groupWait{}) // nor for another acknowledgement
	s.due(13*ms, FlushComplete)
	s.data(13*ms, one()) // nothing waits for a singleton
	s.due(13*ms, FlushComplete)
}

func TestAcknowledgementsOfHalfASetWaitTwiceQuiet(t *testing.T) {
	s := defaults(t)
	acks := &groupWait{expected: 10}
	for range 4 {
		s.ack(10*ms, acks)
		s.due(35*ms, FlushAck)
	}
	s.ack(11*ms, acks)
	s.due(13*ms, FlushQuiet)
	s.ack(12*ms, acks)
	s.due(14*ms, FlushQuiet)
	s.ack(13*ms, &groupWait{}) // of no set
	s.due(15*ms, FlushQuiet)
	// at most as long as an acknowledgement may wait
	s.ack(34*ms, acks)
	s.due(35*ms, FlushAck)
}

func TestAcknowledgementsOfASetWaitForData(t *testing.T) {
	for _, n := range []int{5, 10} {
		s := defaults(t)
		acks, message := &groupWait{expected: 10}, set(4)
		for range n {
			s.ack(10*ms, acks)
		}
		s.data(10*ms, message)
		s.due(15*ms, FlushWindow)
		s.copies(3, 11*ms, message)
		s.due(11*ms, FlushComplete)
	}
}

// singletons has n singletons go, each 100 ms after the one before.
func (s timed) singletons(n int, now time.Duration, wait time.Duration, why Reason) time.Duration {
	s.t.Helper()
	for range n {
		now += 100 * ms
		s.data(now, one())
		s.goes(now+wait, why)
	}
	return now
}

func TestSingletonsStopWaitingAfterEight(t *testing.T) {
	s := defaults(t)
	now := s.singletons(8, 0, 5*ms, FlushWindow)
	now = s.singletons(20, now, ms, FlushQuiet)
	// a second message in the frame, whatever it is, is waited with
	for _, beside := range []func(at time.Duration){
		func(at time.Duration) { s.data(at, one()) },
		func(at time.Duration) { s.ack(at, &groupWait{}) },
		func(at time.Duration) { s.data(at, &groupWait{}) },
	} {
		now += 100 * ms
		s.data(now, one())
		beside(now)
		s.due(now+5*ms, FlushWindow)
		s.arrivals = arrivals{} // as though it had not been
	}
	// nor is one of a known set a singleton
	now += 100 * ms
	s.data(now, set(10))
	s.goes(now+5*ms, FlushWindow)
}

func TestSingletonWithinAWindowOfTheLastEndsIdle(t *testing.T) {
	for _, tt := range []struct {
		after, wait time.Duration
		why         Reason
	}{
		{5*ms - 1, 5 * ms, FlushWindow},
		{5 * ms, ms, FlushQuiet},
	} {
		s := defaults(t)
		now := s.singletons(8, 0, 5*ms, FlushWindow)
		now = s.singletons(1, now, ms, FlushQuiet)
		s.data(now+tt.after, one())
		s.goes(now+tt.after+tt.wait, tt.why)
		if tt.why == FlushWindow { // it is the first of eight
			now = s.singletons(7, now+tt.after, 5*ms, FlushWindow)
			s.singletons(1, now, ms, FlushQuiet)
		}
	}
}

func TestSingletonWithOthersEndsIdle(t *testing.T) {
	for name, beside := range map[string]func(s timed, at time.Duration){
		"a singleton":        func(s timed, at time.Duration) { s.data(at, one()) },
		"an acknowledgement": func(s timed, at time.Duration) { s.ack(at, &groupWait{}) },
		"an urgent segment":  func(s timed, at time.Duration) { s.urgent(at) },
	} {
		t.Run(name, func(t *testing.T) {
			s := defaults(t)
			now := s.singletons(8, 0, 5*ms, FlushWindow) + 100*ms
			s.data(now, one())
			beside(s, now)
			s.flushed(now + 5*ms)
			now = s.singletons(8, now, 5*ms, FlushWindow)
			s.singletons(1, now, ms, FlushQuiet)
		})
	}
}

func TestFramesWithoutSingletonsLeaveIdle(t *testing.T) {
	s := defaults(t)
	now := s.singletons(8, 0, 5*ms, FlushWindow) + 100*ms
	s.ack(now, &groupWait{})
	s.goes(now+25*ms, FlushAck)
	s.copies(3, now+30*ms, set(3))
	s.goes(now+30*ms, FlushComplete)
	s.flushed(now + 40*ms) // without packets
	s.singletons(1, now, ms, FlushQuiet)
}

func TestSingletonGoesWithACompleteSet(t *testing.T) {
	s := defaults(t)
	message := set(3)
	s.copies(2, 10*ms, message)
	s.data(10*ms, one())
	s.due(12*ms, FlushQuiet)
	s.data(11*ms, message)
	s.due(11*ms, FlushComplete)
}

// The count of singletons takes off a group that began with an acknowledgement, though
// it was not counted: the frame then counts as one without singletons.
func TestGroupThatBeganWithoutDataIsTakenOffSingletons(t *testing.T) {
	s := defaults(t)
	now := s.singletons(8, 0, 5*ms, FlushWindow) + 100*ms
	g := one()
	s.ack(now, g)
	s.data(now, g)
	s.data(now, one())
	s.goes(now+ms, FlushQuiet)
	s.singletons(1, now, ms, FlushQuiet)
}

func TestZeroTimesWaitForNothing(t *testing.T) {
	for why, come := range map[Reason]func(s timed){
		FlushWindow: func(s timed) { s.data(10*ms, one()) },
		FlushAck:    func(s timed) { s.ack(10*ms, &groupWait{}) },
		FlushUrgent: func(s timed) { s.urgent(10 * ms) },
	} {
		s := timed{&schedule{}, t}
		for range 3 {
			come(s)
			s.goes(10*ms, why)
		}
	}
}
