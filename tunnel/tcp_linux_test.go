package tunnel

import (
	"testing"
	"time"
)

// The kernel at the other end answers for a lane over TCP when it is asked, long
// before a sign of life is due.
func TestTCPIsAsked(t *testing.T) {
	for _, c := range []Carrier{TLS, Plain} {
		p := newPair(t, []Carrier{c}, nil)
		a, b := p.lanes(t, ClassMessages)
		say(t, a, b, "x")
		say(t, b, a, "x")
		if a.pulse == nil || b.pulse != nil {
			t.Fatalf("%v: a pulse at the calling end %v, at the called end %v", c, a.pulse != nil, b.pulse != nil)
		}
		time.Sleep(1200 * time.Millisecond) // the last acknowledgements
		before := a.pulse.conn.ConnectionStats().PacketsReceived
		a.pulse.ask()
		for end := time.Now().Add(keepTCP.Idle / 2); a.pulse.conn.ConnectionStats().PacketsReceived == before; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%v: no answer", c)
			}
		}
		say(t, a, b, "still there")
	}
}

// A lane over TCP that is doubted stays, and one that is lost ends.
func TestSilentTCPLaneEnds(t *testing.T) {
	p := newPair(t, []Carrier{TLS}, nil)
	a, b := p.lanes(t, ClassMessages)
	a.heed(doubted)
	say(t, b, a, "x")
	a.heed(lost)
	if r := wantReset(t, a, patience); r.Reason != ReasonLost || r.Remote {
		t.Errorf("%v", r)
	}
	select {
	case <-a.pulse.conn.Context().Done():
	case <-time.After(patience):
		t.Error("the pulse goes on")
	}
}
