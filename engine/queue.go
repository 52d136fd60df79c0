package engine

import (
	"sync"
	"time"
)

// A queue holds the packets that wait for a lane's encoder, while the carrier takes no
// more or until the writer wakes. It is bounded in bytes and in time: past either it
// drops the oldest. The packets' bytes are copied in, since the reader of the port uses
// its buffers again, and recycled once taken.
type queue struct {
	mu      sync.Mutex
	waiting []packet
	free    [][]byte
	bytes   int
	limit   int           // of bytes
	age     time.Duration // the longest that a packet waits
	ready   chan struct{} // holds a token while something waits

	dropped, droppedBytes uint64
}

// A packet waits since at, which is by the gateway's clock.
type packet struct {
	at   time.Duration
	data []byte // owned by the queue until take, then by the taker until recycle
}

func newQueue(limit int, age time.Duration) *queue {
	return &queue{limit: limit, age: age, ready: make(chan struct{}, 1)}
}

// put appends copies of packets that came at a time, and wakes the writer once.
func (q *queue) put(at time.Duration, packets ...[]byte) {
	q.mu.Lock()
	for _, p := range packets {
		var b []byte
		if n := len(q.free); n > 0 {
			b, q.free = q.free[n-1][:0], q.free[:n-1]
		}
		q.waiting = append(q.waiting, packet{at, append(b, p...)})
		q.bytes += len(p)
	}
	q.trim(at)
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// trim drops from the front what is past the limits; the newest always stays.
func (q *queue) trim(now time.Duration) {
	n := 0
	for n < len(q.waiting)-1 && (q.bytes > q.limit || now-q.waiting[n].at > q.age) {
		q.bytes -= len(q.waiting[n].data)
		q.dropped++
		q.droppedBytes += uint64(len(q.waiting[n].data))
		q.keep(q.waiting[n].data)
		n++
	}
	if n > 0 {
		q.waiting = q.waiting[:copy(q.waiting, q.waiting[n:])]
	}
}

// keep holds a buffer for reuse.
func (q *queue) keep(b []byte) {
	if len(q.free) < maxFree && cap(b) <= maxKept {
		q.free = append(q.free, b)
	}
}

// Buffers that are kept for reuse: 8 MiB a lane at most. Chosen, not measured: for half
// of the packets that a frame takes, and for packets that a device with the usual MTU
// reads; an unsplit super-segment would keep 64 kB.
const (
	maxFree = 4096 // buffers
	maxKept = 2048 // bytes of one
)

// take swaps what waits for the taker's empty slice, whose array it keeps.
func (q *queue) take(into []packet) []packet {
	q.mu.Lock()
	out := q.waiting
	q.waiting = into[:0]
	q.bytes = 0
	q.mu.Unlock()
	return out
}

// recycle gives the buffers of taken packets back.
func (q *queue) recycle(packets []packet) {
	q.mu.Lock()
	for i := range packets {
		q.keep(packets[i].data)
		packets[i].data = nil
	}
	q.mu.Unlock()
}

// clear drops what waits: it was meant for an epoch that is over.
func (q *queue) clear() {
	q.mu.Lock()
	for _, p := range q.waiting {
		q.dropped++
		q.droppedBytes += uint64(len(p.data))
		q.keep(p.data)
	}
	q.waiting, q.bytes = q.waiting[:0], 0
	q.mu.Unlock()
}

// drops returns how many packets and bytes were dropped.
func (q *queue) drops() (packets, bytes uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped, q.droppedBytes
}
