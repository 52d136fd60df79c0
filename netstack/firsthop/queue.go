package firsthop

import "sync"

// What waits for a guest. A frame costs what is kept for it: smallFrame bytes, or more
// where it is longer.
const (
	smallFrame  = 2048                     // bytes: an Ethernet frame with the usual MTU
	queueMemory = 8 << 20                  // bytes; half of it, which one source may hold, are 2,048 frames: a message to as many connections of a guest at once
	queueFrames = queueMemory / smallFrame // as a frame costs no less
)

// A frame is an Ethernet frame in memory of the Router's own.
type frame struct {
	buf  []byte // its capacity is what it costs
	from *share
}

// smallFrames are frames for reuse with room for smallFrame bytes. Longer ones, for MTUs
// that few use, are made anew each.
var smallFrames = sync.Pool{New: func() any { return &frame{buf: make([]byte, 0, smallFrame)} }}

func newFrame(n int) *frame {
	if n > smallFrame {
		return &frame{buf: make([]byte, 0, n)}
	}
	return smallFrames.Get().(*frame)
}

func (f *frame) free() {
	if cap(f.buf) == smallFrame {
		f.buf, f.from = f.buf[:0], nil
		smallFrames.Put(f)
	}
}

// A share is what one source holds of a queue: who writes to the Router, another guest,
// or the router itself.
type share struct{ held int } // bytes; guarded by the queue's mu

// A queue holds frames for one guest, in order. It never makes who puts wait, and no
// source may hold more than what is still free (Choudhury and Hahne, Dynamic Queue Length
// Thresholds for Shared-Memory Packet Switches, 1998). One that floods gets half of the
// memory, and n of them at most n parts in n+1 while the guest takes frames: so who comes
// then finds room.
type queue struct {
	mu      sync.Mutex
	filled  sync.Cond // of mu; for take
	frames  [queueFrames]*frame
	head, n int
	free    int // bytes
	closed  bool
}

func newQueue() *queue {
	q := &queue{free: queueMemory}
	q.filled.L = &q.mu
	return q
}

// put appends the frame of head and payload, which are borrowed for the call, and says
// whether there was room.
func (q *queue) put(head *[headLen]byte, payload []byte, from *share) bool {
	f := newFrame(headLen + len(payload))
	f.buf = append(append(f.buf, head[:]...), payload...)
	q.mu.Lock()
	defer q.mu.Unlock()
	cost := cap(f.buf)
	if q.closed || from.held+cost > q.free {
		f.free()
		return false
	}
	f.from = from
	from.held += cost
	q.free -= cost
	q.frames[(q.head+q.n)%queueFrames] = f
	q.n++
	if q.n == 1 {
		q.filled.Signal()
	}
	return true
}

// take waits for frames and moves as many as there are and dst has room for. They keep
// their place in the queue's memory until they are given back. It returns none once the
// queue is closed.
func (q *queue) take(dst []*frame) []*frame {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.n == 0 && !q.closed {
		q.filled.Wait()
	}
	if q.closed {
		return dst[:0]
	}
	dst = dst[:min(q.n, cap(dst))]
	for i := range dst {
		dst[i], q.frames[q.head] = q.frames[q.head], nil
		q.head = (q.head + 1) % queueFrames
	}
	q.n -= len(dst)
	return dst
}

// giveBack frees frames of take.
func (q *queue) giveBack(frames []*frame) {
	q.mu.Lock()
	for _, f := range frames {
		f.from.held -= cap(f.buf)
		q.free += cap(f.buf)
	}
	q.mu.Unlock()
	for i, f := range frames {
		f.free()
		frames[i] = nil
	}
}

// close ends take, and what is still there is dropped.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.filled.Broadcast()
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}
