package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/engine/aggregate/seal"
	"sheaf/engine/wire"
	"sheaf/tunnel"
)

// A stream is what a lane runs over for one epoch: a [tunnel.Lane], or a simulated
// one.
type stream interface {
	io.ReadWriter
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	// Narrowed reports whether the host knows that the path takes less than what
	// carries the stream.
	Narrowed() bool
	// Suspect has another carrier taken, if small packets pass and large ones may not.
	Suspect()
	// Reset ends the stream at both ends at once; the peer is told the reason in the
	// error.
	Reset(error)
	// Decline does so behind what was written, and has the next one wait.
	Decline(error) error
}

// A laneRunner is one lane of a peer over all its epochs: its queue, its counters, and
// why it is as it is. What lives for an epoch only is in [epoch].
type laneRunner struct {
	// Set before it runs, and only read then.

	peer      string
	class     tunnel.Class
	open      func(context.Context) (stream, error) // the stream of the next epoch; blocks until there is one
	accept    func([][]byte)                        // takes rebuilt packets, borrowed for the call
	opened    func()                                // told that an epoch has begun; may be nil
	lane      aggregate.Config
	stall     time.Duration        // without progress for so long an epoch ends
	clock     func() time.Duration // since the gateway began
	log       *slog.Logger
	self      wire.Hello // what this end says
	queue     *queue
	blackHole *blackHole  // of the peer, of all its lanes
	mismatch  *mismatch   // likewise
	tls       *seal.Table // of the connections that are opened, nil for none

	// Each of one goroutine.

	streams streams  // run's
	read    [][]byte // what one read of the port has for this lane; pump's

	// For all.

	health   health
	overhead atomic.Int64 // about how many bytes a carrier packet adds to a frame
	epochs   atomic.Uint64
	mu       sync.Mutex
	totals   laneTotals // of the epochs that ended
	now      *epoch     // nil between epochs
}

// laneTotals are the counters of epochs together. The messages of each event are among
// them: [aggregate.Stats] bounds how many events there are, over all epochs too.
type laneTotals struct {
	sent aggregate.Stats
	got  Received
}

// Received count what a lane rebuilt.
type Received struct {
	Packets     uint64
	Bytes       uint64 // of the packets
	Frames      uint64
	BytesFrames uint64 // of the frames, without what the carrier adds
}

// run takes the lane from epoch to epoch until ctx ends. Packets that wait when one
// ends are dropped: their hosts send again what the next one needs.
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
	// ErrStall is why an epoch ends in which nothing got through for the length of a
	// stall.
	ErrStall = fmt.Errorf("no progress: %w", tunnel.ReasonStalled)
	// ErrPath is why an epoch ends whose bytes do not pass because of the size of the
	// packets that carry them.
	ErrPath = fmt.Errorf("no progress: %w", tunnel.ReasonPath)
	// ErrPeer is matched by the errors that are the peer's fault.
	ErrPeer = errors.New("peer's fault")
	// ErrOwn is matched by the errors that are this program's fault: the epoch
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
	if theirs.Seals {
		cfg.TLS = l.tls
	}
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
