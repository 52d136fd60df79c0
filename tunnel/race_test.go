package tunnel

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A track is one carrier of a race in a test: whether and when a call is answered.
type track struct {
	opens time.Duration // calls that start before hang for good
	talks time.Duration // until something comes back, if before trip
	trip  time.Duration // until a call that starts later is answered
	err   error         // by which
}

// run runs a race over QUIC and TLS and returns what won after how long, when calls
// over each were started, and how many were in progress at most.
func (tr trial) run(t *testing.T) (won candidate, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), tr.patience)
		defer cancel()
		running := map[Carrier]int{}
		calls := make(chan func())
		go func() {
			for f := range calls {
				f()
			}
		}()
		defer close(calls)
		r := race{
			carriers: []Carrier{QUIC, TLS}, fallback: tr.fallback, worked: tr.worked,
			pause: backoff{min: 250 * time.Millisecond, max: callEvery},
			call: func(ctx context.Context, this call) candidate {
				c, at := this.carrier, time.Since(begin)
				calls <- func() {
					tr.starts[c] = append(tr.starts[c], at)
					running[c]++
					tr.most[c] = max(tr.most[c], running[c])
				}
				defer func() { calls <- func() { running[c]-- } }()
				k := tr.tracks[c]
				var talks, answered <-chan time.Time
				if at >= k.opens {
					talks, answered = time.After(k.talks), time.After(k.trip)
				}
				for {
					select {
					case <-talks:
						this.answered()
					case <-answered:
						return candidate{carrier: c, err: k.err}
					case <-ctx.Done():
						return candidate{carrier: c, err: ctx.Err()}
					}
				}
			},
		}
		won, err = r.run(ctx)
		took = time.Since(begin)
	})
	return won, took, err
}

type trial struct {
	tracks   map[Carrier]track
	fallback time.Duration
	worked   Carrier
	patience time.Duration
	starts   map[Carrier][]time.Duration
	most     map[Carrier]int
}

func newTrial(quic, tls track) trial {
	return trial{
		tracks: map[Carrier]track{QUIC: quic, TLS: tls}, patience: time.Minute,
		starts: map[Carrier][]time.Duration{}, most: map[Carrier]int{},
	}
}

const never = time.Hour

// While nothing answers there is a call every second at least, over each carrier, and
// no more of them at once than there may be.
func TestRaceCallsEverySecond(t *testing.T) {
	tr := newTrial(track{opens: never}, track{opens: never})
	if won, took, err := tr.run(t); err == nil || took != tr.patience {
		t.Fatalf("%v won after %v: %v", won, took, err)
	}
	for c, starts := range tr.starts {
		// Calls hang until the end here, so that only the first ones are made.
		if len(starts) != maxCalls || tr.most[c] != maxCalls {
			t.Errorf("%v: %d calls, %d at once", c, len(starts), tr.most[c])
		}
		for i := 1; i < len(starts); i++ {
			if gap := starts[i] - starts[i-1]; gap > callEvery || gap < 100*time.Millisecond {
				t.Errorf("%v: call %d %v after the one before", c, i, gap)
			}
		}
	}
}

// An attempt lasts for 5 s in a gateway: no call of it is left out.
func TestRaceHasRoomForAllItsCalls(t *testing.T) {
	for range 100 {
		tr := newTrial(track{opens: never}, track{opens: never})
		tr.patience = 5 * time.Second
		tr.run(t)
		if last := tr.starts[QUIC][len(tr.starts[QUIC])-1]; tr.patience-last > callEvery {
			t.Fatalf("the last call of %d was after %v", len(tr.starts[QUIC]), last)
		}
	}
}

// A link that returns while calls hang is found by the next one.
func TestRaceFindsReturnedLink(t *testing.T) {
	for back := time.Duration(0); back < 4*time.Second; back += 130 * time.Millisecond {
		tr := newTrial(track{opens: back, trip: 20 * time.Millisecond}, track{opens: back, trip: 60 * time.Millisecond})
		tr.worked = QUIC
		won, took, err := tr.run(t)
		if err != nil || took > back+callEvery+20*time.Millisecond {
			t.Errorf("back after %v: %v after %v: %v", back, won, took, err)
		}
		if won.carrier != QUIC { // whichever of the two calls first after the return
			t.Errorf("back after %v: %v won", back, won.carrier)
		}
	}
}

// Which carrier wins, and when.
func TestRaceOrder(t *testing.T) {
	refused := ErrRefused
	ms := time.Millisecond
	for _, test := range []struct {
		name      string
		quic, tls track
		fallback  time.Duration
		worked    Carrier
		want      Carrier // 0 for an error
		after     time.Duration
	}{
		{"the first choice answers", track{trip: 50 * ms}, track{}, 3000 * ms, 0, QUIC, 50 * ms},
		{"the first choice is silent", track{opens: never}, track{trip: 50 * ms}, 3000 * ms, 0, TLS, 3050 * ms},
		{"the first choice is refused", track{trip: 50 * ms, err: refused}, track{trip: 50 * ms}, 3000 * ms, 0, TLS, 100 * ms},
		{"both are refused", track{trip: 50 * ms, err: refused}, track{trip: 50 * ms, err: refused}, 3000 * ms, 0, 0, 100 * ms},
		{"the second is sooner", track{trip: 50 * ms}, track{trip: 10 * ms}, 0, 0, TLS, 10 * ms},
		{"the second is sooner by less than a second, and the first worked", track{trip: 990 * ms}, track{trip: 10 * ms}, 0, QUIC, QUIC, 990 * ms},
		{"the second is sooner by more, and the first worked", track{opens: never}, track{trip: 10 * ms}, 0, QUIC, TLS, 1010 * ms},
		{"the second is sooner, and the first worked, which is refused now", track{trip: 500 * ms, err: refused}, track{trip: 10 * ms}, 0, QUIC, TLS, 500 * ms},
		{"the second is sooner, and worked", track{trip: 50 * ms}, track{trip: 10 * ms}, 0, TLS, TLS, 10 * ms},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr := newTrial(test.quic, test.tls)
			tr.fallback, tr.worked = test.fallback, test.worked
			won, took, err := tr.run(t)
			if won.carrier != test.want || took != test.after || errors.Is(err, ErrRefused) != (test.want == 0) {
				t.Errorf("%v after %v, not %v after %v: %v", won.carrier, took, test.want, test.after, err)
			}
		})
	}
}

// A call that is being answered is left alone, for as long as it may still come to
// something.
func TestRaceLeavesAnsweredCallAlone(t *testing.T) {
	tr := newTrial(track{talks: 300 * time.Millisecond, trip: 5 * time.Second}, track{})
	tr.fallback = never
	won, took, err := tr.run(t)
	if err != nil || took != 5*time.Second || won.carrier != QUIC {
		t.Errorf("%v after %v: %v", won, took, err)
	}
	for i, at := range tr.starts[QUIC] {
		if at > 300*time.Millisecond && at < 300*time.Millisecond+talkTime {
			t.Errorf("call %d after %v, while the first was answered", i, at)
		}
	}
	if last := tr.starts[QUIC][len(tr.starts[QUIC])-1]; last < talkTime {
		t.Errorf("no call after %v, though the one that was answered hung", last)
	}
}
