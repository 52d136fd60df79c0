package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/engine/wire"
	"sheaf/tunnel"
)

// A stream is what a lane runs over for one epoch, as the tunnel gives it.
type stream interface {
	io.ReadWriter
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	// Narrowed reports whether the host knows that the path takes less than what
	// carries the stream.
	Narrowed() bool
	// Suspect has another carrier taken, if small packets pass and large ones may not.
	Suspect()
	Reset(error)
	Decline(error) error
}

// A laneRunner is one lane of a peer over all its epochs.
type laneRunner struct {
	peer      string
	class     tunnel.Class
	open      func(context.Context) (stream, error) // the stream of the next epoch
	accept    func([][]byte)                        // takes rebuilt packets, borrowed for the call
	opened    func()                                // told that an epoch has begun; may be nil
	lane      aggregate.Config
	stall     time.Duration
	clock     func() time.Duration
	queue     *queue
	blackHole *blackHole // shared by the lanes of the peer
	log       *slog.Logger
	self      wire.Hello // what this end says in its Hello

	streams streams  // of the goroutine that runs the lane
	read    [][]byte // what one read of the port has for this lane; of the goroutine that reads

	health   health
	mismatch *mismatch    // the peer's, of all its lanes
	overhead atomic.Int64 // about what a carrier packet adds, bytes
	epochs   atomic.Uint64
	mu       sync.Mutex
	totals   laneTotals // of the epochs that ended
	now      *epoch     // nil between epochs
}

// laneTotals are what outlives an epoch in the counters.
type laneTotals struct {
	sent aggregate.Stats // Messages is not kept
	got  Received
}

// Received count what a lane rebuilt.
type Received struct {
	Packets, Bytes      uint64
	Frames, BytesFrames uint64
}

// An epoch is the life of a lane's shared memory.
type epoch struct {
	runner     *laneRunner
	stream     stream
	mu         sync.Mutex // of lane and all below
	lane       *aggregate.Lane
	got        Received
	unreported time.Duration // when the oldest frame came that the peer was not told of; 0 for none
	last       uint64        // number of the last frame with packets
	done       uint64        // frames that the peer says it rebuilt
	pending    time.Duration // since when the peer has not got further, short of last; 0 for not at all
	asked      time.Duration // the pending for which the host was asked about the path
	full       uint64        // number of a frame short of which bytes are that fill a packet; 0 for none
	wrote      time.Duration // when the last frame was written
	woken      chan struct{} // the writer should look again
}

// run takes the lane from epoch to epoch until ctx ends.
func (l *laneRunner) run(ctx context.Context) {
	for ctx.Err() == nil {
		s, err := l.open(ctx)
		if err != nil {
			continue // the tunnel paces its attempts
		}
		err = l.epoch(ctx, s)
		if isMismatch(err) {
			_ = s.Decline(err)
		} else {
			s.Reset(err)
		}
		l.queue.clear()
		again := l.health.end(l.clock(), err)
		if ctx.Err() == nil {
			l.tell(err, again)
		}
	}
}

var (
	// ErrStall is why an epoch ends in which nothing got through.
	ErrStall = fmt.Errorf("no progress: %w", tunnel.ReasonStalled)
	// ErrPath is why an epoch ends whose bytes do not pass because of the size of the
	// packets that carry them.
	ErrPath = fmt.Errorf("no progress: %w", tunnel.ReasonPath)
	// ErrPeer is wrapped by the errors that are the peer's fault.
	ErrPeer = errors.New("peer's fault")
	// ErrOwn is wrapped by the errors that are this program's fault: the epoch
	// ends, and the gateway goes on.
	ErrOwn = errors.New("own fault")
)

