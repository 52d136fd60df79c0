package netstack

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// chunkSize is how many bytes go from one end of a connection to the other at a
// time. Only a connection that has some holds a chunk; one that waits holds none.
const chunkSize = 32 << 10

type chunk [chunkSize]byte

var chunks = sync.Pool{New: func() any { return new(chunk) }}

// An end is one of the two connections that are spliced together: to the stack or
// to a socket of the host.
type end interface {
	// receive waits for bytes and returns them in a chunk from the pool, which is
	// the caller's. The error is io.EOF if the other side sends no more, and
	// anything else if the connection broke.
	receive() (*chunk, int, error)

	// send writes b, waiting as long as it takes. b is borrowed.
	send(b []byte) error

	// closeWrite sends the end of file.
	closeWrite() error

	// abort resets the connection and wakes whoever waits in the other methods. It
	// may be called at any time and again.
	abort()

	// close ends the connection in good order, after both ends of file. It is the
	// last call.
	close()
}

// splice carries bytes between a and b until both have sent their end of file, or
// one of them broke: then the other one is reset. It closes both.
func splice(a, b end) {
	var back sync.WaitGroup
	back.Go(func() { carry(a, b) })
	carry(b, a)
	back.Wait()
	a.close()
	b.close()
}

func carry(dst, src end) {
	for {
		c, n, err := src.receive()
		if err == nil {
			err = dst.send(c[:n])
			chunks.Put(c)
		} else if errors.Is(err, io.EOF) {
			if dst.closeWrite() == nil {
				return
			}
		}
		if err != nil {
			dst.abort()
			src.abort()
			return
		}
	}
}

// EndStats counts connections, and flows of UDP, since the stack was made.
type EndStats struct {
	Active  int64  `json:"active"`  // open now
	Opened  uint64 `json:"opened"`  // connected on both sides
	Refused uint64 `json:"refused"` // the server refused, or the stack's own limit did
	Failed  uint64 `json:"failed"`  // no answer, no route, or the client gave up
}

// ends are the connections of a Stack's Forwarders, or of its Terminators.
type ends struct {
	active                  atomic.Int64
	opened, refused, failed atomic.Uint64

	mu      sync.Mutex // guards ending
	ending  bool
	running sync.WaitGroup
}

func (e *ends) stats() EndStats {
	return EndStats{
		Active:  e.active.Load(),
		Opened:  e.opened.Load(),
		Refused: e.refused.Load(),
		Failed:  e.failed.Load(),
	}
}

// begin registers a goroutine for wait; it fails when wait was called.
func (e *ends) begin() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ending {
		e.running.Add(1)
	}
	return !e.ending
}

func (e *ends) done() { e.running.Done() }

func (e *ends) wait() {
	e.mu.Lock()
	e.ending = true
	e.mu.Unlock()
	e.running.Wait()
}

// A group is the connections of one Forwarder or Terminator, so that they can be
// reset together.
type group struct {
	ends *ends

	mu      sync.Mutex
	closed  bool
	pairs   map[*pair]bool
	running sync.WaitGroup // splices
}

type pair struct{ a, b end }

// splice splices a and b, and resets both at once if the group is closed.
func (g *group) splice(a, b end) {
	p := &pair{a, b}
	g.mu.Lock()
	closed := g.closed
	if !closed {
		if g.pairs == nil {
			g.pairs = make(map[*pair]bool)
		}
		g.pairs[p] = true
		g.running.Add(1)
	}
	g.mu.Unlock()
	if closed {
		a.abort()
		b.abort()
		a.close()
		b.close()
		return
	}
	g.ends.opened.Add(1)
	g.ends.active.Add(1)
	splice(a, b)
	g.ends.active.Add(-1)
	g.mu.Lock()
	delete(g.pairs, p)
	g.mu.Unlock()
	g.running.Done()
}

// close resets the group's connections and waits for them. It reports whether it
// was the first to do so.
func (g *group) close() bool {
	g.mu.Lock()
	first := !g.closed
	g.closed = true
	pairs := make([]*pair, 0, len(g.pairs))
	for p := range g.pairs {
		pairs = append(pairs, p)
	}
	g.mu.Unlock()
	for _, p := range pairs {
		p.a.abort()
		p.b.abort()
	}
	g.running.Wait()
	return first
}
