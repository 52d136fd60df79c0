package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A pulse feels whether the machine lets a process run that has something to do.
type pulse struct {
	worst atomic.Int64
	quit  chan struct{}
}

// steady is how long a machine may stand still in a measurement that judges time.
const steady = 100 * time.Millisecond

func newPulse() *pulse {
	p := &pulse{quit: make(chan struct{})}
	go func() {
		const beat = 5 * time.Millisecond
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-p.quit:
				return
			case <-tick.C:
			}
			now := time.Now()
			if late := int64(now.Sub(last) - beat); late > p.worst.Load() {
				p.worst.Store(late)
			}
			last = now
		}
	}()
	return p
}

// longest returns the longest standstill so far.
func (p *pulse) longest() time.Duration { return time.Duration(p.worst.Load()) }

// stop ends the pulse and returns the longest standstill.
func (p *pulse) stop() time.Duration {
	close(p.quit)
	return p.longest()
}

// attempts is how often a test may measure: what else the machine does only ever
// adds to times and bytes.
const attempts = 5

// An attempt is one measurement, and what of it is over its limit.
type attempt struct {
	t    *testing.T
	over []string
}

// within judges a time.
func (a *attempt) within(what string, got, limit time.Duration) {
	a.t.Helper()
	a.t.Logf("%s: %.2f ms of %.2f ms", what, ms(got), ms(limit))
	if got > limit {
		a.over = append(a.over, fmt.Sprintf("%s: %v, more than %v", what, got, limit))
	}
}

// atMost judges bytes for each delivered message.
func (a *attempt) atMost(what string, got, limit float64) {
	a.t.Helper()
	a.t.Logf("%s: %.2f bytes per delivered message of %.2f", what, got, limit)
	if got > limit {
		a.over = append(a.over, fmt.Sprintf("%s: %.2f bytes per delivered message, more than %.2f", what, got, limit))
	}
}

// judge has a measurement taken until one is within its limits, up to five times.
// If none is, the test fails; or is skipped, if the machine stood still in every
// one of them, so that nothing can be said. What is to happen afterwards in any
// case has to be deferred.
func judge(t *testing.T, measure func(*attempt)) {
	t.Helper()
	var judged string // the last that could be
	for i := range attempts {
		a := &attempt{t: t}
		held := newPulse()
		measure(a)
		stood := held.stop()
		switch a.verdict(stood) {
		case kept:
			return
		case missed:
			judged = strings.Join(a.over, "; ")
			t.Logf("attempt %d: %s", i+1, judged)
		case unjudged:
			t.Logf("attempt %d: not judged, the machine stood still for %v: %s", i+1, stood.Round(time.Millisecond), strings.Join(a.over, "; "))
		}
	}
	if judged == "" {
		t.Skip(tooSlow)
	}
	t.Error(judged)
}

// A verdict is what an attempt says.
type verdict int

const (
	kept     verdict = iota // its limits, which a machine that stands still only makes harder
	missed                  // them, with nobody else to blame
	unjudged                // since the machine stood still
)

// verdict says what an attempt shows during which the machine stood still for that
// long at most.
func (a *attempt) verdict(stood time.Duration) verdict {
	switch {
	case len(a.over) == 0:
		return kept
	case stood > steady:
		return unjudged
	}
	return missed
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		got, limit, stood time.Duration
		want              verdict
	}{
		{2, 2, 0, kept},
		{2, 2, 2 * steady, kept},
		{3, 2, steady, missed},
		{3, 2, steady + 1, unjudged},
	} {
		a := &attempt{t: t}
		a.within("a time", c.got, c.limit)
		if got := a.verdict(c.stood); got != c.want {
			t.Errorf("a time: %+v: verdict %d", c, got)
		}
		a = &attempt{t: t}
		a.atMost("bytes", float64(c.got), float64(c.limit))
		if got := a.verdict(c.stood); got != c.want {
			t.Errorf("bytes: %+v: verdict %d", c, got)
		}
	}
}

// tooSlow is why a test is skipped that could not judge.
const tooSlow = "could not judge: the machine stood still for more than 100 ms"

// inTime is judge for what only judges times.
func inTime(t *testing.T, measure func(within func(what string, got, limit time.Duration))) {
	t.Helper()
	judge(t, func(a *attempt) { measure(a.within) })
}

// memory returns the process's resident bytes.
func (p *process) memory() int {
	p.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		var kb int
		if _, err := fmt.Sscanf(line, "VmRSS: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	p.t.Fatal("no VmRSS")
	return 0
}

// processor returns how much processor time the process took.
func (p *process) processor() time.Duration {
	p.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest) // from the third of proc(5) on
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		p.t.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond // 100 ticks a second
}