// epoch runs one epoch over s and returns why it ended, always an error.
func (l *laneRunner) epoch(ctx context.Context, s stream) error {
	theirs, limits, err := handshake(s, l.self)
	if err != nil {
		return err
	}
	l.reset(l.streams.begin(theirs))
	cfg := l.lane
	cfg.Limits = limits
	lane, err := aggregate.NewLane(cfg)
	if err != nil {
		return err
	}
	e := &epoch{runner: l, stream: s, lane: lane, woken: make(chan struct{}, 1)}
	l.mu.Lock()
	l.now = e
	l.mu.Unlock()
	l.epochs.Add(1)
	l.health.begin(l.clock())
	if l.opened != nil {
		l.opened()
	}
	if l.mismatch.agreed() {
		l.log.Info("the peer is understood again", "peer", l.peer)
	}
	defer e.addTotals()

	read := make(chan error, 1)
	go func() { read <- e.read() }()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { s.Reset(context.Cause(ctx)) })
	defer stop()
	write := make(chan error, 1)
	go func() { write <- e.write(ctx) }()
	select {
	case err = <-read:
		cancel(err)
		<-write
	case err = <-write:
		cancel(err)
		<-read
	}
	e.noteEnd(err)
	return err
}

// read rebuilds what the peer sends until the stream ends.
func (e *epoch) read() error {
	var held []byte // the beginning of a frame
	buf := make([]byte, 1<<16)
	for {
		n, err := e.stream.Read(buf)
		held = append(held, buf[:n]...)
		rest := held
		for {
			used, frameErr := e.expand(rest)
			if errors.Is(frameErr, wire.ErrShort) {
				break
			}
			if errors.Is(frameErr, ErrOwn) {
				return frameErr
			}
			if frameErr != nil {
				return fmt.Errorf("%w: %w: %w", ErrPeer, frameReason(frameErr), frameErr)
			}
			rest = rest[used:]
		}
		held = held[:copy(held, rest)]
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
}

// expand takes the frame at the start of b, and hands its packets out.
func (e *epoch) expand(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, wire.ErrShort
	}
	packets, n, err := e.rebuild(b)
	if err == nil && len(packets) > 0 {
		e.runner.accept(packets)
	}
	return n, err
}

// recover turns a panic of the codec into an error.
func (e *epoch) recover(err *error) {
	if r := recover(); r != nil {
		e.runner.log.Debug("panic", "value", r, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%w: %v", ErrOwn, r)
	}
}

// rebuild expands the frame at the start of b and notes what it tells.
func (e *epoch) rebuild(b []byte) (packets [][]byte, n int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.recover(&err)
	packets, n, err = e.lane.Expander.Expand(b)
	if err == nil {
		e.got.Frames++
		e.got.BytesFrames += uint64(n)
		e.got.Packets += uint64(len(packets))
		for _, p := range packets {
			e.got.Bytes += uint64(len(p))
		}
		now := e.runner.clock()
		if len(packets) > 0 && e.unreported == 0 {
			e.unreported = now
			e.wake()
		}
		done := e.lane.Merger.Stats().Frames - e.lane.Outstanding()
		if e.full != 0 && done >= e.full {
			e.full = 0
			e.runner.blackHole.fits(now)
		}
		switch {
		case done >= e.last:
			e.pending = 0
		case done > e.done:
			e.pending = now
		}
		e.done = done
	}
	return packets, n, err
}

// wake has the writer look at its deadlines again.
func (e *epoch) wake() {
	select {
	case e.woken <- struct{}{}:
	default:
	}
}

// write merges what is queued and writes frames until ctx ends, the stream
// fails or nothing gets through.
func (e *epoch) write(ctx context.Context) error {
	l := e.runner
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var frame []byte
	var batch []packet
	for {
		batch = l.queue.take(batch)
		var err error
		if frame, err = e.merge(frame[:0], batch); err != nil {
			return err
		}
		l.queue.recycle(batch)
		if len(frame) > 0 {
			if err := e.send(frame); err != nil {
				return err
			}
			continue
		}
		wait, err := e.next()
		if err != nil {
			return err
		}
		asleep := l.clock()
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.queue.ready:
		case <-e.woken:
		case <-timer.C:
		}
		if l.clock()-asleep > wait+l.stall/4 {
			e.restartWait()
		}
	}
}

