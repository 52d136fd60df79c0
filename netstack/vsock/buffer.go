package vsock

import "sync"

// window is the room that a stream has for what was received and not read, in bytes, and
// lesserWindow that of one that is opened while more than half of a guest's memory is
// given away. Both are powers of two. A guest is at most a few scheduling delays away, in
// which messages of the size that this is for do not fill either; a driver splits what it
// sends.
const (
	window       = 16 << 10
	lesserWindow = 4 << 10
)

var (
	windows       = sync.Pool{New: func() any { return new([window]byte) }}
	lesserWindows = sync.Pool{New: func() any { return new([lesserWindow]byte) }}
)

// A buffer is a queue of at most size bytes, window or lesserWindow. It holds memory only
// while it has some.
type buffer struct {
	size     int
	ring     []byte
	start, n int
}

// write appends b, which fits.
func (q *buffer) write(b []byte) {
	switch {
	case len(b) == 0:
		return
	case q.ring != nil:
	case q.size == window:
		q.ring = windows.Get().(*[window]byte)[:]
	default:
		q.ring = lesserWindows.Get().(*[lesserWindow]byte)[:]
	}
	k := copy(q.ring[(q.start+q.n)%q.size:], b)
	copy(q.ring, b[k:])
	q.n += len(b)
}

// read takes bytes out into b.
func (q *buffer) read(b []byte) (n int) {
	if q.n == 0 {
		return 0
	}
	b = b[:min(len(b), q.n)]
	n = copy(b, q.ring[q.start:])
	n += copy(b[n:], q.ring)
	q.start = (q.start + n) % q.size
	if q.n -= n; q.n == 0 {
		q.release()
	}
	return n
}

// release empties the buffer.
func (q *buffer) release() {
	switch len(q.ring) {
	case window:
		windows.Put((*[window]byte)(q.ring))
	case lesserWindow:
		lesserWindows.Put((*[lesserWindow]byte)(q.ring))
	}
	*q = buffer{size: q.size}
}
