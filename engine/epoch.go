package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/engine/wire"
)

// An epoch is the life of a lane's shared memory, from a stream's handshake to its
// end. Two goroutines run it, read and write, which a lock lets share the memory:
//
//	read    frames -> Expander -> accept; what the peer says it has -> pending
//	write   queue -> Merger -> frames, when they are due; stalls
//
// Every frame says how many of the other end's frames its writer has rebuilt. An end
// that has sent packets and hears of no progress for the length of a stall ends the
// epoch; one that has nothing to send reports before the other end would (reportAt).
// Times are the gateway's clock, 0 is none.
type epoch struct {
	runner *laneRunner
	stream stream
	woken  chan struct{} // capacity 1: the writer is to look at its deadlines again

	mu         sync.Mutex // of all below
	lane       *aggregate.Lane
	got        Received
	unreported time.Duration // when the oldest frame came that the peer was not told of
	last       uint64        // number of the last frame with packets
	done       uint64        // how many frames the peer says it has rebuilt
	pending    time.Duration // since when done has not grown, while it is short of last
	asked      time.Duration // the pending for which the host was asked about the path
	full       uint64        // number of a frame whose bytes fill a packet, and which is not done; or 0
	wrote      time.Duration // when the last frame was written
}

// maxIdle is how long a writer sleeps that waits for nothing but packets: any time, as
// it is woken for them.
const maxIdle = time.Hour

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

// expand takes the frame at the start of b, hands its packets out and returns its
// length.
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

// recover turns a panic of the codec into an error: what a peer sends must not end the
// gateway, whatever is wrong with this program.
func (e *epoch) recover(err *error) {
	if r := recover(); r != nil {
		e.runner.log.Debug("panic", "value", r, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%w: %v", ErrOwn, r)
	}
}

// rebuild expands the frame at the start of b and accounts for it. The packets are
// borrowed until the next one.
func (e *epoch) rebuild(b []byte) (packets [][]byte, n int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.recover(&err)
	packets, n, err = e.lane.Expander.Expand(b)
	if err != nil {
		return packets, n, err
	}
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
	e.progress(now, e.lane.Merger.Stats().Frames-e.lane.Outstanding())
	return packets, n, nil
}

// progress notes how many frames the peer has rebuilt, as it says now. mu is held.
func (e *epoch) progress(now time.Duration, done uint64) {
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

// wake has the writer look at its deadlines again.
func (e *epoch) wake() {
	select {
	case e.woken <- struct{}{}:
	default:
	}
}

// write merges what is queued and writes frames until ctx ends, the stream
// fails or nothing gets through. While the carrier takes no more it blocks, packets
// gather in the queue, and the next frame is larger. A sleep that lasted for a quarter
// of a stall too long was no sleep: the process stood still.
func (e *epoch) write(ctx context.Context) error {
	l := e.runner
	timer := time.NewTimer(maxIdle)
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

// merge adds packets to the lane and appends the frames that are due, or a report.
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

// reportAt returns when a frame is due that holds no packet: the peer is to be told of
// its frames after a quarter of a stall, which leaves it three for the way, before it
// takes the lane for stalled; and a peer that was silent for half of one may not know
// that this end's address has changed, which it learns from whatever comes next. mu is
// held.
func (e *epoch) reportAt() (at time.Duration, ok bool) {
	switch {
	case e.unreported != 0:
		return e.unreported + e.runner.stall/4, true
	case e.pending != 0:
		return e.wrote + e.runner.stall/2, true
	}
	return 0, false
}

// next returns how long the writer may sleep, or why the epoch is over: ErrStall or
// ErrPath.
func (e *epoch) next() (time.Duration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.runner.clock()
	wait := maxIdle
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

// send writes a frame, for as long as a stall at most. After a quarter of it the host
// is asked whether the path has become too narrow.
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