// restartWait starts the wait for progress anew: the process stood still, and may not
// have read what has come.
func (e *epoch) restartWait() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pending != 0 {
		e.pending = e.runner.clock()
	}
}

// merge adds packets to the lane and appends the frames that are due.
func (e *epoch) merge(dst []byte, batch []packet) (_ []byte, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.recover(&err)
	m := &e.lane.Merger
	now := e.runner.clock()
	for _, p := range batch {
		// Packets that waited while the writer was blocked share a frame.
		if at, why, ok := m.Deadline(); ok && why == aggregate.FlushFull && at <= now {
			dst = m.Flush(dst, now, why)
		}
		_ = m.Add(p.at, p.data) // counted by the Merger
	}
	if at, why, ok := m.Deadline(); ok && at <= now {
		dst = m.Flush(dst, now, why)
	}
	if len(dst) > 0 {
		e.last = m.Stats().Frames
		if e.pending == 0 {
			e.pending = now
		}
		if e.full == 0 && len(dst) >= fillsPacket {
			e.full = e.last
		}
	}
	if at, ok := e.reportAt(); ok && len(dst) == 0 && at <= now {
		dst = m.Report(dst, now)
	}
	if len(dst) > 0 {
		e.unreported, e.wrote = 0, now
	}
	return dst, nil
}

// reportAt returns when a frame is due that holds no packet: the peer is to be
// told of its frames before it takes the lane for stalled, and a peer that is
// silent may not know that this end's address has changed, which it learns from
// whatever comes next.
func (e *epoch) reportAt() (at time.Duration, ok bool) {
	switch {
	case e.unreported != 0:
		return e.unreported + e.runner.stall/4, true
	case e.pending != 0:
		return e.wrote + e.runner.stall/2, true
	}
	return 0, false
}

// next returns how long the writer may sleep, or ErrStall or ErrPath.
func (e *epoch) next() (time.Duration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.runner.clock()
	wait := time.Hour
	if at, _, ok := e.lane.Merger.Deadline(); ok {
		wait = at - now
	}
	if at, ok := e.reportAt(); ok {
		wait = min(wait, at-now)
	}
	if e.pending != 0 {
		left := e.pending + e.runner.stall - now
		if left <= 0 {
			return 0, fmt.Errorf("%w for %v", ErrStall, e.runner.stall)
		}
		again, err := e.askHost(now)
		if err != nil {
			return 0, err
		}
		wait = min(wait, left, again)
	}
	return max(wait, 0), nil
}

// send writes a frame, for as long as the carrier makes progress.
func (e *epoch) send(frame []byte) error {
	ask := e.runner.stall / 4
	for _, wait := range []time.Duration{ask, e.runner.stall - ask} {
		if err := e.stream.SetWriteDeadline(time.Now().Add(wait)); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		n, err := e.stream.Write(frame)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("write: %w", err)
		case e.stream.Narrowed():
			return fmt.Errorf("write: %w", ErrPath)
		}
		frame = frame[n:]
	}
	return fmt.Errorf("write: %w for %v", ErrStall, e.runner.stall)
}

// addTotals adds the epoch's counts to the lane's.
func (e *epoch) addTotals() {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.runner
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.sent.Accumulate(e.lane.Merger.Stats())
	l.totals.got.add(e.got)
	l.streams.keep(e.lane.Expander.Streams)
	l.now = nil
}

func (r *Received) add(o Received) {
	r.Packets += o.Packets
	r.Bytes += o.Bytes
	r.Frames += o.Frames
	r.BytesFrames += o.BytesFrames
}

// snapshot returns the counters of all epochs. The Stats are a copy.
func (l *laneRunner) snapshot() (sent aggregate.Stats, got Received) {
	l.mu.Lock()
	e := l.now
	sent.Accumulate(&l.totals.sent)
	got = l.totals.got
	l.mu.Unlock()
	if e != nil {
		e.mu.Lock()
		sent.Accumulate(e.lane.Merger.Stats())
		got.add(e.got)
		e.mu.Unlock()
	}
	return sent, got
}
