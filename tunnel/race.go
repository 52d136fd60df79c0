package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// callEvery is the longest time between the starts of two calls over one
	// carrier: a call that hangs is not waited for. Its packets may be lost with
	// the link, and it repeats them ever later.
	callEvery = time.Second
	// maxCalls is how many calls over one carrier are in progress at most: more than
	// an attempt of 5 s has time for.
	maxCalls = 12
	// talkTime is how long after anything came back no further call is made beside
	// the one that is answered. On a long or narrow link it would only be in the way.
	talkTime = 2 * time.Second
	// holdTime is how long a carrier that worked before may take longer than a
	// less preferred one: enough for QUIC's first two repetitions (0.2 and 0.6 s).
	holdTime = time.Second
)

// A candidate is a call that was answered and proved both keys: a QUIC connection
// or, of a TCP carrier, one on which a lane can be opened. The other end takes it
// for nothing until a lane is opened on it.
type candidate struct {
	carrier Carrier
	conn    *quicConn
	tcp     *tcpCall
	err     error
}

func (c *candidate) close(why Reason) {
	switch {
	case c.conn != nil:
		c.conn.close(why)
	case c.tcp != nil:
		resetTCP(c.tcp.conn)
	}
}

// A race calls over several carriers, the first one at once, each next one
// fallback later or when all before it were refused (as RFC 8305 does it with
// addresses), and finds the one to be used.
type race struct {
	carriers []Carrier
	fallback time.Duration
	worked   Carrier // the last that did; the others give it holdTime. Or 0
	pause    backoff // between the starts of calls over one carrier
	call     func(context.Context, call) candidate
}

// A call is one of a race.
type call struct {
	carrier  Carrier
	number   int    // of those over the carrier, from 0
	answered func() // to be called when anything comes back; by any goroutine, often
}

// run calls until one call succeeds, all carriers were refused, or ctx ends.
func (r *race) run(ctx context.Context) (won candidate, err error) {
	var calls sync.WaitGroup
	defer calls.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ready, ended := make(chan candidate), make(chan struct{}, len(r.carriers))
	errs := make([]error, len(r.carriers)) // of those that have ended
	started, running := 0, 0
	var fallback <-chan time.Time
	start := func() {
		i := started
		started++
		running++
		calls.Go(func() {
			if err := r.keepCalling(ctx, r.carriers[i], ready); err != nil {
				errs[i] = fmt.Errorf("%v: %w", r.carriers[i], err)
			}
			ended <- struct{}{}
		})
		fallback = nil
		if started < len(r.carriers) {
			fallback = time.After(r.fallback)
		}
	}
	start()
	var held candidate
	var hold <-chan time.Time
	for {
		select {
		case <-fallback:
			start()
		case c := <-ready:
			if hold == nil && running > 1 && r.waitsFor(c.carrier) {
				held, hold = c, time.After(holdTime)
				continue
			}
			held.close(ReasonDuplicate)
			return c, nil
		case <-hold:
			return held, nil
		case <-ended:
			switch running--; {
			case running > 0:
			case hold != nil:
				return held, nil
			case started < len(r.carriers) && ctx.Err() == nil:
				start()
			default:
				return candidate{}, errors.Join(errs...)
			}
		}
	}
}

// waitsFor reports whether c, which was answered, gives more time to the carrier
// that worked before.
func (r *race) waitsFor(c Carrier) bool {
	worked := slices.Index(r.carriers, r.worked)
	return worked >= 0 && worked < slices.Index(r.carriers, c)
}

// keepCalling starts one call after the other, each beside those that hang. It
// returns nil when one has succeeded and was passed on, and otherwise the last
// error, once the other end has refused or ctx is over.
func (r *race) keepCalling(ctx context.Context, c Carrier, ready chan<- candidate) (last error) {
	var calls sync.WaitGroup
	defer calls.Wait()
	others, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan candidate)
	pause := r.pause
	running := 0
	var answered atomic.Int64 // when anything came last, in nanoseconds since begin
	begin := time.Now()
	note := func() { answered.Store(int64(max(time.Since(begin), 1))) }
	next := time.NewTimer(0)
	defer next.Stop()
	for try := 0; ; {
		select {
		case <-next.C:
			next.Reset(pause.next())
			at := time.Duration(answered.Load())
			if running == maxCalls || at > 0 && time.Since(begin) < at+talkTime {
				continue
			}
			running++
			this := call{c, try, note}
			try++
			calls.Go(func() { pass(others, r.call(others, this), results) })
		case done := <-results:
			running--
			answered.Store(0)
			switch {
			case done.err == nil:
				cancel()
				pass(ctx, done, ready)
				return nil
			case isRefusal(done.err):
				return done.err
			}
			last = done.err
		case <-ctx.Done():
			if last == nil || isSilence(last) {
				last = errNoAnswer
			}
			return last
		}
	}
}

// pass passes a finished call on, or ends it where nobody waits for it any more.
func pass(ctx context.Context, c candidate, to chan<- candidate) {
	select {
	case to <- c:
	case <-ctx.Done():
		c.close(ReasonDuplicate)
	}
}

// errNoAnswer is why calls fail to which nothing came back.
var errNoAnswer = errors.New("no answer")

// isSilence reports whether err says only that nothing came.
func isSilence(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// isRefusal tells an answer that will be the same the next time from silence and
// from what passes.
func isRefusal(err error) bool {
	switch reasonOf(err) {
	case ReasonShutdown, ReasonLost:
		return false
	}
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrWrongKey) || errors.Is(err, ErrProtocol)
}
