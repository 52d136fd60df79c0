package codec

// A queue is a first-in first-out list that keeps its array. Its zero value is
// empty.
type queue[T any] struct {
	all  []T
	head int
}

func (q *queue[T]) len() int { return len(q.all) - q.head }

// push appends values at the end.
func (q *queue[T]) push(v ...T) {
	if q.head > len(q.all)/2 && len(q.all)+len(v) > cap(q.all) {
		n := copy(q.all, q.all[q.head:])
		clear(q.all[n:])
		q.all, q.head = q.all[:n], 0
	}
	q.all = append(q.all, v...)
}

// first returns the oldest n, borrowed until the next push.
func (q *queue[T]) first(n int) []T { return q.all[q.head : q.head+n] }

// pop drops the oldest n.
func (q *queue[T]) pop(n int) {
	clear(q.all[q.head : q.head+n])
	if q.head += n; q.head == len(q.all) {
		q.all, q.head = q.all[:0], 0
	}
}
